"""Who sits opposite: agents that know how to play the seat, and never one that has seen the cards."""

from collections.abc import Iterator

import pytest

from agents import backends, registry
from agents.backends import BackendConfig
from agents.base import Kind
from markets.engine.protocol import SELLER, Role
from markets.engine.scenarios import Family
from markets.services import AgentName, RoomError
from markets.setup import MarketSpec, SetupError
from negotiation_site import seating
from tests.markets import rooms


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("role", Role)
def test_every_opponent_that_is_offered_can_play_the_seat(family, role):
    offered = seating.opponents(role=role, family=family)
    assert len(offered) >= 9
    assert all(role in spec.roles and family in spec.families for spec in offered)
    assert not any(spec.kind is Kind.REFERENCE for spec in offered)


def test_a_seat_holds_the_agents_version_as_it_is_now():
    spec = registry.get("boulware")
    assert seating.agent_name("boulware") == AgentName(slug="boulware", version=spec.version, name=spec.title)


@pytest.mark.django_db
def test_buyers_of_a_market_are_taken_in_turn():
    market = rooms.market("multi_buyer", slug="five", buyers=5, buyer_agents="linear,conceder")
    chosen = seating.agents_for(market, host=Role.SELLER)
    assert [chosen[f"buyer-{k}"].slug for k in range(1, 6)] == ["linear", "conceder", "linear", "conceder", "linear"]
    assert SELLER not in chosen


@pytest.mark.django_db
def test_a_hosts_own_chair_gets_no_agent():
    market = rooms.market("multi_buyer", slug="three", buyer_agents="linear,conceder,boulware")
    chosen = seating.agents_for(market, host=Role.BUYER, opponent="one-pass")
    assert {party: agent.slug for party, agent in chosen.items()} == {
        SELLER: "one-pass",
        "buyer-2": "conceder",
        "buyer-3": "boulware",
    }


@pytest.mark.parametrize(
    ("slug", "role", "family", "code"),
    [
        ("nobody", Role.SELLER, Family.BILATERAL, "unknown_agent"),
        ("oracle", Role.SELLER, Family.BILATERAL, "reference_agent"),
        ("threshold", Role.SELLER, Family.BILATERAL, "wrong_seat"),
        ("one-pass", Role.SELLER, Family.BILATERAL, "wrong_seat"),
        ("greedy", Role.SELLER, Family.MULTI_BUYER, "wrong_seat"),
        ("optimal-ladder", Role.BUYER, Family.MULTI_BUYER, "wrong_seat"),
    ],
)
def test_an_opponent_that_does_not_fit_is_refused_with_a_sentence(slug, role, family, code):
    with pytest.raises(RoomError) as refused:
        seating.check_opponent(slug, role=role, family=family)
    assert refused.value.code == code
    assert refused.value.sentence.endswith((".", "?"))


@pytest.mark.parametrize(
    "changes",
    [{"seller_agent": "threshold"}, {"buyer_agents": "linear,optimal-ladder"}, {"seller_agent": "greedy"}],
    ids=str,
)
def test_a_market_cannot_be_given_agents_that_do_not_fit(changes):
    with pytest.raises(SetupError, match="does not play"):
        seating.check_spec_agents(MarketSpec(slug="x", family="bilateral", **changes))


def test_a_market_cannot_be_given_agents_that_do_not_exist():
    with pytest.raises(registry.UnknownAgent, match="Did you mean"):
        seating.check_spec_agents(MarketSpec(slug="x", family="bilateral", seller_agent="linea"))


@pytest.mark.parametrize("changes", [{"seller_agent": "oracle"}, {"buyer_agents": "linear,oracle"}], ids=str)
def test_a_market_cannot_seat_a_policy_that_has_seen_the_cards(changes):
    with pytest.raises(SetupError, match="knows both values"):
        seating.check_spec_agents(MarketSpec(slug="x", family="bilateral", **changes))


@pytest.fixture
def embedded_model() -> Iterator[None]:
    """A back end that stands for the embedded model."""
    before = backends.configured()
    backends.configure({"embedded": BackendConfig(name="embedded", url="http://127.0.0.1:9/v1", model="tiny")})
    yield
    backends.configure({config.name: config for config in before})


@pytest.mark.django_db
@pytest.mark.usefixtures("embedded_model")
def test_where_a_model_is_there_to_speak_a_markets_own_agents_opposite_speak_with_it():
    market = rooms.market("multi_buyer", slug="three", seller_agent="one-pass", buyer_agents="linear,conceder,boulware")
    as_buyer = seating.agents_for(market, host=Role.BUYER)
    assert {party: agent.slug for party, agent in as_buyer.items()} == {
        SELLER: "narrator-one-pass",
        "buyer-2": "conceder",  # Nobody hears what another buyer says.
        "buyer-3": "boulware",
    }
    as_seller = seating.agents_for(market, host=Role.SELLER)
    assert [agent.slug for agent in as_seller.values()] == ["narrator-linear", "narrator-conceder", "narrator-boulware"]
    assert seating.agents_for(market, host=Role.SELLER, opponent="linear")["buyer-1"].slug == "linear"


@pytest.mark.usefixtures("embedded_model")
def test_a_narrator_is_labelled_and_a_small_model_that_decides_is_called_weak():
    narrator, weak = registry.get("narrator-boulware"), registry.get("embedded-model")
    assert (narrator.kind, weak.kind) == (Kind.NARRATOR, Kind.MODEL)
    assert "A language model puts its moves into words." in narrator.summary
    assert weak.summary.startswith("Weak")
    assert weak.remark == "weak"


def test_a_narrator_that_a_record_names_is_known_even_without_its_model():
    assert registry.get("narrator-linear").kind is Kind.NARRATOR
    with pytest.raises(registry.UnknownAgent):
        registry.get("narrator-oracle")
    with pytest.raises(registry.UnknownAgent):
        registry.get("narrator-narrator")
