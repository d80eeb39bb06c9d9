"""The HTTP face of the models: `/v1/chat/completions`, `/v1/models`, `/health`, as OpenAI's clients expect them.

A plain ASGI application. Each model answers in threads of its own, as many as it has slots; a
request beyond a bounded queue is turned away with 503 instead of being kept waiting for minutes,
and a client that hangs up ends what is being written for it.
"""

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

from agents.inference.engine import Chunk, Engine, EngineError

log = logging.getLogger(__name__)

Scope: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]

LONGEST_BODY = 262_144
LONGEST_ANSWER_TOKENS = 1_024
DEFAULT_ANSWER_TOKENS = 256
LONGEST_QUEUE = 24
"""Requests that may wait for a slot of one model."""


class ChatRequest(msgspec.Struct, kw_only=True):
    """What is read of a request; other fields are ignored, as other servers do."""

    model: str = ""
    messages: list[dict[str, Any]]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stream: bool = False
    stream_options: dict[str, Any] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    grammar: str | None = None
    """llama.cpp's own: the answer must be a sentence of this grammar (GBNF)."""

    def for_engine(self) -> dict[str, Any]:
        """The request as an engine takes it, its answer bounded."""
        fields = {
            name: value
            for name in self.__struct_fields__
            if name not in ("model", "stream", "stream_options", "max_completion_tokens")
            and (value := getattr(self, name)) is not None
        }
        wanted = self.max_completion_tokens or self.max_tokens or DEFAULT_ANSWER_TOKENS
        fields["max_tokens"] = max(1, min(LONGEST_ANSWER_TOKENS, wanted))
        if isinstance(self.stop, str):
            fields["stop"] = [self.stop]
        if self.stream:
            fields["stream_options"] = {"include_usage": True}
        return fields


class Desk:
    """One model and the requests for it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.error = ""
        self.ready = False
        self._pool = ThreadPoolExecutor(engine.slots, thread_name_prefix=engine.name)
        self._in_hand = 0
        self._loading: asyncio.Future[None] | None = None

    async def load(self) -> None:
        """Load the model once; whoever comes meanwhile waits for the same load."""
        if self.ready:
            return
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._load())
        await asyncio.shield(self._loading)

    async def _load(self) -> None:
        started = time.monotonic()
        try:
            await asyncio.get_running_loop().run_in_executor(self._pool, self.engine.load)
        except EngineError as error:
            self.error, self._loading = error.sentence, None
            log.error("%s: %s", self.engine.name, error.sentence)
            raise
        self.ready, self.error = True, ""
        log.info("%s is ready after %.1f s", self.engine.name, time.monotonic() - started)

    async def run(self, work: Callable[[], Any]) -> Any:
        """Do `work` in a thread of this model, or raise `EngineError` where too many wait already."""
        if self._in_hand >= self.engine.slots + LONGEST_QUEUE:
            raise EngineError(503, "Too many requests are waiting for this model; try again in a moment.")
        self._in_hand += 1
        try:
            await self.load()
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._in_hand -= 1


class Application:
    """The ASGI application over some engines; the first is what a request without a model's name gets."""

    def __init__(self, engines: Sequence[Engine], *, key: str = "") -> None:
        self.desks = {engine.name: Desk(engine) for engine in engines}
        self._key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            await self._route(scope, receive, send)
        except EngineError as error:
            await _send_error(send, error.status, error.sentence)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"].rstrip("/") or "/"
        if path == "/health" and method == "GET":
            await self._health(send)
            return
        if self._key and not hmac.compare_digest(_header(scope, b"authorization"), f"Bearer {self._key}".encode()):
            raise EngineError(401, "This server wants its key as a bearer token.")
        match method, path:
            case "GET", "/v1/models":
                listed = [{"id": name, "object": "model", "created": 0, "owned_by": "parley"} for name in self.desks]
                await _send_json(send, 200, {"object": "list", "data": listed})
            case "POST", "/v1/chat/completions":
                await self._chat(await _body(receive), receive, send)
            case _:
                raise EngineError(404, "This server knows /v1/chat/completions, /v1/models and /health.")

    async def _health(self, send: Send) -> None:
        models = {name: desk.error or ("ready" if desk.ready else "not loaded") for name, desk in self.desks.items()}
        broken = all(desk.error for desk in self.desks.values())
        await _send_json(send, 503 if broken else 200, {"status": "error" if broken else "ok", "models": models})

    async def _chat(self, body: bytes, receive: Receive, send: Send) -> None:
        try:
            request = msgspec.json.decode(body, type=ChatRequest)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise EngineError(400, f"The request cannot be read: {error}") from error
        desk = self.desks.get(request.model) if request.model else next(iter(self.desks.values()))
        if desk is None:
            raise EngineError(404, f"There is no model {request.model!r} here, but {', '.join(self.desks)}.")
        if not request.messages:
            raise EngineError(400, "The request has no messages.")
        asked = request.for_engine()
        if not request.stream:
            answer = await desk.run(lambda: desk.engine.complete(asked))
            await _send_json(send, 200, answer | {"model": desk.engine.name})
            return
        usage = bool((request.stream_options or {}).get("include_usage"))
        await _stream(desk, asked, receive, send, usage=usage)


async def _stream(desk: Desk, asked: dict[str, Any], receive: Receive, send: Send, *, usage: bool) -> None:
    """Server-sent events while the model writes; an error before the first word is an HTTP status."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[Chunk | None] = asyncio.Queue()
    gone = False

    def emit(chunk: Chunk) -> bool:
        loop.call_soon_threadsafe(pieces.put_nowait, chunk)
        return gone

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True

    async def work() -> None:
        try:
            await desk.run(lambda: desk.engine.stream(asked, emit))
        finally:
            pieces.put_nowait(None)

    writing, watching = asyncio.create_task(work()), asyncio.create_task(watch())
    try:
        first = await pieces.get()
        if first is None:
            await writing
        await _start(send, 200, b"text/event-stream")
        piece = first
        while piece is not None and not gone:
            if usage or piece.get("choices"):
                await _send_event(send, msgspec.json.encode(piece | {"model": desk.engine.name}))
            piece = await pieces.get()
        if not gone:
            try:
                await writing
            except EngineError as error:
                await _send_event(send, msgspec.json.encode({"error": {"message": error.sentence}}))
            await _send_event(send, b"[DONE]")
            await send({"type": "http.response.body", "body": b""})
    finally:
        gone = True
        watching.cancel()
        with suppress(asyncio.CancelledError, EngineError):
            await writing


def _header(scope: Scope, name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")


async def _body(receive: Receive) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise EngineError(400, "The request was broken off.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LONGEST_BODY:
            raise EngineError(413, f"A request may be at most {LONGEST_BODY} bytes long.")
        if not message.get("more_body"):
            return b"".join(parts)


async def _start(send: Send, status: int, kind: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})


async def _send_json(send: Send, status: int, document: object) -> None:
    await _start(send, status, b"application/json")
    await send({"type": "http.response.body", "body": msgspec.json.encode(document)})


async def _send_event(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": b"data: " + data + b"\n\n", "more_body": True})


async def _send_error(send: Send, status: int, sentence: str) -> None:
    kind = "invalid_request_error" if status < 500 else "server_error"
    await _send_json(send, status, {"error": {"message": sentence, "type": kind, "code": status}})
