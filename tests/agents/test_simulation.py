"""`simulate` and `report`: the figures that people quote, so they must be repeatable and well defined."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents import registry
from agents.simulation import SeatError, report, simulate
from markets.engine.protocol import OfferAccepted, OfferMade, log_sha256
from markets.engine.scenarios import Family, sample
from markets.engine.seeds import derive_seed
from tests.agents.tables import SHOP, figures, listed_market, money_market

CONTRACT = {
    "episodes",
    "deals",
    "deal_rate",
    "seller_surplus_share",
    "buyer_surplus_share",
    "unconditional_seller_share",
    "seller_extraction",
    "allocation_quality",
    "constraint_adherence",
    "constraint_adherence_by_role",
    "mean_turns",
    "seconds",
    "log_sha256",
}


def games(seller: str, buyers: list[str], *, episodes: int = 5, seed: int = 3, family: Family = Family.MULTI_BUYER):
    return simulate(
        recipe=listed_market(family),
        pool=SHOP,
        seller=registry.get(seller),
        buyers=[registry.get(slug) for slug in buyers],
        episodes=episodes,
        seed=seed,
    )


def test_the_report_has_the_keys_of_the_contract_and_is_plain_json() -> None:
    figures = report(games("linear", ["linear"]))
    assert set(figures) == CONTRACT
    assert set(figures["constraint_adherence_by_role"]) == {"seller", "buyer"}
    assert json.loads(json.dumps(figures)) == figures
    assert figures["episodes"] == 5
    assert figures["seconds"] >= 0


def test_no_episodes_give_no_figures_rather_than_zeros() -> None:
    figures = report(games("linear", ["linear"], episodes=0))
    assert figures["episodes"] == figures["deals"] == 0
    assert figures["deal_rate"] is None
    assert figures["seller_extraction"] is None


def test_the_seconds_are_those_of_the_clock_that_was_given() -> None:
    ticks = iter([10.0, 12.5])
    assert report(games("linear", ["linear"]), clock=lambda: next(ticks))["seconds"] == 2.5


def test_the_hash_is_over_all_logs_in_order() -> None:
    logs = [played.log for _, played in games("linear", ["threshold"])]
    assert report(games("linear", ["threshold"]))["log_sha256"] == log_sha256(logs)
    assert log_sha256(logs[::-1]) != log_sha256(logs)


def test_episode_k_is_the_same_scenario_whoever_plays() -> None:
    """Common random numbers: differences between agents are not differences of luck."""
    recipe = listed_market(Family.MULTI_BUYER)
    first = [scenario for scenario, _ in games("linear", ["threshold"], seed=11)]
    second = [scenario for scenario, _ in games("optimal-ladder", ["impatient"], seed=11)]
    assert first == second == [sample(recipe, SHOP, derive_seed("episode", 11, k)) for k in range(5)]
    assert first != [scenario for scenario, _ in games("linear", ["threshold"], seed=12)]


def test_one_buyers_name_sits_in_every_buyers_seat() -> None:
    one = report(games("linear", ["boulware"]))["log_sha256"]
    assert one == report(games("linear", ["boulware"] * 3))["log_sha256"]
    assert one != report(games("linear", ["boulware", "boulware", "conceder"]))["log_sha256"]


def test_each_named_buyer_gets_its_own_seat() -> None:
    for _, played in games("linear", ["threshold", "linear", "logit"], episodes=20):
        bidders = {
            entry.event.buyer
            for entry in played.log
            if isinstance(entry.event, OfferMade) and entry.event.by == "buyer" and not entry.event.opening
        }
        assert bidders <= {2}, "only the second buyer names prices"


@pytest.mark.parametrize(
    ("seller", "buyers", "family", "sentence"),
    [
        ("threshold", ["linear"], Family.MULTI_BUYER, "'threshold' plays buyer only, not seller."),
        ("linear", ["optimal-ladder"], Family.MULTI_BUYER, "'optimal-ladder' plays seller only, not buyer."),
        ("greedy", ["linear"], Family.MULTI_BUYER, "'greedy' plays catalogue markets only, not multi_buyer."),
        (
            "optimal-ladder",
            ["linear"],
            Family.CATALOGUE,
            "'optimal-ladder' plays bilateral and multi_buyer markets only, not catalogue.",
        ),
        ("linear", ["linear"] * 2, Family.MULTI_BUYER, "This market seats 3 buyers; name one agent or 3, not 2."),
        ("linear", ["linear"] * 2, Family.BILATERAL, "This market seats 1 buyer; name one agent, not 2."),
        ("linear", [], Family.BILATERAL, "This market seats 1 buyer; name one agent, not 0."),
    ],
)
def test_agents_that_cannot_sit_there_are_refused_with_a_sentence_before_anything_is_played(
    seller: str, buyers: list[str], family: Family, sentence: str
) -> None:
    with pytest.raises(SeatError) as error:
        games(seller, buyers, family=family)
    assert str(error.value) == sentence


PROGRAM = """
import sys
from tests.agents.tables import figures, listed_market
from markets.engine.scenarios import Family
for family, seller, buyer in (
    (Family.BILATERAL, "zi-c", "logit"),
    (Family.MULTI_BUYER, "optimal-ladder", "impatient"),
    (Family.CATALOGUE, "serial", "zi-u"),
):
    print(figures(listed_market(family), seller=seller, buyers=buyer, episodes=15, seed=4)["log_sha256"])
"""


def hashes(hash_seed: str) -> list[str]:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=root,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.split()


def test_the_same_seed_gives_the_same_hash_in_any_process() -> None:
    first, second = hashes("1"), hashes("2")
    assert first == second
    assert len(set(first)) == 3


def test_unequal_seeds_give_unequal_games() -> None:
    market = money_market()
    hashes = {
        figures(market, seller="linear", buyers="threshold", episodes=3, seed=seed)["log_sha256"] for seed in range(5)
    }
    assert len(hashes) == 5


def test_figures_come_from_the_logs_alone() -> None:
    """A deal rate by hand, from the events."""
    run = list(games("hardliner", ["threshold"], episodes=60))
    sold = sum(any(isinstance(entry.event, OfferAccepted) for entry in played.log) for _, played in run)
    assert report(iter(run))["deal_rate"] == sold / 60
    assert 0 < sold < 60
