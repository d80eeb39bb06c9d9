"""The inference server answers the client of everything else, several at a time, and turns away what it cannot take."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from agents.backends import BackendError, ChatMessage, ChatRequest
from agents.inference import server
from agents.inference.engine import Chunk, Emit, EngineError
from tests.agents.inference.serving import client, running

pytestmark = pytest.mark.language_model

HELLO = ChatRequest(messages=(ChatMessage("user", "Hello"),), max_tokens=5)


class Parrot:
    """Says back what it was asked last, word by word; as a test needs it, slowly or not at all."""

    slots = 2

    def __init__(self, name: str = "parrot", *, pause_s: float = 0.0, error: EngineError | None = None) -> None:
        self.name = name
        self.loads = 0
        self.asked: list[dict[str, Any]] = []
        self.running = self.most = self.stopped = 0
        self._pause_s = pause_s
        self._error = error
        self._lock = threading.Lock()

    def load(self) -> None:
        self.loads += 1

    def complete(self, request: dict[str, Any]) -> Chunk:
        pieces: list[str] = []
        self.stream(request, lambda chunk: bool(pieces.append(_content(chunk))))
        message = {"role": "assistant", "content": "".join(pieces)}
        return {"id": "1", "object": "chat.completion", "created": 1, "choices": [_choice(message=message)]}

    def stream(self, request: dict[str, Any], emit: Emit) -> None:
        with self._lock:
            self.asked.append(request)
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            if self._error:
                raise self._error
            for word in request["messages"][-1]["content"].split(" "):
                time.sleep(self._pause_s)
                if emit(_chunk(_choice(delta={"content": f"{word} "}))):
                    self.stopped += 1
                    return
            emit(_chunk() | {"usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}})
        finally:
            with self._lock:
                self.running -= 1


def _choice(**fields: Any) -> Chunk:
    return {"index": 0, "finish_reason": None} | fields


def _chunk(*choices: Chunk) -> Chunk:
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "file", "choices": list(choices)}


def _content(chunk: Chunk) -> str:
    return chunk["choices"][0]["delta"]["content"] if chunk["choices"] else ""


def test_the_sites_client_gets_the_words_and_the_count_of_tokens():
    with running([Parrot()]) as url:
        reply = client(url, "parrot").chat(HELLO)
    assert (reply.text, reply.model, reply.input_tokens, reply.output_tokens) == ("Hello ", "parrot", 1, 2)


def test_a_whole_answer_can_be_had_too():
    with running([Parrot()]) as url:
        body = {"messages": [{"role": "user", "content": "a b"}]}
        answer = httpx2.post(f"{url}/chat/completions", json=body).json()
    assert answer["choices"][0]["message"]["content"] == "a b "
    assert answer["model"] == "parrot"  # Not the path of a file.


def test_a_model_is_loaded_once_and_a_request_names_its_model():
    first, second = Parrot("first"), Parrot("second")
    with running([first, second]) as url, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: client(url, "second").chat(HELLO), range(4)))
        listed = httpx2.get(f"{url}/models").json()
        health = httpx2.get(url.replace("/v1", "/health")).json()
    assert (first.loads, second.loads) == (0, 1)
    assert [model["id"] for model in listed["data"]] == ["first", "second"]
    assert health == {"status": "ok", "models": {"first": "not loaded", "second": "ready"}}


def test_a_model_that_cannot_be_loaded_is_told_by_health_and_by_the_answer():
    class Broken(Parrot):
        def load(self) -> None:
            raise EngineError(500, "no such file")

    with running([Broken()]) as url:
        with pytest.raises(BackendError) as raised:
            client(url, "parrot").chat(HELLO)
        health = httpx2.get(url.replace("/v1", "/health"))
    assert raised.value.code == "overloaded"
    assert (health.status_code, health.json()["models"]) == (503, {"parrot": "no such file"})


def test_answers_run_side_by_side_up_to_the_slots():
    parrot = Parrot(pause_s=0.05)
    with running([parrot]) as url, ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda k: _ask(url, f"number {k}"), range(6)))
    assert replies == [f"number {k} " for k in range(6)]
    assert parrot.most == 2


def _ask(url: str, text: str) -> str:
    return client(url, "parrot").chat(ChatRequest(messages=(ChatMessage("user", text),))).text


def test_more_than_the_queue_holds_is_turned_away(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "LONGEST_QUEUE", 0)
    parrot = Parrot()
    turned_away = threading.Semaphore(0)
    answered = threading.Event()
    monkeypatch.setattr(parrot, "stream", lambda request, emit: answered.wait(60) and Parrot().stream(request, emit))
    body = {"messages": [{"role": "user", "content": "a"}]}

    def ask(url: str) -> int:
        status = httpx2.post(f"{url}/chat/completions", json=body, timeout=60).status_code
        if status != 200:
            turned_away.release()
        return status

    with running([parrot]) as url, ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(ask, url) for _ in range(5)]
        assert all(turned_away.acquire(timeout=30) for _ in range(3))
        answered.set()
    assert sorted(one.result() for one in asked) == [200, 200, 503, 503, 503]


def test_who_hangs_up_is_not_written_for_any_longer():
    parrot = Parrot(pause_s=0.02)
    with running([parrot]) as url:
        body = {"messages": [{"role": "user", "content": "word " * 500}], "stream": True}
        with httpx2.stream("POST", f"{url}/chat/completions", json=body) as response:
            next(response.iter_lines())
        deadline = time.monotonic() + 5
        while parrot.running and time.monotonic() < deadline:
            time.sleep(0.01)
    assert (parrot.running, parrot.stopped) == (0, 1)


def test_an_answer_is_never_longer_than_the_server_allows():
    parrot = Parrot()
    with running([parrot]) as url:
        client(url, "parrot").chat(ChatRequest(messages=HELLO.messages, max_tokens=10**6))
    assert parrot.asked[0]["max_tokens"] == server.LONGEST_ANSWER_TOKENS


def test_an_error_before_the_first_word_is_a_status_even_of_a_stream():
    with running([Parrot(error=EngineError(400, "too long"))]) as url, pytest.raises(BackendError) as raised:
        client(url, "parrot").chat(HELLO)
    assert raised.value.code == "refused"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/chat/completions", b"{", 400),
        ("/chat/completions", b"\xff", 400),
        ("/chat/completions", b"[" * 5000, 400),
        ("/chat/completions", b'{"messages": "no"}', 400),
        ("/chat/completions", b'{"messages": []}', 400),
        ("/chat/completions", b'{"messages": [{"role": "user", "content": "a"}], "model": "other"}', 404),
        ("/chat/completions", b'{"messages": [], "pad": "' + b"x" * server.LONGEST_BODY + b'"}', 413),
        ("/completions", b"{}", 404),
    ],
    ids=["broken", "no-utf8", "deep", "wrong-type", "empty", "other-model", "too-large", "other-path"],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(path: str, body: bytes, status: int):
    with running([Parrot()]) as url:
        answer = httpx2.post(f"{url}{path}", content=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_a_server_with_a_key_answers_nobody_else_but_says_that_it_lives():
    with running([Parrot()], key="k-1") as url:
        assert httpx2.get(f"{url}/models").status_code == 401
        assert httpx2.get(f"{url}/models", headers={"authorization": "Bearer k-2"}).status_code == 401
        assert httpx2.get(url.replace("/v1", "/health")).status_code == 200
        assert client(url, "parrot", key="k-1").chat(HELLO).text == "Hello "
