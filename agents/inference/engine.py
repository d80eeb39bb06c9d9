"""What the server asks of a model, whichever library runs it.

A request and its answers are the JSON objects of OpenAI's chat completions, already checked and cut
down to the fields in `server`. Not here: HTTP, any library.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

Chunk: TypeAlias = dict[str, Any]
Emit: TypeAlias = Callable[[Chunk], bool]
"""Takes the next piece of a streamed answer; true asks the engine to stop."""


class EngineError(Exception):
    """The model cannot answer this request; `status` is HTTP's, the message a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Engine(Protocol):
    """One loaded (or loadable) model."""

    name: str
    slots: int
    """Answers it can write at the same time."""

    def load(self) -> None:
        """Get ready; called once, before the first request. Raises `EngineError`."""
        ...

    def complete(self, request: dict[str, Any]) -> Chunk:
        """One whole answer. Raises `EngineError`."""
        ...

    def stream(self, request: dict[str, Any], emit: Emit) -> None:
        """The answer piece by piece. Raises `EngineError`."""
        ...
