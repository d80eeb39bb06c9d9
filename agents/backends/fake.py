"""A back end that answers from a script: for tests and for trying a prompt without a model.

Deterministic: the same script gives the same answers in the same order. It keeps every request, so
that a test can look for what must not be in one.
"""

import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias

from agents.backends import BackendError, ChatReply, ChatRequest, OnText
from agents.backends.config import BackendConfig

Answer: TypeAlias = str | ChatReply | BackendError
Script: TypeAlias = Callable[[ChatRequest], Answer]


class FakeBackend:
    """Answers with what `script` makes of a request, or with `answers` one after the other, the last for ever."""

    def __init__(
        self,
        answers: Iterable[Answer] = (),
        *,
        script: Script | None = None,
        name: str = "fake",
        grammar: bool = False,
    ) -> None:
        self.config = BackendConfig(name=name, url="fake://", model="fake", grammar=grammar)
        self.requests: list[ChatRequest] = []
        self._answers = list(answers)
        self._script = script
        self._lock = threading.Lock()

    def chat(self, request: ChatRequest, *, on_text: OnText | None = None) -> ChatReply:
        """The next answer."""
        with self._lock:
            self.requests.append(request)
            answer: Answer | None = None if self._script else self._next()
        if self._script:
            answer = self._script(request)
        if isinstance(answer, BackendError):
            raise answer
        assert answer is not None
        reply = answer if isinstance(answer, ChatReply) else ChatReply(text=answer, finish_reason="stop", model="fake")
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply

    def _next(self) -> Answer:
        if not self._answers:
            raise AssertionError("The fake back end has no answer.")
        return self._answers[0] if len(self._answers) == 1 else self._answers.pop(0)
