"""The embedded model answers offline, several at once, within a grammar, and keeps nobody's secrets in its name."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from agents.backends import BackendError, ChatMessage, ChatRequest
from agents.inference import embedded
from agents.inference.llama import LlamaEngine
from tests.agents.inference.serving import client, running

pytestmark = [
    pytest.mark.language_model,
    pytest.mark.slow,
    pytest.mark.skipif(bool(embedded.missing()), reason=f"not installed: {', '.join(embedded.missing())}"),
    pytest.mark.xdist_group("embedded"),
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    path = embedded.model_file()
    assert path is not None
    with running([LlamaEngine(path, name=embedded.NAME, threads=1, slots=3)]) as url:
        yield url


def ask(url: str, text: str, **how: object) -> ChatRequest:
    return ChatRequest(**{"messages": (ChatMessage("user", text),), "max_tokens": 12, "temperature": 0.0, **how})


def test_it_answers_the_sites_client(url: str):
    reply = client(url, embedded.NAME).chat(ask(url, "Say hello."))
    assert reply.text
    assert reply.model == embedded.NAME
    assert reply.input_tokens
    assert reply.output_tokens
    assert reply.finish_reason in ("stop", "length")


def test_an_answer_stays_within_its_grammar(url: str):
    grammar = 'root ::= ("yes" | "no") "."'
    reply = client(url, embedded.NAME, grammar=True).chat(ask(url, "Is water wet?", grammar=grammar))
    assert reply.text in ("yes.", "no.")


def test_three_are_answered_at_the_same_time(url: str):
    with ThreadPoolExecutor(3) as pool:
        replies = list(pool.map(lambda k: client(url, embedded.NAME).chat(ask(url, f"Count to {k}.")), (3, 4, 5)))
    assert all(reply.text for reply in replies)


@pytest.mark.parametrize(
    "asked",
    [ask("", "word " * 4000), ask("", "Hello", grammar="root ::= (")],
    ids=["too-long", "broken-grammar"],
)
def test_what_it_cannot_do_is_refused_and_the_next_is_answered(url: str, asked: ChatRequest):
    with pytest.raises(BackendError) as raised:
        client(url, embedded.NAME, grammar=True).chat(asked)
    assert raised.value.code == "refused"
    assert client(url, embedded.NAME).chat(ask(url, "Hello")).text


def test_llama_cpps_own_server_answers_the_same_client():
    """Another real server: the HTTP server that llama.cpp brings along, without any of ours in between."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(embedded.model_file())
    params.n_ctx, params.n_parallel, params.cache_ram_mib, params.verbosity = 512, 1, 0, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.api_keys = ["k-1"]
    server = xllamacpp.Server(params)
    url = f"{server.listening_address}/v1"
    reply = client(url, "any", key="k-1").chat(ask(url, "Say hello."))
    assert reply.text
    assert reply.output_tokens
    with pytest.raises(BackendError) as raised:
        client(url, "any", key="k-2").chat(ask(url, "Say hello."))
    assert raised.value.code == "refused"
