"""A back end is what the environment says, a mistake in it is told by name, and a key is shown to nobody."""

import pytest

from agents import backends
from agents.backends import BackendError
from agents.backends.config import BackendConfig, BackendConfigError, Secret, read, variables
from agents.backends.fake import FakeBackend

URL = {"PARLEY_LLM_BIG_ONE_URL": "https://models.example/v1/", "PARLEY_LLM_BIG_ONE_MODEL": "big"}


def test_nothing_set_is_no_back_end():
    assert read({"PATH": "/bin"}) == {}


def test_a_back_end_has_defaults_for_all_but_address_and_model():
    assert read(URL) == {"big-one": BackendConfig(name="big-one", url="https://models.example/v1", model="big")}


def test_every_variable_is_read():
    config = read(
        URL
        | {
            "PARLEY_LLM_BIG_ONE_KEY": "k-123",
            "PARLEY_LLM_BIG_ONE_TIMEOUT": "12.5",
            "PARLEY_LLM_BIG_ONE_ATTEMPTS": "2",
            "PARLEY_LLM_BIG_ONE_CONCURRENCY": "9",
            "PARLEY_LLM_BIG_ONE_PRICE": "0.15/0.60",
            "PARLEY_LLM_BIG_ONE_OPTIONS": '{"top_k": 20}',
            "PARLEY_LLM_BIG_ONE_GRAMMAR": "true",
        }
    )["big-one"]
    assert (config.key.reveal(), config.timeout_s, config.attempts, config.concurrency) == ("k-123", 12.5, 2, 9)
    assert (config.options, config.grammar) == ({"top_k": 20}, True)
    assert config.cost_micros(1_000_000, 1_000_000) == 750_000
    assert config.cost_micros(None, 5) is None


def test_what_one_process_reads_it_can_hand_on():
    config = read(URL | {"PARLEY_LLM_BIG_ONE_KEY": "k-123", "PARLEY_LLM_BIG_ONE_GRAMMAR": "yes"})["big-one"]
    assert read(variables(config)) == {"big-one": config}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"PARLEY_LLM_BIG_ONE_URL": "models.example"}, "PARLEY_LLM_BIG_ONE_URL"),
        ({"PARLEY_LLM_BIG_ONE_URL": "https://me:k-123@models.example/v1"}, "PARLEY_LLM_BIG_ONE_KEY"),
        ({"PARLEY_LLM_BIG_ONE_MODEL": " "}, "PARLEY_LLM_BIG_ONE_MODEL"),
        ({"PARLEY_LLM_BIG_ONE_TIMEOUT": "soon"}, "PARLEY_LLM_BIG_ONE_TIMEOUT"),
        ({"PARLEY_LLM_BIG_ONE_TIMEOUT": "nan"}, "PARLEY_LLM_BIG_ONE_TIMEOUT"),
        ({"PARLEY_LLM_BIG_ONE_ATTEMPTS": "0"}, "PARLEY_LLM_BIG_ONE_ATTEMPTS"),
        ({"PARLEY_LLM_BIG_ONE_PRICE": "0.15"}, "PARLEY_LLM_BIG_ONE_PRICE"),
        ({"PARLEY_LLM_BIG_ONE_PRICE": "-1/2"}, "PARLEY_LLM_BIG_ONE_PRICE"),
        ({"PARLEY_LLM_BIG_ONE_OPTIONS": "[1]"}, "PARLEY_LLM_BIG_ONE_OPTIONS"),
        ({"PARLEY_LLM_BIG_ONE_GRAMMAR": "perhaps"}, "PARLEY_LLM_BIG_ONE_GRAMMAR"),
        ({"PARLEY_LLM_BIGONE_KEY": "k-123"}, "PARLEY_LLM_BIGONE_KEY"),
    ],
    ids=lambda value: value if isinstance(value, str) else "=".join(next(iter(value.items()))),
)
def test_a_mistake_is_told_by_name_and_without_the_key(changes: dict[str, str], named: str):
    with pytest.raises(BackendConfigError) as raised:
        read(URL | changes)
    assert named in str(raised.value)
    assert "k-123" not in str(raised.value)


def test_a_key_is_in_no_repr():
    config = BackendConfig(name="x", url="http://x", model="m", key=Secret("k-123"))
    assert "k-123" not in f"{config!r} {config.key!r} {config.key}"


def test_a_name_that_is_not_configured_says_so(no_back_ends: None):
    with pytest.raises(BackendError, match="'nobody'"):
        backends.get("nobody")


def test_a_fake_sits_where_it_is_put_and_keeps_what_it_was_asked(no_back_ends: None):
    fake = FakeBackend(["one", "two"])
    backends.seat(fake)
    assert backends.get("fake") is fake
    assert [config.name for config in backends.configured()] == ["fake"]
