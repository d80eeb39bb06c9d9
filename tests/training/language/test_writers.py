"""A vLLM server is asked with token ids and believed in token ids."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from training.config import ConfigError
from training.language.playing import Question
from training.language.writers import VllmWriter


class Server(BaseHTTPRequestHandler):
    """Answers a prompt with its ids, doubled, as vLLM words it."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_GET(self) -> None:
        self._say({"object": "list", "data": [{"id": "tiny", "object": "model", "created": 0, "owned_by": "x"}]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(request)
        ids = [2 * number for number in request["prompt"]]
        choice = {"index": 0, "text": "", "finish_reason": "stop", "token_ids": ids}
        choice["logprobs"] = {"tokens": [], "token_logprobs": [-0.25] * len(ids), "top_logprobs": [], "text_offset": []}
        self._say({"id": "1", "object": "text_completion", "created": 0, "model": "tiny", "choices": [choice]})

    def _say(self, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Server.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_answers_come_in_the_order_of_the_questions_each_with_its_seed(url: str):
    questions = [Question([k, k + 1], 0.7, 100 + k, 9) for k in range(5)]
    found = VllmWriter(url, together=3).write(questions)
    assert [answer.ids for answer in found] == [[2 * k, 2 * k + 2] for k in range(5)]
    assert found[0].logprobs == [-0.25, -0.25]
    by_seed = {request["seed"]: request for request in Server.asked}
    assert {seed: request["prompt"] for seed, request in by_seed.items()} == {100 + k: [k, k + 1] for k in range(5)}
    assert all(request["return_token_ids"] for request in Server.asked)
    assert by_seed[100]["model"] == "tiny"
    assert (by_seed[100]["max_tokens"], by_seed[100]["temperature"]) == (9, 0.7)


def test_a_server_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    with pytest.raises(ConfigError, match="vLLM server does not answer"):
        VllmWriter("http://127.0.0.1:9", together=1).write([Question([1], 1.0, 1, 1)])
