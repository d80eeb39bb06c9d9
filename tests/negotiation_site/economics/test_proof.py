"""The proof can fail: an engine that is wrong in one place makes the rows fail that speak of it."""

from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.scripted import equilibria
from agents.scripted import ladders as ladder_agents
from markets.engine import metrics, optimum, priors, scenarios
from negotiation_site.economics import proof, public_data
from negotiation_site.economics.playing import Sums, play_games
from negotiation_site.economics.rows import Row, Scale

SMALL = Scale(40)
POSTED = "lognormal 100, .5, cost 60"
PROFIT = f"posted price/{POSTED}/profit/played"


def prove(part: str, *keys: str, scale: Scale = SMALL) -> dict[str, Row]:
    """The rows of a part by name; of what has to be played for them only `keys` is, the rest is undefined."""
    jobs, told = proof.PARTS[part]
    asked = jobs(scale)
    played = defaultdict(Sums, {key: play_games(asked[key], range(asked[key].games)) for key in keys})
    return {row.name: row for row in told(played, scale)}


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices that were kept by an agent would outlive a change of the engine, and a wrong one the test."""
    for module, names in (
        (ladder_agents, ("optimal_prices", "single_buyer_prices")),
        (equilibria, ("_single_price", "_single_bid")),
        (optimum, ("_cached_prices", "_ladder", "_first_best", "_joint")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, lru_cache(getattr(module, name).__wrapped__))


def replaced(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, change: Callable[[Any], Any]) -> None:
    """`module.name` with `change` applied to what it returns."""
    original = getattr(module, name)

    @wraps(original)
    def changed(*args: Any, **kwargs: Any) -> Any:
        return change(original(*args, **kwargs))

    monkeypatch.setattr(module, name, changed)


def test_names_are_unique_and_tolerances_are_tight() -> None:
    rows = [row for part in proof.PARTS for row in prove(part).values()]
    names = [row.name for row in rows] + public_data.names()
    assert len(names) == len(set(names)) > 300
    assert max(row.tolerance for row in rows) <= 0.03


def test_what_is_exact_comes_out_whatever_is_played() -> None:
    for part in ("bilateral", "ladders"):
        wrong = [row.name for row in prove(part).values() if "/played" not in row.name and not row.ok]
        assert wrong == []


def test_a_right_engine_comes_out() -> None:
    assert prove("bilateral", POSTED, scale=Scale(16_000))[PROFIT].ok
    rows = prove("identities", "multi_buyer", "catalogue", scale=Scale(400))
    assert [row.name for row in rows.values() if not row.ok] == []


# --- A wrong engine -----------------------------------------------------------------------------


def test_a_sampler_that_draws_too_low_is_found_out(monkeypatch, forget) -> None:
    replaced(
        monkeypatch,
        priors,
        "sample_values",
        lambda rows: tuple(tuple(value * 9 // 10 for value in own) for own in rows),
    )
    rows = prove("bilateral", POSTED, scale=Scale(8_000))
    assert not rows[f"posted price/{POSTED}/deal rate/played"].ok


def test_a_price_that_is_not_the_best_is_found_out(monkeypatch, forget) -> None:
    replaced(
        monkeypatch,
        optimum,
        "posted_price",
        lambda ladder: msgspec.structs.replace(
            ladder, prices=(ladder.prices[0] * 1.02,), revenue=ladder.revenue * 0.99
        ),
    )
    rows = prove("bilateral")
    assert not rows["posted price/lognormal 1, .5, cost 0/profit/exact"].ok
    assert not rows["posted price/exponential, cost 0/price as a share of the first best/exact"].ok


def test_a_surplus_that_is_counted_for_the_wrong_side_is_found_out(monkeypatch, forget) -> None:
    def swapped(outcome: metrics.Outcome) -> metrics.Outcome:
        return msgspec.structs.replace(
            outcome,
            seller_surplus_cents=outcome.buyer_surplus_cents,
            buyer_surplus_cents=outcome.seller_surplus_cents,
        )

    replaced(monkeypatch, metrics, "outcome", swapped)
    rows = prove("bilateral", "one shot", scale=Scale(6_000))
    name = "two private values/seller's one offer"
    assert not rows[f"{name}/seller's profit/played"].ok
    assert not rows[f"{name}/buyer's surplus/played"].ok


def test_a_first_best_that_forgets_the_cost_is_found_out(monkeypatch, forget) -> None:
    def costless(scenario: scenarios.Scenario) -> tuple[int, tuple[tuple[int, int], ...]]:
        return max(value for own in scenario.buyer_values_cents for value in own), ()

    monkeypatch.setattr(metrics, "best_assignment", costless)
    assert not prove("bilateral", POSTED, scale=Scale(2_000))[PROFIT].ok


def test_surpluses_that_do_not_add_up_to_the_joint_surplus_are_found_out(monkeypatch, forget) -> None:
    """A dollar too much on each side is lost among large values, but no identity holds any more."""
    replaced(monkeypatch, metrics, "surplus_cents", lambda cents: cents + 100)
    rows = prove("identities", "multi_buyer", "catalogue", scale=Scale(400))
    assert not rows["identity/mean reward over deal rate x mean share of a deal/played"].ok


def test_an_assignment_that_is_greedy_is_found_out(monkeypatch, forget) -> None:
    def greedy(*, surplus: Any, stock: Any) -> tuple[int, tuple[tuple[int, int], ...]]:
        ranked = sorted(
            ((gain, -buyer, -product) for buyer, own in enumerate(surplus) for product, gain in enumerate(own)),
            reverse=True,
        )
        left, pairs, served = list(stock), [], set()
        for gain, buyer, product in ranked:
            if gain > 0 and left[-product] and buyer not in served:
                left[-product] -= 1
                served.add(buyer)
                pairs.append((-buyer, -product))
        return sum(surplus[buyer][product] for buyer, product in pairs), tuple(sorted(pairs))

    monkeypatch.setattr(optimum, "optimal_assignment", greedy)
    key = "catalogue/independent uniform/8x8/greedy-assignment"
    rows = prove("catalogues", key, scale=Scale(500))
    assert not rows["catalogue/best assignments unlike brute force"].ok
    assert not rows[f"{key}/share/played"].ok


def test_a_ladder_of_equal_steps_is_found_out(monkeypatch, forget) -> None:
    monkeypatch.setattr(optimum, "optimal_ladder", optimum.linear_ladder)
    rows = prove("ladders")
    assert not rows["ladder/uniform/N=4/T=8/optimal ladder/share/exact"].ok
    assert not rows["ladder/uniform/N=2/T=8/price of turn 3, of the highest value/exact"].ok
    assert not rows["ladder/lognormal/N=4/T=8/optimal ladder/deal rate/exact"].ok


def test_a_ladder_agent_that_asks_too_little_is_found_out_by_its_games(monkeypatch, forget) -> None:
    key = "ladder/uniform/N=4/T=8"
    jobs, _told = proof.PARTS["ladders"]
    job = jobs(Scale(2_000))[key]
    assert play_games(job, range(2_000)).seller_share == pytest.approx(0.821, abs=0.01)
    replaced(monkeypatch, ladder_agents, "optimal_prices", lambda prices: tuple(0.85 * price for price in prices))
    assert play_games(job, range(2_000)).seller_share != pytest.approx(0.821, abs=0.01)


# --- The public data ----------------------------------------------------------------------------


@pytest.fixture
def shop(parley_data: Path) -> Path:
    if public_data.catalogue(parley_data) is None:
        pytest.skip(f"no {public_data.FOLDER} in {parley_data}")
    return parley_data


def test_the_facts_of_the_public_catalogue_come_out(shop: Path) -> None:
    found = proof.prove(scale=Scale(8_000), workers=1, data=shop, parts=(proof.PUBLIC_DATA,))
    assert [row.name for row in found.rows] == public_data.names()
    assert found.failed == []


def test_values_rounded_to_the_nearest_cent_lose_gains_from_trade(shop: Path, monkeypatch) -> None:
    monkeypatch.setattr(priors, "share_cents", lambda share, *, of_cents: round(share * of_cents))
    found = proof.prove(scale=SMALL, workers=1, data=shop, parts=(proof.PUBLIC_DATA,))
    assert "public data/fixed rule/products with gains from trade" in {row.name for row in found.failed}


def test_absent_data_is_left_out_and_named(tmp_path: Path) -> None:
    found = proof.prove(scale=SMALL, workers=1, data=tmp_path, parts=(proof.PUBLIC_DATA,))
    assert found.rows == []
    assert found.left_out == public_data.names()
    assert proof.prove(scale=SMALL, workers=1, data=None, parts=(proof.PUBLIC_DATA,)).left_out == found.left_out
