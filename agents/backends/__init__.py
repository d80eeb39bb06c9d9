"""Asking a language model: what a request and a reply are, and the back ends that answer.

Here: the plain types, the configured back ends by name. In `config`: reading them from the
environment; in `chat`: any OpenAI-compatible server; in `fake`: answers from a script, for tests.
Not here: what is asked (`agents.llm`), serving models (`agents.inference`).

Contract: a call either gives a `ChatReply` or raises `BackendError`; it never waits longer than
its configuration says, and no key appears in a reply, an error or a `repr`. Pure: no Django.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec

from agents.backends.config import EMBEDDED, BackendConfig, read
from agents.base import NoAnswer

__all__ = [
    "EMBEDDED",
    "Backend",
    "BackendConfig",
    "BackendError",
    "ChatMessage",
    "ChatReply",
    "ChatRequest",
    "ToolCall",
    "UnknownBackend",
    "configure",
    "configured",
    "follow",
    "get",
    "seat",
]

OnText: TypeAlias = Callable[[str], None]
"""Hears the answer grow: the text so far, which starts anew when a call is tried again."""


class ChatMessage(msgspec.Struct, frozen=True):
    """One message of a prompt."""

    role: str
    """`system`, `user` or `assistant`."""
    content: str


class ToolCall(msgspec.Struct, frozen=True):
    """A function that the model wants called; the arguments are as it wrote them."""

    name: str
    arguments: str


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, whichever server answers."""

    messages: tuple[ChatMessage, ...]
    max_tokens: int = 256
    temperature: float = 0.7
    top_p: float = 1.0
    seed: int | None = None
    tools: tuple[dict[str, Any], ...] = ()
    grammar: str = ""
    """The answer must be a sentence of this grammar (GBNF), where the back end takes grammars."""


class ChatReply(msgspec.Struct, frozen=True, kw_only=True):
    """What came back, with what the server says about itself."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    model: str = ""
    fingerprint: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_micros: int | None = None
    """Millionths of the price's currency; None where the back end has no price."""
    first_ms: int | None = None
    """Until the first piece of the answer; None where it came in one."""
    total_ms: int = 0
    attempts: int = 1


class BackendError(NoAnswer):
    """A back end did not answer. `code` is short and stable, the message a sentence without secrets."""

    def __init__(self, code: str, sentence: str, *, attempts: int = 1) -> None:
        super().__init__(sentence)
        self.code = code
        """`unreachable`, `timeout`, `overloaded`, `refused`, `busy`, `unreadable`, or `too_big` for what was not asked."""
        self.sentence = sentence
        self.attempts = attempts


class UnknownBackend(BackendError):
    """No back end of this name is configured."""

    def __init__(self, name: str) -> None:
        super().__init__("unknown", f"No language-model back end {name!r} is configured (PARLEY_LLM_…_URL).")


class Backend(Protocol):
    """Something that answers chat requests."""

    config: BackendConfig

    def chat(self, request: ChatRequest, *, on_text: OnText | None = None) -> ChatReply:
        """The answer. Raises `BackendError`."""
        ...


_configs: dict[str, BackendConfig] = {}
_seated: dict[str, Backend] = {}
_places: list[Path] = []
"""The folder of the locks that count calls at the same time in all processes; none counts in each alone."""


def configure(configs: Mapping[str, BackendConfig], *, places: Path | None = None) -> None:
    """Say once, at the start of the process, which back ends there are, and where calls at the same time are counted."""
    _places[:] = [places] if places else []
    _configs.clear()
    _configs.update(configs)
    _seated.clear()


LOOK_EVERY_S = 1.0
"""How often a file that is followed is looked at, at most."""


class _Followed(msgspec.Struct):
    """A file that names back ends, and what of it is known."""

    file: Path | None = None
    changed_ns: int = 0
    look_at: float = 0.0


_followed = _Followed()


def follow(file: Path | None) -> None:
    """Have back ends that `file` names later join in: variables as JSON, as a lab writes them. None follows nothing."""
    _followed.file, _followed.changed_ns, _followed.look_at = file, _changed_ns(file), 0.0


def _changed_ns(file: Path | None) -> int:
    try:
        return 0 if file is None else file.stat().st_mtime_ns
    except OSError:
        return 0


def _notice() -> None:
    """Take in what the followed file has come to name; what is known already stays as it is."""
    now = time.monotonic()
    if _followed.file is None or now < _followed.look_at:
        return
    _followed.look_at = now + LOOK_EVERY_S
    changed_ns = _changed_ns(_followed.file)
    if changed_ns == _followed.changed_ns:
        return
    _followed.changed_ns = changed_ns
    try:
        named = read(json.loads(_followed.file.read_text(encoding="utf-8")))
    except (OSError, ValueError):  # Gone with the lab that wrote it.
        return
    for name, config in named.items():
        _configs.setdefault(name, config)


def configured() -> tuple[BackendConfig, ...]:
    """Every back end there is, by name."""
    _notice()
    return tuple(_configs[name] for name in sorted(_configs))


def seat(backend: Backend) -> None:
    """Put a back end that is made already (a fake) in the place of its name."""
    _configs[backend.config.name] = backend.config
    _seated[backend.config.name] = backend


def get(name: str) -> Backend:
    """The back end of this name, one for the whole process. Raises `UnknownBackend`."""
    if name not in _seated:
        _notice()
        if name not in _configs:
            raise UnknownBackend(name)
        from agents.backends.chat import ChatBackend

        _seated.setdefault(name, ChatBackend(_configs[name], places=_places[0] if _places else None))
    return _seated[name]
