"""Language models as opponents in training: every answer is asked for once, and not more often than was allowed.

Here: a back end that answers from the run's cache and counts what it asks of the server. Not here: servers
(`agents.backends`), prompts and moves (`agents.llm`).

Contract: an answer is kept under back end, model and the whole request, its seed included, so that games
of one group, a resumed run and the same run again ask nothing twice. The budget (answers, and where one is set
tokens) holds over restarts; when it is used up the run stops with a sentence, and going on needs a larger one.
Failed calls count too. It is spent on what is learned from alone: demonstrations, the search for tricks, looks and
the measure at the end meet the same strategies without a model (`quiet`).
"""

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from agents import backends, registry
from agents.backends import Backend, ChatReply, ChatRequest, OnText
from agents.base import Kind
from training.guards import Stopped

FILE = "model_calls.jsonl"
STAND_IN = "linear"
"""Who plays in the place of a model that decides for itself, where none is asked."""


def asks_models(slug: str) -> bool:
    """Whether an opponent's moves or words come from a language model."""
    return registry.get(slug).kind in (Kind.MODEL, Kind.NARRATOR)


def quiet(slugs: Sequence[str]) -> tuple[str, ...]:
    """The same opponents, each that asks a model replaced by its strategy, or by `STAND_IN` where it has none."""
    return tuple(registry.get(slug).plays_as or STAND_IN if asks_models(slug) else slug for slug in slugs)


def seat_models(folder: Path, *, calls: int, tokens: int = 0) -> None:
    """Let every configured back end answer through the cache in a run's folder, within its budget."""
    meter = Metered.open(folder, budget=calls, tokens=tokens)
    for each in backends.configured():
        backends.seat(meter.around(backends.get(each.name)))


class Spent(NamedTuple):
    """What a run has asked of language models so far."""

    calls: int
    tokens: int


def spent(folder: Path) -> Spent:
    """What stands in a run's cache, for whoever watches it."""
    meter = Metered.open(folder, budget=0)
    return Spent(meter.asked, meter.tokens)


class _Kept(msgspec.Struct, frozen=True):
    """A line of the cache; a call that failed has no reply and is counted alone."""

    key: str
    reply: ChatReply | None


class Metered:
    """The answers that a run has, and how many it may still ask for."""

    def __init__(self, file: Path, *, budget: int, tokens: int = 0) -> None:
        self._file = file
        self._budget = budget
        self._most_tokens = tokens
        self._replies: dict[str, ChatReply] = {}
        self._lock = threading.Lock()
        """Games of a language model wait in threads of their own."""
        self.asked = 0
        """Calls that reached a server, over all starts of the run."""
        self.tokens = 0
        """Tokens that these calls read and wrote, as the servers counted them."""
        for kept in self._stored():
            self._count(kept.key, kept.reply)
            self.asked += 1

    @classmethod
    def open(cls, folder: Path, *, budget: int, tokens: int = 0) -> "Metered":
        """The cache of a run's folder; 0 `tokens` for no limit of their own."""
        return cls(folder / FILE, budget=budget, tokens=tokens)

    def _count(self, key: str, reply: ChatReply | None) -> None:
        if reply is not None:
            self._replies[key] = reply
            self.tokens += (reply.input_tokens or 0) + (reply.output_tokens or 0)

    def around(self, backend: Backend) -> "CachedBackend":
        """A back end that answers through this cache."""
        return CachedBackend(backend, self)

    def kept(self, key: str) -> ChatReply | None:
        """An answer that was given before."""
        return self._replies.get(key)

    @contextmanager
    def one_call(self, key: str) -> Iterator[list[ChatReply]]:
        """Room for one call; what is put into the list is kept. Raises `Stopped` where none is left."""
        with self._lock:
            if self.asked >= self._budget:
                raise Stopped(
                    f"The opponents may ask language models for {self._budget:,} answers (model_calls) and have had them: "
                    "allow more in a new run, or choose opponents that need fewer."
                )
            if 0 < self._most_tokens <= self.tokens:
                raise Stopped(
                    f"The opponents' language models may read and write {self._most_tokens:,} tokens (model_tokens) and have: "
                    "allow more in a new run, or choose opponents that need fewer."
                )
            self.asked += 1
        answered: list[ChatReply] = []
        try:
            yield answered
        finally:
            reply = answered[0] if answered else None
            with self._lock:
                self._count(key, reply)
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
