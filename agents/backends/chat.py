"""Any OpenAI-compatible server: streamed calls with a deadline, bounded retries and a limit on how many at once.

The limit holds for all processes of one machine (`agents.backends.places`). A server that could not be reached is not asked again for a few
seconds, so that a room full of agents does not wait for it one after the other.
"""

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.backends import BackendError, ChatReply, ChatRequest, OnText, ToolCall
from agents.backends.config import BackendConfig
from agents.backends.places import NoPlace, Places

if TYPE_CHECKING:
    from openai import OpenAI

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 4.0
REST_S = 3.0
"""How long a server that cannot be reached is left alone."""
LONGEST_REPLY_CHARS = 60_000
"""Some 10,000 tokens and more; what a server sends beyond is not read."""


class _Failed(Exception):
    """One try that failed."""

    def __init__(self, code: str, sentence: str, *, again: bool, after_s: float = 0.0) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.again = again
        self.after_s = after_s


class ChatBackend:
    """One server and one of its models."""

    def __init__(
        self,
        config: BackendConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        places: Path | None = None,
    ) -> None:
        self.config = config
        self._clock = clock
        self._sleep = sleep
        self._places = Places(config.name, config.concurrency, folder=places)
        self._made: OpenAI | None = None
        self._making = threading.Lock()
        self._rests_until = float("-inf")

    def chat(self, request: ChatRequest, *, on_text: OnText | None = None) -> ChatReply:
        """The answer, after at most `attempts` tries and `timeout_s` seconds together."""
        started = self._clock()
        deadline = started + self.config.timeout_s
        if started < self._rests_until:
            raise BackendError("unreachable", f"The back end {self.config.name!r} could not be reached a moment ago.")
        try:
            with self._places.one(within_s=self.config.timeout_s):
                return self._tried(request, on_text, started=started, deadline=deadline)
        except NoPlace as full:
            raise BackendError("busy", f"The back end {self.config.name!r} has too many calls to answer.") from full

    def _tried(self, request: ChatRequest, on_text: OnText | None, *, started: float, deadline: float) -> ChatReply:
        for attempt in range(1, self.config.attempts + 1):
            try:
                return self._once(request, on_text, started=started, deadline=deadline, attempt=attempt)
            except _Failed as failed:
                pause = max(failed.after_s, self._pause(attempt))
                last = attempt == self.config.attempts or self._clock() + pause >= deadline
                if last or not failed.again:
                    if failed.code == "unreachable":
                        self._rests_until = self._clock() + REST_S
                    raise BackendError(failed.code, failed.sentence, attempts=attempt) from failed
                self._sleep(pause)
        raise AssertionError("every path above returns or raises")

    def _pause(self, attempt: int) -> float:
        """Longer after every try, and not the same for everybody."""
        return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (attempt - 1)) * (0.75 + random.random() / 2)

    def _once(
        self, request: ChatRequest, on_text: OnText | None, *, started: float, deadline: float, attempt: int
    ) -> ChatReply:
        import httpx2  # What the client itself is made of, and raises while a stream is read.
        import openai

        name = self.config.name
        left = max(0.05, deadline - self._clock())
        try:
            return self._read(request, on_text, left=left, started=started, deadline=deadline, attempt=attempt)
        except openai.APITimeoutError as error:
            raise _Failed("timeout", f"The back end {name!r} did not answer in time.", again=True) from error
        except openai.APIConnectionError as error:
            raise _Failed("unreachable", f"The back end {name!r} cannot be reached.", again=True) from error
        except openai.APIStatusError as error:
            status = error.status_code
            if status in (408, 409, 429) or status >= 500:
                after_s = _retry_after(error.response.headers.get("retry-after", ""))
                raise _Failed(
                    "overloaded", f"The back end {name!r} answered with status {status}.", again=True, after_s=after_s
                ) from error
            raise _Failed(
                "refused", f"The back end {name!r} refused the call: status {status}.", again=False
            ) from error
        except (openai.APIError, httpx2.HTTPError, ValueError) as error:
            # A stream that broke off, or that was no stream of chat completions.
            raise _Failed("unreadable", f"The answer of the back end {name!r} cannot be read.", again=True) from error

    def _read(
        self,
        request: ChatRequest,
        on_text: OnText | None,
        *,
        left: float,
        started: float,
        deadline: float,
        attempt: int,
    ) -> ChatReply:
        asked: dict[str, Any] = {
            "model": self.config.model,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "stream": True,
            "stream_options": {"include_usage": True},
            "timeout": left,
        }
        if request.seed is not None:
            asked["seed"] = request.seed
        if request.tools:
            asked["tools"] = list(request.tools)
        extra = dict(self.config.options)
        if request.grammar and self.config.grammar:
            extra["grammar"] = request.grammar
        if extra:
            asked["extra_body"] = extra
        heard = _Heard()
        with self._client().chat.completions.create(**asked) as stream:
            for chunk in stream:
                if heard.take(chunk):
                    if heard.first_at is None:
                        heard.first_at = self._clock()
                    if on_text is not None:
                        on_text(heard.text)
                if self._clock() > deadline:
                    raise _Failed("timeout", f"The back end {self.config.name!r} took too long.", again=False)
                if len(heard.text) > LONGEST_REPLY_CHARS:
                    heard.finish_reason = "length"
                    break
        return ChatReply(
            text=heard.text,
            tool_calls=heard.tool_calls(),
            finish_reason=heard.finish_reason,
            model=heard.model,
            fingerprint=heard.fingerprint,
            input_tokens=heard.input_tokens,
            output_tokens=heard.output_tokens,
            cost_micros=self.config.cost_micros(heard.input_tokens, heard.output_tokens),
            first_ms=None if heard.first_at is None else _ms(heard.first_at - started),
            total_ms=_ms(self._clock() - started),
            attempts=attempt,
        )

    def _client(self) -> "OpenAI":
        """The client, made at the first call: importing it takes a good part of a second."""
        with self._making:
            if self._made is None:
                from openai import OpenAI

                self._made = OpenAI(
                    base_url=self.config.url,
                    api_key=self.config.key.reveal() or "none",
                    max_retries=0,
                    organization="",
                    project="",
                )
            return self._made


class _Heard:
    """What a stream has said so far."""

    def __init__(self) -> None:
        self.text = ""
        self.finish_reason = ""
        self.model = ""
        self.fingerprint = ""
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.first_at: float | None = None
        self._calls: dict[int, list[str]] = {}

    def take(self, chunk: Any) -> bool:
        """Take in one piece; whether it said something."""
        self.model = chunk.model or self.model
        self.fingerprint = chunk.system_fingerprint or self.fingerprint
        if chunk.usage is not None:
            self.input_tokens, self.output_tokens = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
        said = False
        for choice in chunk.choices[:1]:
            self.finish_reason = choice.finish_reason or self.finish_reason
            if choice.delta is None:
                continue
            if choice.delta.content:
                self.text += choice.delta.content
                said = True
            for call in choice.delta.tool_calls or ():
                spelled = self._calls.setdefault(call.index or 0, ["", ""])
                if call.function is not None:
                    spelled[0] += call.function.name or ""
                    spelled[1] += call.function.arguments or ""
                    said = True
        return said

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The functions to call, in order."""
        return tuple(ToolCall(*self._calls[index]) for index in sorted(self._calls))


def _retry_after(text: str) -> float:
    """Seconds that a server asks to be left alone, at most a few."""
    try:
        return min(10.0, max(0.0, float(text)))
    except ValueError:
        return 0.0


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
