"""What agents a back end makes possible, and that a narrator is its strategy with other words."""

import pytest

from agents import backends, registry
from agents.backends import BackendConfig
from agents.backends.fake import FakeBackend
from agents.base import Kind
from agents.play import play, seat
from agents.simulation import report, simulate
from agents.words import with_words
from markets.engine.protocol import SELLER, MakeOffer
from markets.engine.scenarios import Family
from tests.agents.tables import SHOP, listed_market
from tests.markets.engine.factories import B1, bilateral

pytestmark = pytest.mark.usefixtures("no_back_ends")


def configured(**changes: object) -> None:
    config = {"name": "big", "url": "http://127.0.0.1:9/v1", "model": "qwen3-8b", **changes}
    backends.configure({str(config["name"]): BackendConfig(**config)})


def modelled() -> dict[str, Kind]:
    return {spec.slug: spec.kind for spec in registry.all_specs() if spec.kind in (Kind.NARRATOR, Kind.MODEL)}


def test_without_a_back_end_nobody_is_offered_a_model():
    assert modelled() == {}
    assert registry.narrated("linear") == "linear"


def test_every_back_end_brings_a_narrator_and_models_that_decide():
    configured()
    assert modelled() == {
        "big-narrator": Kind.NARRATOR,
        "big-model": Kind.MODEL,
        "big-model-unregulated": Kind.MODEL,
        "big-model-tools": Kind.MODEL,
        "big-model-tools-unregulated": Kind.MODEL,
    }
    assert all(registry.get(slug).asks_models for slug in modelled())
    assert registry.narrated("linear") == "linear"  # Only the embedded model speaks unasked.


def test_the_embedded_model_narrates_scripted_strategies_and_nothing_else():
    configured(name="embedded", model="tiny")
    assert registry.all_specs()[0].slug == "narrator"
    assert registry.narrated("boulware") == "narrator-boulware"
    assert registry.narrated("oracle") == "oracle"
    assert registry.narrated("ladder-learner") == "ladder-learner"


@pytest.mark.parametrize("changes", [{"model": "qwen3-14b"}, {"options": {"top_k": 1}}], ids=["model", "options"])
def test_another_model_is_another_version(changes: dict[str, object]):
    configured()
    before = registry.get("big-model").version, registry.get("big-narrator").version
    configured(**changes)
    after = registry.get("big-model").version, registry.get("big-narrator").version
    assert not set(before) & set(after)


@pytest.mark.parametrize("family", [Family.BILATERAL, Family.MULTI_BUYER])
def test_a_narrator_makes_the_very_moves_of_its_strategy(family: Family):
    backends.seat(FakeBackend(["Good day to you."], name="embedded"))

    def hash_of(slug: str) -> str:
        games = simulate(
            recipe=listed_market(family),
            pool=SHOP,
            seller=registry.get(slug),
            buyers=[registry.get(slug)],
            episodes=20,
            seed=4,
            words=with_words,
        )
        return report(games)["log_sha256"]

    for strategy in ("linear", "tit-for-tat", "zi-c"):
        assert hash_of(strategy) == hash_of(f"narrator-{strategy}")


def test_a_free_narrator_speaks_its_models_words():
    configured()
    backends.seat(FakeBackend(["What a day. Shall we?"], name="big"))
    game = play(bilateral(), {SELLER: seat(registry.get("big-narrator")), B1: seat(registry.get("linear"))})
    offers = [action for action in game.actions.values() if isinstance(action, MakeOffer) and action.talk]
    assert offers
    assert all(action.talk.startswith("What a day. Shall we?") for action in offers)
