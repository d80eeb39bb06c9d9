"""A two-layer Qwen3 that nobody trained, with a tokenizer made here and Qwen3's chat template; small run files."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from training.language import demonstrations
from training.language.config import Grpo, Judging, LanguageRun, Market, Sampling, Sft

MARKET = Market(rounds=(3,), opponents=("linear", "conceder"))


def config(base: Path | str = "", **changes: Any) -> LanguageRun:
    """A run of seconds."""
    made = LanguageRun(
        name="tiny-language",
        base=str(base),
        precision="fp32",
        market=MARKET,
        sft=Sft(rows=4, steps=2, accumulate=1, longest=4_096, learning_rate=1e-3, warmup_steps=0),
        grpo=Grpo(rollouts=2, games=1, group=2, turns=2, learning_rate=1e-3, entropy_bonus=0.05),
        sampling=Sampling(longest=6, together=4, temperature=1.0),
        judging=Judging(scenarios=4, rounds=3),
    )
    return msgspec.structs.replace(made, **changes)


@lru_cache(maxsize=1)
def _texts() -> list[str]:
    """What is said in a few demonstrations, to make words of."""
    texts = []
    for number in range(6):
        run = config()
        for row in demonstrations.rows_of(run, demonstrations.demonstrate(run, number)):
            texts += [str(message["content"]) for message in row.messages] + [str(row.answer["content"])]
    return texts


def qwen3(folder: Path, *, layers: int = 2, words: int = 700) -> Path:
    """The folder of the model."""
    import torch
    import trl
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.train_from_iterator(
        _texts(),
        trainers.BpeTrainer(
            vocab_size=words,
            special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast: Any = PreTrainedTokenizerFast
    tokenizer = fast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
    torch.manual_seed(1)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=layers,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=16,
            max_position_embeddings=4_096,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
