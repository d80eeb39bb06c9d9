"""A chat-completions server that misbehaves as a test says: one scripted answer after the other, on loopback."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Answer: TypeAlias = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """One request; `server.answers` says what becomes of it."""

    server: "Server"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        with self.server.lock:
            self.server.requests.append((dict(self.headers), json.loads(body)))
            answer = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
        answer(self)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def begin(self, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", "text/event-stream" if status == 200 else "application/json")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def event(self, document: object) -> None:
        self.wfile.write(f"data: {json.dumps(document)}\n\n".encode())
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answers: list[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = answers
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def serving(*answers: Answer) -> Iterator[Server]:
    server = Server(list(answers))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def chunk(content: str | None = None, *, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    fields = delta if content is None else {"content": content, **delta}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "tiny-1",
        "system_fingerprint": "fp-7",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def usage(prompt: int, completion: int) -> dict[str, Any]:
    return chunk() | {
        "choices": [],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
    }


def says(*pieces: str, prompt: int = 12, completion: int = 3) -> Answer:
    def answer(handler: Handler) -> None:
        handler.begin()
        for piece in pieces:
            handler.event(chunk(piece))
        handler.event(chunk(finish="stop"))
        handler.event(usage(prompt, completion))
        handler.wfile.write(b"data: [DONE]\n\n")

    return answer


def fails(status: int, **headers: str) -> Answer:
    def answer(handler: Handler) -> None:
        handler.begin(status, **headers)
        handler.wfile.write(b'{"error": {"message": "secret-of-the-server"}}')

    return answer
