"""One question to a model, and telling whoever listens what came of it.

Agents are pure and keep nothing, so a call is reported to a listener that whoever runs the turn has
set: a live room writes it into its log and shows that the agent is writing, a simulation counts.
Without a listener nothing is kept. Here: `Call`, `ask`, `listening`. Not here: storing calls
(`agents.models`), back ends.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import msgspec

from agents import backends
from agents.backends import BackendError, ChatReply, ChatRequest


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked, what came back and what it was taken for."""

    purpose: str
    """`move`, `repair` or `words`."""
    backend: str
    asked_model: str
    """The model's name in the request; what the server says it is, is in the reply."""
    prompt: str
    """Name and version of the prompt."""
    request: ChatRequest
    reply: ChatReply | None
    """None where the back end did not answer."""
    outcome: str
    """`used`, or a short reason why it was not: of a parse failure, of a narrator's check, of the back end."""
    detail: str = ""
    """The same for people."""
    used: bool = True


class Listener(NamedTuple):
    """Who is told."""

    on_call: Callable[[Call], None]
    on_text: Callable[[str], None] | None = None
    """Hears the answer while it is being written; not what it says is told on, but that it is."""


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have `listener` told of every call in this block, in this thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Asked(NamedTuple):
    """A question that was answered; say with `note` what became of the answer."""

    backend: str
    asked_model: str
    purpose: str
    prompt: str
    request: ChatRequest
    reply: ChatReply

    def note(self, outcome: str = "used", detail: str = "", *, used: bool | None = None) -> None:
        """Tell the listener; only `used` counts as used unless said otherwise."""
        _tell(
            Call(
                purpose=self.purpose,
                backend=self.backend,
                asked_model=self.asked_model,
                prompt=self.prompt,
                request=self.request,
                reply=self.reply,
                outcome=outcome,
                detail=detail,
                used=outcome == "used" if used is None else used,
            )
        )


def ask(backend: str, request: ChatRequest, *, purpose: str, prompt: str) -> Asked:
    """Put `request` to the back end of this name. Raises `BackendError`, which the listener is told of."""
    listener = _listener.get()
    model = ""
    try:
        found = backends.get(backend)
        model = found.config.model
        reply = found.chat(request, on_text=listener.on_text if listener else None)
    except BackendError as error:
        not_answered(backend, request, error, purpose=purpose, prompt=prompt, asked_model=model)
        raise
    return Asked(backend, model, purpose, prompt, request, reply)


def not_answered(
    backend: str, request: ChatRequest, error: BackendError, *, purpose: str, prompt: str, asked_model: str = ""
) -> None:
    """Tell the listener of a question that has no answer, whether it was put or not."""
    _tell(
        Call(
            purpose=purpose,
            backend=backend,
            asked_model=asked_model,
            prompt=prompt,
            request=request,
            reply=None,
            outcome=error.code,
            detail=error.sentence,
            used=False,
        )
    )


def _tell(call: Call) -> None:
    listener = _listener.get()
    if listener is not None:
        listener.on_call(call)
