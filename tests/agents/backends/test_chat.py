"""A call to a model ends in time, is tried again where that helps, and tells no secret, whatever the server does."""

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agents.backends import BackendConfig, BackendError, ChatMessage, ChatRequest
from agents.backends.chat import REST_S, ChatBackend
from agents.backends.config import Secret
from tests.agents.backends.servers import Answer, Handler, chunk, fails, says, serving

pytestmark = pytest.mark.language_model

HELLO = ChatRequest(messages=(ChatMessage("user", "Hello"),))


class Time:
    """A clock that moves only when somebody sleeps on it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def backend(url: str, time: Time | None = None, **changes: Any) -> ChatBackend:
    config = BackendConfig(**{"name": "test", "url": url, "model": "tiny", "key": Secret("k-123"), **changes})
    return ChatBackend(config) if time is None else ChatBackend(config, clock=time.clock, sleep=time.sleep)


def error_of(call: Callable[[], object]) -> BackendError:
    with pytest.raises(BackendError) as raised:
        call()
    assert "k-123" not in str(raised.value)
    assert "secret-of-the-server" not in str(raised.value)
    return raised.value


def test_a_reply_says_what_the_server_said_of_itself_and_what_it_cost():
    heard: list[str] = []
    with serving(says("Good", " day")) as server:
        reply = backend(server.url, input_price=0.5, output_price=2.0).chat(HELLO, on_text=heard.append)
    assert (reply.text, reply.finish_reason, reply.model, reply.fingerprint) == ("Good day", "stop", "tiny-1", "fp-7")
    assert (reply.input_tokens, reply.output_tokens, reply.cost_micros, reply.attempts) == (12, 3, 12, 1)
    assert reply.first_ms is not None
    assert heard == ["Good", "Good day"]


def test_a_request_carries_the_key_the_sampling_and_the_servers_own_options():
    with serving(says("ok")) as server:
        asked = ChatRequest(
            messages=HELLO.messages, max_tokens=7, temperature=0.2, top_p=0.9, seed=5, grammar="root ::= x"
        )
        backend(server.url, options={"top_k": 20}, grammar=True).chat(asked)
        backend(server.url).chat(asked)
    (headers, body), (_, plain) = server.requests
    assert headers["authorization"] == "Bearer k-123"
    assert (body["model"], body["max_tokens"], body["temperature"], body["top_p"], body["seed"]) == (
        "tiny",
        7,
        0.2,
        0.9,
        5,
    )
    assert (body["top_k"], body["grammar"]) == (20, "root ::= x")
    assert "grammar" not in plain  # A server that knows none is sent none.


def test_tool_calls_are_put_together_from_their_pieces():
    def answer(handler: Handler) -> None:
        handler.begin()
        first = {"index": 0, "id": "a", "type": "function", "function": {"name": "make_offer", "arguments": '{"pri'}}
        handler.event(chunk(tool_calls=[first]))
        handler.event(chunk(tool_calls=[{"index": 0, "function": {"arguments": 'ce": 5}'}}]))
        handler.event(chunk(finish="tool_calls"))
        handler.wfile.write(b"data: [DONE]\n\n")

    with serving(answer) as server:
        reply = backend(server.url).chat(HELLO)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("make_offer", '{"price": 5}')]
    assert (reply.input_tokens, reply.cost_micros) == (None, None)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_overloaded_server_is_asked_again_with_growing_pauses(status: int):
    time = Time()
    with serving(fails(status), fails(status), says("at last")) as server:
        reply = backend(server.url, time).chat(HELLO)
    assert (reply.text, reply.attempts) == ("at last", 3)
    assert len(time.slept) == 2
    assert time.slept[0] < time.slept[1]


def test_a_pause_that_the_server_asks_for_is_kept():
    time = Time()
    with serving(fails(429, retry_after="3"), says("ok")) as server:
        backend(server.url, time).chat(HELLO)
    assert time.slept == [3.0]


def test_tries_are_bounded():
    time = Time()
    with serving(fails(500)) as server:
        error = error_of(lambda: backend(server.url, time, attempts=3).chat(HELLO))
    assert (error.code, error.attempts, len(server.requests)) == ("overloaded", 3, 3)


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refused_call_is_not_tried_again(status: int):
    with serving(fails(status)) as server:
        error = error_of(lambda: backend(server.url, Time()).chat(HELLO))
    assert (error.code, len(server.requests)) == ("refused", 1)


def test_a_server_that_says_nothing_is_given_up_in_time():
    stop = threading.Event()

    def silence(handler: Handler) -> None:
        stop.wait(5)

    with serving(silence) as server:
        try:
            assert error_of(lambda: backend(server.url, timeout_s=0.3).chat(HELLO)).code == "timeout"
        finally:
            stop.set()


def test_a_server_that_never_stops_talking_is_given_up_in_time():
    stop = threading.Event()

    def babble(handler: Handler) -> None:
        handler.begin()
        while not stop.wait(0.02):
            try:
                handler.event(chunk("x"))
            except OSError:
                return

    with serving(babble) as server:
        try:
            assert error_of(lambda: backend(server.url, timeout_s=0.4, attempts=1).chat(HELLO)).code == "timeout"
        finally:
            stop.set()


def test_an_endless_reply_is_cut_where_no_move_can_be_that_long():
    def flood(handler: Handler) -> None:
        handler.begin()
        for _ in range(200):
            try:
                handler.event(chunk("word " * 200))
            except OSError:
                return

    with serving(flood) as server:
        reply = backend(server.url).chat(HELLO)
    assert reply.finish_reason == "length"
    assert len(reply.text) < 62_000


def broken_off(handler: Handler) -> None:
    handler.begin(content_length="5000")
    handler.event(chunk("Good"))
    handler.connection.shutdown(socket.SHUT_RDWR)


def not_json(handler: Handler) -> None:
    handler.begin()
    handler.wfile.write(b"data: {no json\n\n")


@pytest.mark.parametrize("answer", [broken_off, not_json])
def test_an_answer_that_breaks_off_or_is_none_is_asked_for_again(answer: Answer):
    heard: list[str] = []
    with serving(answer, says("whole")) as server:
        reply = backend(server.url, Time()).chat(HELLO, on_text=heard.append)
    assert (reply.text, reply.attempts) == ("whole", 2)
    assert heard[-1] == "whole"


def test_a_server_that_is_down_is_left_alone_for_a_moment():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    time = Time()
    down = backend(url, time, attempts=2)
    assert error_of(lambda: down.chat(HELLO)).code == "unreachable"
    tries = len(time.slept)
    assert error_of(lambda: down.chat(HELLO)).code == "unreachable"
    assert len(time.slept) == tries  # The second caller did not wait for tries of its own.
    time.now += REST_S + 1
    error_of(lambda: down.chat(HELLO))
    assert len(time.slept) > tries


def test_no_more_calls_run_at_once_than_the_limit_and_all_are_answered():
    running, most, lock = 0, 0, threading.Lock()

    def answer(handler: Handler) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.03)
        with lock:
            running -= 1
        says("ok")(handler)

    with serving(answer) as server:
        limited = backend(server.url, concurrency=2)
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda _: limited.chat(HELLO).text, range(8)))
    assert replies == ["ok"] * 8
    assert most == 2


def test_half_an_emoji_in_a_reply_is_a_reply():
    with serving(says("fine \ud83d")) as server:
        assert backend(server.url).chat(HELLO).text == "fine \ud83d"
