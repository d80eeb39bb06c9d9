"""The best sequence that reads no reply: the baseline that shows whether anybody listens, so it must be the best."""

import json

import pytest

from agents.scripted import fixed_sequence
from agents.scripted.fixed_sequence import (
    FROZEN,
    FROZEN_SCENARIOS,
    FROZEN_SEED,
    MarketKind,
    NothingToTrainOn,
    Step,
    find,
    find_for,
    kind_of,
    of_scenarios,
    search,
    sequence_for,
    share,
    training_scenarios,
)
from markets.engine import optimum, priors, splits
from markets.engine.protocol import SELLER, AcceptOffer, Leave, MakeOffer
from markets.engine.scenarios import Family, ProductFacts, Recipe, SellerTurns, sample
from tests.agents.tables import FREE, SHOP, UNIFORM, Opponent, figures, listed_market, money_market
from tests.markets.engine.factories import Table, multi_buyer, reject

BANDS = priors.BandsSpec()
CHEAP = priors.UniformSpec(low=0.1, high=0.5)


def one_unit(values: priors.ValueSpec, cost: priors.ValueSpec, *, buyers: int, turns: int) -> MarketKind:
    return MarketKind(Family.MULTI_BUYER, values, cost, 0.0, buyers, (1,), turns)


# --- What a sequence is worth -----------------------------------------------------------------------


def test_the_share_of_a_sequence_is_counted_as_threshold_buyers_would_have_it() -> None:
    """Two negotiations: cost .5, values (.8, 1) and (.6, .7). The offers sell at 1 in the first, and at
    .65 in the second to buyer 2; first bests are .5 and .2."""
    scenarios = [
        multi_buyer(values=(8_000, 10_000), cost=5_000),
        multi_buyer(values=(6_000, 7_000), cost=5_000),
    ]
    draws = of_scenarios(scenarios)
    steps = (Step(1, 0, 1.0), Step(0, 0, 0.7), Step(1, 0, 0.65))
    assert share(steps, draws, stock=(1,)) == pytest.approx((0.5 / 0.5 + 0.15 / 0.2) / 2)
    assert share(steps[:1], draws, stock=(1,)) == pytest.approx(0.5)


def test_an_ask_below_cost_is_raised_to_it_and_a_sale_ends_the_stock() -> None:
    draws = of_scenarios([multi_buyer(values=(8_000, 10_000), cost=5_000)])
    assert share((Step(0, 0, 0.2), Step(1, 0, 1.0)), draws, stock=(1,)) == 0, "sold at cost to buyer 1"
    assert share((Step(0, 0, 0.2), Step(1, 0, 1.0)), draws, stock=(2,)) == pytest.approx(0.5 / 0.5)


def test_where_trade_cannot_gain_nothing_is_counted() -> None:
    gainful = multi_buyer(values=(8_000,), cost=5_000)
    hopeless = multi_buyer(values=(4_000,), cost=5_000)
    steps = (Step(0, 0, 0.8),)
    assert share(steps, of_scenarios([gainful, hopeless]), stock=(1,)) == pytest.approx(1)
    assert share(steps, of_scenarios([hopeless]), stock=(1,)) == 0


def test_the_share_agrees_with_the_exact_value_of_a_ladder() -> None:
    """At cost 0 and one buyer the mean share and the share of sums differ; welfare weights do not
    matter for the chance of a sale, so compare that: values all but equal."""
    narrow = priors.UniformSpec(low=0.99, high=1.01)
    kind = one_unit(narrow, FREE, buyers=2, turns=4)
    draws = training_scenarios(kind, scenarios=4_000, seed=3)
    prices = (1.004, 1.002, 0.998, 0.994)
    steps = tuple(Step(turn % 2, 0, price) for turn, price in enumerate(prices))
    exact, _, _ = optimum.evaluate(prices=prices, order=(0, 1, 0, 1), spec=narrow, rho=0, buyers=2, cost=0)
    best = optimum.first_best(spec=narrow, rho=0, buyers=2, cost=0)
    assert share(steps, draws, stock=(1,)) == pytest.approx(exact / best, abs=0.01)


# --- The search -------------------------------------------------------------------------------------


def test_the_search_is_the_same_every_time_and_another_seed_draws_other_scenarios() -> None:
    kind = one_unit(BANDS, CHEAP, buyers=3, turns=4)
    assert find(kind, scenarios=200, seed=1) == find(kind, scenarios=200, seed=1)
    assert find(kind, scenarios=200, seed=1) != find(kind, scenarios=200, seed=2)


def test_no_single_change_improves_what_was_found() -> None:
    kind = one_unit(BANDS, CHEAP, buyers=3, turns=5)
    draws = training_scenarios(kind, scenarios=300, seed=1)
    found = search(draws, stock=(1,), turns=5)
    for place, step in enumerate(found.steps):
        for factor in (0.9, 0.97, 1.03, 1.1):
            changed = [*found.steps]
            changed[place] = Step(step.buyer, step.product, step.price * factor)
            assert share(changed, draws, stock=(1,)) <= found.share + 1e-3


def test_one_uniform_buyer_is_asked_in_nearly_equal_steps_or_better() -> None:
    """Mean share with cost 0 is E[p / v; v >= p]: no less than equal steps get."""
    kind = one_unit(UNIFORM, FREE, buyers=1, turns=3)
    found = find(kind, scenarios=2_000, seed=1)
    draws = training_scenarios(kind, scenarios=2_000, seed=1)
    equal = tuple(Step(0, 0, price) for price in (75.0, 50.0, 25.0))
    assert found.share >= share(equal, draws, stock=(1,))
    prices = [step.price for step in found.steps]
    assert prices == sorted(prices, reverse=True)


@pytest.mark.parametrize("kind", list(FROZEN), ids=lambda kind: f"{type(kind.value_spec).__name__}-{kind.buyers}")
def test_a_frozen_sequence_is_what_the_search_finds(kind: MarketKind) -> None:
    if kind.buyers == 3:
        assert find(kind, scenarios=FROZEN_SCENARIOS, seed=FROZEN_SEED).steps == FROZEN[kind]
    fresh = training_scenarios(kind, scenarios=1_500, seed=99)
    quick = find(kind, scenarios=300, seed=FROZEN_SEED)
    assert share(FROZEN[kind], fresh, stock=(1,)) > share(quick.steps, fresh, stock=(1,)) - 0.01
    assert len(FROZEN[kind]) == kind.turns


def test_a_few_scenarios_find_nearly_as_good_a_sequence_as_many() -> None:
    kind = one_unit(BANDS, CHEAP, buyers=3, turns=8)
    fresh = training_scenarios(kind, scenarios=2_000, seed=7)
    many = share(FROZEN[kind], fresh, stock=(1,))
    few = share(find(kind, scenarios=300, seed=1).steps, fresh, stock=(1,))
    assert many > 0.95, "over the bands a sequence that reads nothing gets nearly everything"
    assert few > many - 0.02


def test_a_catalogue_gets_a_sequence_over_pairs() -> None:
    kind = MarketKind(Family.CATALOGUE, priors.UniformSpec(low=0, high=1), FREE, 0.0, 2, (1, 1), 4)
    found = find(kind, scenarios=200, seed=1)
    assert {step.product for step in found.steps} == {0, 1}
    assert {step.buyer for step in found.steps} == {0, 1}
    assert found.share > 0.5


# --- The agent --------------------------------------------------------------------------------------


def test_the_agent_says_its_sequence_whatever_is_answered() -> None:
    market = listed_market(Family.MULTI_BUYER, turns=8, opening_bid_share=None)
    scenario = sample(market, SHOP, 5)
    table = Table(scenario)
    steps = sequence_for(kind_of(table.sees(SELLER)))
    assert steps == FROZEN[kind_of(table.sees(SELLER))], "the usual bands over a shop are a frozen kind"
    seller = Opponent(table, SELLER, "fixed-sequence")
    scale, cost = scenario.prior.scales_cents[0], scenario.seller_values_cents[0]
    for step in steps:
        action = seller.answer()
        assert isinstance(action, MakeOffer)
        assert action.buyer == step.buyer + 1
        assert action.price_cents == pytest.approx(max(cost, step.price * scale), abs=1)
        table.play(f"buyer-{action.buyer}", reject(len(table.state.thread(action.buyer).offers)))
    assert table.state.ended


def test_a_buyer_that_left_is_passed_over() -> None:
    table = Table(multi_buyer(turns=8))
    seller = Opponent(table, SELLER, "fixed-sequence")
    gone = seller.answer().buyer
    table.play(f"buyer-{gone}", Leave())
    for _ in range(3):
        action = seller.answer()
        assert isinstance(action, MakeOffer)
        assert action.buyer != gone
        table.play(f"buyer-{action.buyer}", reject(len(table.state.thread(action.buyer).offers)))


def test_a_bid_as_good_as_the_next_ask_is_taken() -> None:
    table = Table(multi_buyer(turns=8, openings=(11_500, 10, 10)))
    assert isinstance(Opponent(table, SELLER, "fixed-sequence").answer(), AcceptOffer)


def test_over_the_bands_reading_nothing_earns_nearly_as_much_as_the_optimal_ladder() -> None:
    """Why a hidden common factor on all bands exists: without it a constant solves the game."""
    market = listed_market(Family.MULTI_BUYER, turns=8)
    earned = {
        slug: figures(market, seller=slug, buyers="threshold", episodes=300)["seller_extraction"]
        for slug in ("fixed-sequence", "optimal-ladder", "chase-highest-bid")
    }
    assert earned["fixed-sequence"] > 0.9
    assert earned["fixed-sequence"] > earned["optimal-ladder"] - 0.02
    assert earned["fixed-sequence"] > earned["chase-highest-bid"] + 0.3


def test_a_hidden_common_factor_takes_the_constant_apart() -> None:
    plain = listed_market(Family.MULTI_BUYER, turns=8)
    factor = priors.FactorSpec(base=BANDS, factor=priors.UniformSpec(low=0.6, high=1.6))
    hidden = listed_market(Family.MULTI_BUYER, turns=8, value_spec=factor, opening_bid_share=None)
    shares = [
        figures(market, seller="fixed-sequence", buyers="threshold", episodes=200)["seller_extraction"]
        for market in (plain, hidden)
    ]
    assert shares[1] < shares[0] - 0.1


@pytest.mark.parametrize("family", list(Family))
def test_it_plays_in_every_family(family: Family) -> None:
    done = figures(listed_market(family), seller="fixed-sequence", buyers="threshold", episodes=30)
    assert done["constraint_adherence"] == 1
    assert done["seller_extraction"] > 0.5


def test_the_kind_of_a_market_stays_the_same_after_a_sale() -> None:
    recipe = Recipe(
        family=Family.CATALOGUE,
        mechanism=SellerTurns(6),
        buyers=2,
        products=2,
        stock=3,
        value_spec=UNIFORM,
        cost_spec=FREE,
        cost_prior=FREE,
        unit_is_money=True,
    )
    table = Table(sample(recipe, (), 1))
    before = kind_of(table.sees(SELLER))
    assert before.stock == (2, 2), "no more than one for each buyer counts"
    table.play(SELLER, MakeOffer(buyer=1, product=0, price_cents=1))
    table.play("buyer-1", AcceptOffer(offer_id=1))
    assert table.sees(SELLER).threads[0].deal is not None
    assert kind_of(table.sees(SELLER)) == before


# --- Data -------------------------------------------------------------------------------------------


def test_real_scenarios_of_products_of_several_prices_weigh_alike() -> None:
    facts = [
        ProductFacts(
            sku=f"s{price}", title="T", list_price_cents=price, lowest_price_cents=100, highest_price_cents=price
        )
        for price in (1_000, 100_000)
    ]
    recipe = listed_market(Family.MULTI_BUYER, turns=8)
    scenarios = [sample(recipe, facts, seed) for seed in range(200)]
    draws = of_scenarios(scenarios)
    assert float((draws.values.max(axis=(1, 2))).max()) <= 1.151
    steps = FROZEN[kind_of(Table(scenarios[0]).sees(SELLER))]
    assert share(steps, draws, stock=(1,)) > 0.9


# --- The command ------------------------------------------------------------------------------------


def test_the_command_prints_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--values", "bands", "--cost", "uniform:0.1:0.5", "--buyers", "2", "--turns", "3", "--scenarios", "150"]
    assert fixed_sequence.main([*asked, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == {"share", "steps"}
    assert len(printed["steps"]) == 3
    assert fixed_sequence.main(asked) == 0
    assert f"Earns {printed['share']:.4f}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--buyers", "0"], "--buyers must be at least 1"),
        (["--values", "bandz"], "bandz"),
        (["--turns", "0"], "--turns"),
    ],
)
def test_what_cannot_be_searched_for_gets_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        fixed_sequence.main(arguments)
    assert stopped.value.code == 2
    assert sentence in capsys.readouterr().err


def test_the_optimal_ladder_by_theory_is_among_the_starts() -> None:
    """Coordinate ascent from falling prices alone gets stuck over the bands, at .937."""
    kind = one_unit(BANDS, FREE, buyers=3, turns=8)
    alone = search(training_scenarios(kind, scenarios=1_000, seed=1), stock=(1,), turns=8)
    assert find(kind, scenarios=1_000, seed=1).share > alone.share


def test_money_markets_find_their_kind() -> None:
    table = Table(sample(money_market(buyers=4), (), 1))
    assert kind_of(table.sees(SELLER)) in FROZEN


def test_a_market_is_searched_on_products_that_may_be_trained_on() -> None:
    """Held-out products stay out of the search as of every run; with none left there is a sentence."""
    recipe = listed_market(Family.MULTI_BUYER, turns=4)
    kept = [
        facts for facts in SHOP if splits.split_of(sku=facts.sku, list_price_cents=facts.list_price_cents) == "training"
    ]
    held = [facts for facts in SHOP if facts not in kept]
    assert kept
    assert held
    with_all = find_for(recipe, SHOP, scenarios=60, seed=1)
    assert with_all == find_for(recipe, kept, scenarios=60, seed=1)
    with pytest.raises(NothingToTrainOn, match="Only 0 of this market's products may be trained on"):
        find_for(recipe, held, scenarios=60, seed=1)
