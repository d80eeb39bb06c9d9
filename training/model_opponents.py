"""Language models as opponents in training: every answer is asked for once, and not more often than was allowed.

Here: a back end that answers from the run's cache and counts what it asks of the server. Not here: servers
(`agents.backends`), prompts and moves (`agents.llm`).

Contract: an answer is kept under back end, model and the whole request, its seed included, so that games
of one group, a resumed run and the same run again ask nothing twice. The budget holds over restarts; when
it is used up the run stops with a sentence, and going on needs a larger one. Failed calls count too.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from agents.backends import Backend, ChatReply, ChatRequest, OnText
from training.guards import Stopped

FILE = "model_calls.jsonl"


class _Kept(msgspec.Struct, frozen=True):
    """A line of the cache; a call that failed has no reply and is counted alone."""

    key: str
    reply: ChatReply | None


class Metered:
    """The answers that a run has, and how many it may still ask for."""

    def __init__(self, file: Path, *, budget: int) -> None:
        self._file = file
        self._budget = budget
        self._replies: dict[str, ChatReply] = {}
        self.asked = 0
        """Calls that reached a server, over all starts of the run."""
        for kept in self._stored():
            self.asked += 1
            if kept.reply is not None:
                self._replies[kept.key] = kept.reply

    @classmethod
    def open(cls, folder: Path, *, budget: int) -> "Metered":
        """The cache of a run's folder."""
        return cls(folder / FILE, budget=budget)

    def around(self, backend: Backend) -> "CachedBackend":
        """A back end that answers through this cache."""
        return CachedBackend(backend, self)

    def kept(self, key: str) -> ChatReply | None:
        """An answer that was given before."""
        return self._replies.get(key)

    @contextmanager
    def one_call(self, key: str) -> Iterator[list[ChatReply]]:
        """Room for one call; what is put into the list is kept. Raises `Stopped` where none is left."""
        if self.asked >= self._budget:
            raise Stopped(
                f"The opponents may ask language models for {self._budget:,} answers (game.model_calls) and have had them: "
                "allow more in a new run, or choose opponents that need fewer."
            )
        answered: list[ChatReply] = []
        self.asked += 1
        try:
            yield answered
        finally:
            reply = answered[0] if answered else None
            if reply is not None:
                self._replies[key] = reply
            with self._file.open("ab") as file:
                file.write(msgspec.json.encode(_Kept(key, reply)) + b"\n")

    def _stored(self) -> Iterator[_Kept]:
        if not self._file.exists():
            return
        *whole, _unfinished = self._file.read_bytes().split(b"\n")
        decoder = msgspec.json.Decoder(_Kept)
        for line in whole:
            yield decoder.decode(line)


class CachedBackend:
    """A back end behind a run's cache and budget."""

    def __init__(self, backend: Backend, meter: Metered) -> None:
        self.config = backend.config
        self._backend = backend
        self._meter = meter

    def chat(self, request: ChatRequest, *, on_text: OnText | None = None) -> ChatReply:
        """The answer, kept or new. Raises `BackendError` or `Stopped`."""
        told = msgspec.json.encode((self.config.name, self.config.model, request))
        key = hashlib.sha256(told).hexdigest()
        if (kept := self._meter.kept(key)) is not None:
            return kept
        with self._meter.one_call(key) as answered:
            answered.append(self._backend.chat(request, on_text=on_text))
        return answered[0]
