"""A checkpoint folder on transformers: weights, tokenizer and chat template as `save_pretrained` writes them.

One answer at a time, on the processor or one GPU. torch is imported here and nowhere else in the site.
"""

import re
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agents.backends import ToolCall
from agents.inference.engine import Chunk, Emit, EngineError

LONGEST_PROMPT_TOKENS = 8_192

_TOOL_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
"""How most chat templates of open models have a tool called."""


class Written(NamedTuple):
    """One more piece of an answer, and how far it has come."""

    text: str
    finish: str
    """Why it would end here: `stop`, or `length` while it goes on."""
    prompt_tokens: int
    tokens: int


class CheckpointEngine:
    """One folder."""

    slots = 1

    def __init__(self, folder: Path, *, name: str, threads: int) -> None:
        self.name = name
        self._folder = folder
        self._threads = threads
        self._model: Any = None
        self._tokenizer: Any = None
        self._one_at_a_time = threading.Lock()

    def load(self) -> None:
        """Read weights and tokenizer from the folder, never from anywhere else."""
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise EngineError(500, f"Checkpoints need the full installation: {error}.") from error
        torch.set_num_threads(self._threads)
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(self._folder, local_files_only=True)
            model = AutoModelForCausalLM.from_pretrained(self._folder, local_files_only=True, dtype="auto")
        except (OSError, ValueError) as error:
            raise EngineError(500, f"{self._folder} is no checkpoint that transformers can load: {error}") from error
        if not self._tokenizer.chat_template:
            raise EngineError(500, f"The tokenizer in {self._folder} has no chat template, so it cannot chat.")
        self._model = model.to("cuda" if torch.cuda.is_available() else "cpu").eval()

    def complete(self, request: dict[str, Any]) -> Chunk:
        """One whole answer."""
        written = list(self._answer(request))
        text, last = "".join(piece.text for piece in written), written[-1]
        calls = _tool_calls(text) if request.get("tools") else []
        message: Chunk = {"role": "assistant", "content": without_calls(text) if calls else text}
        if calls:
            message["tool_calls"] = calls
        return self._envelope("chat.completion") | {
            "choices": [{"index": 0, "finish_reason": "tool_calls" if calls else last.finish, "message": message}],
            "usage": _usage(last),
        }

    def stream(self, request: dict[str, Any], emit: Emit) -> None:
        """The answer piece by piece; a tool call, which means nothing before its end, in one."""
        if request.get("tools"):
            whole = self.complete(request)
            message, finish = whole["choices"][0]["message"], whole["choices"][0]["finish_reason"]
            calls = [call | {"index": k} for k, call in enumerate(message.get("tool_calls", ()))]
            delta = {"role": "assistant", "content": message["content"]} | ({"tool_calls": calls} if calls else {})
            emit(self._chunk(delta))
            emit(self._chunk({}, finish))
            emit(self._envelope("chat.completion.chunk") | {"choices": [], "usage": whole["usage"]})
            return
        last: Written | None = None
        for last in self._answer(request):
            if last.text and emit(self._chunk({"content": last.text})):
                return
        assert last is not None
        emit(self._chunk({}, last.finish))
        emit(self._envelope("chat.completion.chunk") | {"choices": [], "usage": _usage(last)})

    def _answer(self, request: dict[str, Any]) -> Iterator[Written]:
        """Pieces of the answer; at least one."""
        import torch

        prompt = self._prompt(request)
        ends = self._ends()
        stops = tuple(request.get("stop") or ())
        with self._one_at_a_time, torch.inference_mode():
            generator = torch.Generator(device=self._model.device)
            if (seed := request.get("seed")) is not None:
                generator.manual_seed(seed)
            else:
                generator.seed()
            ids, past, told = prompt.to(self._model.device), None, ""
            made: list[int] = []
            for _ in range(request["max_tokens"]):
                out = self._model(input_ids=ids, past_key_values=past, use_cache=True)
                token = _draw(out.logits[0, -1].float(), request, generator)
                if token in ends:
                    yield Written("", "stop", prompt.shape[1], len(made))
                    return
                past, ids = out.past_key_values, torch.tensor([[token]], device=self._model.device)
                made.append(token)
                text = self._tokenizer.decode(made, skip_special_tokens=True)
                if any(stop in text for stop in stops):
                    cut = min(text.index(stop) for stop in stops if stop in text)
                    yield Written(text[len(told) : cut], "stop", prompt.shape[1], len(made))
                    return
                if text.endswith("\N{REPLACEMENT CHARACTER}"):  # A character is still in the making.
                    text = told
                yield Written(text[len(told) :], "length", prompt.shape[1], len(made))
                told = text

    def _prompt(self, request: dict[str, Any]) -> Any:
        from jinja2 import TemplateError

        try:
            ids = self._tokenizer.apply_chat_template(
                request["messages"],
                tools=request.get("tools"),
                add_generation_prompt=True,
                return_tensors="pt",
                return_dict=True,
            )["input_ids"]
        except (TemplateError, TypeError, KeyError) as error:
            raise EngineError(400, f"The chat template refuses these messages: {error}") from error
        longest = min(LONGEST_PROMPT_TOKENS, getattr(self._model.config, "max_position_embeddings", 10**9))
        if ids.shape[1] + request["max_tokens"] > longest:
            raise EngineError(400, f"Prompt and answer are longer than {longest} tokens.")
        return ids

    def _ends(self) -> frozenset[int]:
        ends = self._model.generation_config.eos_token_id
        listed = ends if isinstance(ends, list) else [ends]
        return frozenset(token for token in (*listed, self._tokenizer.eos_token_id) if token is not None)

    def _chunk(self, delta: Chunk, finish: str | None = None) -> Chunk:
        return self._envelope("chat.completion.chunk") | {
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]
        }

    def _envelope(self, kind: str) -> Chunk:
        return {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": kind,
            "created": int(time.time()),
            "model": self.name,
            "system_fingerprint": "transformers",
        }


def _draw(logits: Any, request: dict[str, Any], generator: Any) -> int:
    """The next token: the likeliest at temperature 0, else drawn from the top-p part of the distribution."""
    import torch

    temperature = request.get("temperature", 1.0)
    if temperature <= 0:
        return int(logits.argmax())
    chances = torch.softmax(logits / temperature, dim=-1)
    ranked, order = torch.sort(chances, descending=True)
    outside = torch.cumsum(ranked, dim=-1) - ranked > request.get("top_p", 1.0)
    ranked[outside] = 0.0
    return int(order[torch.multinomial(ranked, 1, generator=generator)])


def spelled_calls(text: str) -> list[ToolCall]:
    """The calls that an answer spells out; arguments stay as written, whoever reads them judges them."""
    calls = []
    for match in _TOOL_CALL.finditer(text):
        try:
            spelled = msgspec.json.decode(match[1])
        except msgspec.DecodeError:
            continue
        if isinstance(spelled, dict) and isinstance(name := spelled.get("name"), str):
            calls.append(ToolCall(name, msgspec.json.encode(spelled.get("arguments", {})).decode()))
    return calls


def without_calls(text: str) -> str:
    """What an answer says beside its calls."""
    return _TOOL_CALL.sub("", text).strip()


def _tool_calls(text: str) -> list[Chunk]:
    """The calls as OpenAI's answers hold them."""
    return [
        {
            "id": f"call_{uuid.uuid4().hex[:12]}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in spelled_calls(text)
    ]


def _usage(last: Written) -> Chunk:
    return {
        "prompt_tokens": last.prompt_tokens,
        "completion_tokens": last.tokens,
        "total_tokens": last.prompt_tokens + last.tokens,
    }
