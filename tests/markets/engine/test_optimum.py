"""What players and agents are measured against must be the true limit: neither out of reach nor too easy."""

import functools
import math
import random
import statistics
import subprocess
import sys
import time
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from markets.engine import optimum, priors

U = priors.UniformSpec(low=0, high=1)
LN = priors.LogNormalSpec(median=100, sigma=0.5)
BANDS = priors.BandsSpec()
FACTOR = priors.FactorSpec(base=BANDS, factor=priors.UniformSpec(low=0.6, high=1.6))

edges = st.integers(min_value=0, max_value=2000).map(lambda number: number / 1000)
specs = st.one_of(
    st.tuples(edges, edges)
    .filter(lambda pair: pair[0] + 0.05 < pair[1])
    .map(lambda pair: priors.UniformSpec(low=pair[0], high=pair[1])),
    st.builds(
        priors.LogNormalSpec,
        median=st.floats(min_value=0.3, max_value=2),
        sigma=st.floats(min_value=0.05, max_value=1),
    ),
    edges.map(lambda value: priors.ConstantSpec(value=value)),
    st.lists(edges, min_size=2, max_size=7).map(lambda found: priors.EmpiricalSpec(quantiles=tuple(sorted(found)))),
    st.lists(edges, min_size=4, max_size=4)
    .map(sorted)
    .map(lambda found: priors.BandsSpec(bands=tuple(zip(found[::2], found[1::2], strict=True)))),
    st.just(BANDS),
)
rhos = st.sampled_from([0.0, 0.3, 0.8])


# The published table: prior, N, T, first best, then shares of it: optimal ladder, its welfare, its deal rate, linear
# ladder, one pass, single price, all turns on one buyer. "r" marks buyers correlated by .5; LN has a cost of 60.
TABLE = """
U 2 8 0.6667 .854 .976 .923 .820 .586 .577 .667
U 2 16 0.6667 .922 .992 .967 .908 .586 .577 .706
U 2 32 0.6667 .960 .998 .986 .954 .586 .577 .727
U 4 8 0.8000 .821 .953 .934 .739 .688 .669 .556
U 4 16 0.8000 .905 .986 .976 .858 .688 .669 .588
U 4 32 0.8000 .951 .996 .992 .925 .688 .669 .606
U 8 8 0.8889 .787 .918 .931 .669 .787 .760 .500
U 8 16 0.8889 .888 .973 .978 .794 .787 .760 .529
U 8 32 0.8889 .943 .992 .993 .881 .787 .760 .545
LN 2 8 84.8 .733 .958 .811 .703 .426 .421 .535
LN 2 16 84.8 .841 .985 .886 .827 .426 .421 .586
LN 2 32 84.8 .911 .996 .929 .895 .426 .421 .616
LN 4 8 118.3 .636 .914 .831 .599 .478 .464 .384
LN 4 16 118.3 .769 .967 .916 .756 .478 .464 .420
LN 4 32 118.3 .865 .991 .961 .850 .478 .464 .442
LN 8 8 153.9 .534 .828 .816 .480 .534 .510 .295
LN 8 16 153.9 .683 .931 .912 .655 .534 .510 .323
LN 8 32 153.9 .803 .976 .963 .778 .534 .510 .340
LNr 2 8 76.3 .726 .951 .755 .697 .428 .407 .595
LNr 4 16 98.2 .748 .949 .836 .737 .471 .425 .506
LNr 8 8 120.4 .512 .761 .732 .486 .512 .442 .377
LNr 8 32 120.4 .766 .949 .888 .756 .512 .442 .434
Ur 2 8 0.6150 .841 .970 .891 .815 .577 .551 .723
Ur 2 32 0.6150 .954 .997 .974 .950 .577 .551 .788
Ur 4 16 0.7086 .874 .975 .940 .849 .653 .600 .664
Ur 8 8 0.7807 .721 .869 .869 .669 .721 .646 .569
Ur 8 32 0.7807 .901 .979 .967 .872 .721 .646 .621
"""


@pytest.mark.parametrize("row", TABLE.split("\n")[1:-1])
def test_the_published_shares_are_reproduced(row):
    name, buyers, turns, first_best, *shares = row.split()
    spec, cost = (U, 0.0) if name[0] == "U" else (LN, 60.0)
    game = {"spec": spec, "rho": 0.5 if name[-1] == "r" else 0.0, "buyers": int(buyers), "cost": cost}
    best = optimum.optimal_ladder(turns=int(turns), **game)
    found = (
        best.revenue_share,
        best.welfare_share,
        best.deal_rate,
        optimum.linear_ladder(turns=int(turns), **game).revenue_share,
        optimum.one_pass(**game).revenue_share,
        optimum.single_price(**game).revenue_share,
        optimum.single_buyer_ladder(turns=int(turns), **game).revenue_share,
    )
    assert best.first_best == pytest.approx(float(first_best), rel=6e-4)
    assert best.first_best == optimum.first_best(**game)
    # The table's welfare is a Monte Carlo estimate; everything else is rounded.
    for place, (value, share) in enumerate(zip(found, shares, strict=True)):
        assert value == pytest.approx(float(share), abs=0.002 if place == 1 else 6e-4)


@pytest.mark.parametrize(
    ("buyers", "prices"),
    [
        (2, (0.8690, 0.8350, 0.7189, 0.6598, 0.5446, 0.4655, 0.3305, 0.2328)),
        (4, (0.8540, 0.8297, 0.7984, 0.7547, 0.6210, 0.5674, 0.4936, 0.3773)),
    ],
)
def test_the_published_ladders_are_reproduced(buyers, prices):
    ladder = optimum.optimal_ladder(spec=U, rho=0.0, buyers=buyers, turns=8, cost=0.0)
    assert ladder.prices == pytest.approx(prices, abs=5e-4)
    assert ladder.order == tuple(turn % buyers for turn in range(8))


@pytest.mark.parametrize("turns", [1, 2, 3, 8, 32, 64])
@pytest.mark.parametrize(("low", "high", "cost"), [(0, 1, 0), (0, 1, 0.4), (0, 2, 0.5)])
def test_one_uniform_buyer_yields_the_closed_form(turns, low, high, cost):
    spec = priors.UniformSpec(low=low, high=high)
    ladder = optimum.optimal_ladder(spec=spec, rho=0.0, buyers=1, turns=turns, cost=cost)
    expected = [cost + (high - cost) * (turns - turn) / (turns + 1) for turn in range(turns)]
    assert ladder.prices == pytest.approx(expected, abs=1e-4)
    assert ladder.revenue_share == pytest.approx(turns / (turns + 1), abs=1e-6)


@pytest.mark.parametrize(
    ("spec", "cost", "price", "share", "welfare", "deal_rate"),
    [
        (U, 0, 0.5, 0.5, 0.75, 0.5),
        (U, 0.3, 0.65, 0.5, 0.75, 0.35),
        (priors.UniformSpec(low=0.5, high=1.5), 0.25, 0.875, 0.5208, 0.7813, 0.625),
        (priors.LogNormalSpec(median=1, sigma=0.5), 0, 0.7719, 0.4753, 0.8456, 0.6977),
        (LN, 60, 117.87, 0.3886, 0.7616, 0.3711),
        (priors.LogNormalSpec(median=100, sigma=0.25), 60, 95.18, 0.4701, 0.8022, 0.5784),
    ],
)
def test_the_posted_price_is_the_textbook_one(spec, cost, price, share, welfare, deal_rate):
    posted = optimum.posted_price(spec=spec, cost=cost)
    assert posted.prices == pytest.approx((price,), rel=1e-4)
    assert (posted.revenue_share, posted.welfare_share) == pytest.approx((share, welfare), abs=1e-4)
    assert posted.deal_rate == pytest.approx(deal_rate, abs=1e-4)


def test_one_pass_and_a_single_price_have_their_closed_forms():
    worth = 0.0
    for buyers in range(1, 9):
        worth = ((1 + worth) / 2) ** 2
        game = {"spec": U, "rho": 0.0, "buyers": buyers, "cost": 0.0}
        assert optimum.one_pass(**game).revenue == pytest.approx(worth, abs=1e-6)
        price = (buyers + 1) ** (-1 / buyers)
        single = optimum.single_price(**game)
        assert single.prices == pytest.approx((price,) * buyers, abs=1e-5)
        assert single.revenue == pytest.approx(price * buyers / (buyers + 1), abs=1e-9)


# Bands


def test_bands_beat_the_constants_that_win_without_reading_a_reply():
    game = {"spec": BANDS, "rho": 0.0, "buyers": 3, "cost": 0.6}
    list_price = optimum.evaluate(prices=(1.0,) * 3, order=(0, 1, 2), **game)
    two_rounds = optimum.evaluate(prices=(1.08,) * 3 + (1.0,) * 3, order=(0, 1, 2) * 2, **game)
    best = {turns: optimum.optimal_ladder(turns=turns, **game) for turns in (3, 6, 8)}
    # The top buyer's value is uniform on [1, 1.15] and always above the asks of the last pass.
    assert list_price == pytest.approx((0.4, 0.475, 1.0))
    assert two_rounds == pytest.approx((0.4 + 0.08 * 7 / 15, 0.475, 1.0))
    assert best[3].revenue == pytest.approx(list_price[0])
    assert best[6].revenue > two_rounds[0] + 1e-4
    assert best[6].prices == pytest.approx((1.075,) * 3 + (1.0,) * 3)
    assert best[8].revenue > best[6].revenue + 0.004
    assert (best[8].deal_rate, best[8].welfare_share) == pytest.approx((1, 1))


@pytest.mark.parametrize(("spec", "cost"), [(U, 0.0), (LN, 60.0), (BANDS, 0.3)])
@pytest.mark.parametrize(("buyers", "turns"), [(2, 5), (3, 4)])
def test_no_other_order_of_visits_beats_round_robin(spec, cost, buyers, turns):
    game = {"spec": spec, "rho": 0.0, "buyers": buyers, "cost": cost}
    best = optimum.optimal_ladder(turns=turns, **game)
    for order in product(range(buyers), repeat=turns):
        if all(buyer <= len(set(order[:turn])) for turn, buyer in enumerate(order)):
            assert optimum.best_in_order(order=order, **game).revenue <= best.revenue + 1e-6 * best.first_best


@pytest.mark.parametrize("turns", [2, 5, 9])
@pytest.mark.parametrize("spec", [BANDS, priors.EmpiricalSpec(quantiles=(0.2, 0.25, 0.6, 0.65, 0.66, 1.1, 1.5)), U, LN])
def test_one_buyer_is_solved_as_well_as_by_dynamic_programming(spec, turns):
    cost = 0.1 * priors.quantile(spec, 0.5)
    grid = [cost + (priors.quantile(spec, 0.9995) - cost) * step / 150 for step in range(151)]
    refused = [priors.below(spec, price) for price in grid]
    worth = [0.0] * 151
    for _ in range(turns):
        worth = [
            max((grid[ask] - cost) * (refused[bound] - refused[ask]) + worth[ask] for ask in range(bound + 1))
            for bound in range(151)
        ]
    ladder = optimum.optimal_ladder(spec=spec, rho=0.0, buyers=1, turns=turns, cost=cost)
    assert worth[-1] <= ladder.revenue + 1e-4 * ladder.first_best


# Any prior


@settings(max_examples=60)
@given(spec=specs, rho=rhos, buyers=st.integers(1, 5), turns=st.integers(1, 9), cost=edges)
def test_the_optimal_ladder_beats_every_simpler_one_and_sells_below_no_cost(spec, rho, buyers, turns, cost):
    game = {"spec": spec, "rho": rho, "buyers": buyers, "cost": cost}
    best = optimum.optimal_ladder(turns=turns, **game)
    slack = 1e-3 * best.first_best + 1e-9
    rivals = [optimum.linear_ladder(turns=turns, **game)]
    if turns >= buyers:
        rivals += [optimum.one_pass(**game), optimum.single_price(**game)]
    assert all(rival.revenue <= best.revenue + slack for rival in rivals)
    assert optimum.single_buyer_ladder(turns=turns, **game).revenue <= best.revenue + slack
    assert min(best.prices) >= cost
    assert -1e-12 <= best.revenue <= best.welfare + 1e-9 <= best.first_best + 2e-9
    assert -1e-12 <= best.deal_rate <= 1 + 1e-12
    for buyer in range(buyers):
        own = [price for price, visited in zip(best.prices, best.order, strict=True) if visited == buyer]
        assert own == sorted(own, reverse=True)


@settings(max_examples=60)
@given(data=st.data(), spec=specs, rho=rhos, buyers=st.integers(1, 5))
def test_a_sequence_is_worth_what_the_mixture_of_cases_says(data, spec, rho, buyers):
    """The same sum, written out over the components of the prior, one buyer at a time."""
    order = data.draw(st.lists(st.integers(0, buyers - 1), min_size=1, max_size=7))
    prices = data.draw(st.lists(edges, min_size=len(order), max_size=len(order)))
    cost = data.draw(edges)
    revenue = deal_rate = 0.0
    for part in priors.components(spec=spec, rho=rho, buyers=buyers):
        refused = [1.0] * buyers
        for buyer, price in zip(order, prices, strict=True):
            before = math.prod(refused)
            refused[buyer] = min(refused[buyer], part.marginals[buyer].below(price))
            revenue += part.weight * (price - cost) * (before - math.prod(refused))
        deal_rate += part.weight * (1 - math.prod(refused))
    found = optimum.evaluate(prices=prices, order=order, spec=spec, rho=rho, buyers=buyers, cost=cost)
    assert (found[0], found[2]) == pytest.approx((revenue, deal_rate), abs=1e-7)


@pytest.mark.parametrize(
    ("spec", "rho", "buyers", "cost"),
    [
        (U, 0.5, 3, 0.2),
        (priors.LogNormalSpec(median=1, sigma=0.5), 0.6, 2, 0.6),
        (BANDS, 0.0, 4, 0.3),
        (BANDS, 0.0, 1, 0.3),
        (priors.EmpiricalSpec(quantiles=(0.3, 0.3, 0.7, 1.5)), 0.4, 3, 0.2),
        (FACTOR, 0.0, 3, 0.5),
        (FACTOR, 0.0, 1, 0.5),
        (priors.FactorSpec(base=U, factor=priors.UniformSpec(low=0.5, high=2)), 0.0, 2, 0.1),
    ],
)
def test_played_out_games_agree_with_the_figures(spec, rho, buyers, cost):
    ladder = optimum.optimal_ladder(spec=spec, rho=rho, buyers=buyers, turns=6, cost=cost)
    rng = random.Random(11)
    played = [play(ladder, spec, rho, buyers, cost, rng) for _ in range(8000)]
    for place, figure in enumerate((ladder.revenue, ladder.welfare, ladder.first_best, ladder.deal_rate)):
        sample = [game[place] for game in played]
        error = statistics.stdev(sample) / math.sqrt(len(sample))
        assert statistics.fmean(sample) == pytest.approx(figure, abs=4 * error + 1e-6)


@pytest.mark.parametrize("buyers", [1, 3])
def test_a_ladder_under_a_common_factor_beats_every_simpler_one_and_what_a_random_search_finds(buyers):
    game = {"spec": FACTOR, "rho": 0.0, "buyers": buyers, "cost": 0.5}
    best = optimum.optimal_ladder(turns=6, **game)
    rivals = [optimum.linear_ladder(turns=6, **game), optimum.one_pass(**game), optimum.single_price(**game)]
    assert max(rival.revenue for rival in rivals) < best.revenue
    rng = random.Random(5)
    prices, value = list(rivals[0].prices), rivals[0].revenue
    for _ in range(400):
        tried = [max(0.5, price + rng.gauss(0, 0.1) * (rng.random() < 0.3)) for price in prices]
        found = optimum.evaluate(prices=tried, order=best.order, **game)[0]
        if found > value:
            prices, value = tried, found
    assert value <= best.revenue + 1e-6


def test_a_buyer_bids_against_a_cost_under_a_common_factor_as_against_its_distribution():
    plain = optimum.buyer_ladder(spec=priors.UniformSpec(low=0.5, high=1), value=1.2, turns=3)
    spread = priors.FactorSpec(
        base=priors.UniformSpec(low=0.5, high=1), factor=priors.UniformSpec(low=0.999, high=1.001)
    )
    assert optimum.buyer_ladder(spec=spread, value=1.2, turns=3).surplus == pytest.approx(plain.surplus, abs=2e-3)


def test_a_common_factor_has_no_correlation_beside_it():
    with pytest.raises(ValueError, match="no correlation rho beside it"):
        optimum.optimal_ladder(spec=FACTOR, rho=0.3, buyers=2, turns=3, cost=0.5)


def play(ladder, spec, rho, buyers, cost, rng):
    scale = 10**7
    rows = priors.sample_values(spec=spec, rho=rho, buyers=buyers, scales_cents=(scale,), within="buyers", rng=rng)
    values = [row[0] / scale for row in rows]
    first_best = max(max(values) - cost, 0)
    for price, buyer in zip(ladder.prices, ladder.order, strict=True):
        if price <= values[buyer] + 1e-9:
            return price - cost, values[buyer] - cost, first_best, 1
    return 0, 0, first_best, 0


def test_a_price_above_a_refused_one_never_sells():
    game = {"spec": U, "rho": 0.0, "buyers": 1, "cost": 0.0}
    assert optimum.evaluate(prices=(0.5, 0.7, 0.4), order=(0, 0, 0), **game) == pytest.approx(
        optimum.evaluate(prices=(0.5, 0.4), order=(0, 0), **game)
    )


def test_where_trade_cannot_gain_there_is_no_share():
    ladder = optimum.optimal_ladder(spec=U, rho=0.0, buyers=2, turns=4, cost=1.5)
    assert (ladder.revenue, ladder.first_best, ladder.deal_rate) == (0, 0, 0)
    assert ladder.revenue_share is ladder.welfare_share is None
    assert min(ladder.prices) >= 1.5


@pytest.mark.parametrize("cost", [0.0, 0.13579, 0.5, 0.77777, 0.96])
@pytest.mark.parametrize("spec", [U, BANDS, priors.LogNormalSpec(median=0.6, sigma=0.4)])
def test_the_grid_of_costs_loses_next_to_nothing(spec, cost):
    game = {"spec": spec, "rho": 0.0, "buyers": 3, "cost": cost}
    ladder = optimum.optimal_ladder(turns=8, **game)
    for change in (0.995, 1.005):
        prices = [max(cost, cost + (price - cost) * change) for price in ladder.prices]
        revenue, _, _ = optimum.evaluate(prices=prices, order=ladder.order, **game)
        assert revenue <= ladder.revenue + 1e-4 * ladder.first_best


def test_a_new_cost_and_a_large_market_are_answered_at_once():
    optimum.optimal_ladder(spec=U, rho=0.0, buyers=3, turns=8, cost=0.1)
    before = time.process_time()
    optimum.optimal_ladder(spec=U, rho=0.0, buyers=8, turns=32, cost=0.0)
    assert time.process_time() - before < 1
    before = time.process_time()
    for step in range(200):
        optimum.optimal_ladder(spec=U, rho=0.0, buyers=3, turns=8, cost=0.1 + step * 1e-5)
    assert time.process_time() - before < 1


@pytest.mark.parametrize(
    "wrong",
    [
        *[{"buyers": 0}, {"buyers": 13}, {"turns": 0}, {"turns": 65}, {"rho": 1.0}, {"rho": -0.1}],
        *[{"cost": -1.0}, {"cost": math.nan}, {"cost": math.inf}, {"rho": math.nan}],
    ],
)
def test_a_game_out_of_range_is_refused_and_not_approximated(wrong):
    with pytest.raises(ValueError, match=r"not (-?[0-9]|nan|inf)"):
        optimum.optimal_ladder(**{"spec": U, "rho": 0.0, "buyers": 2, "turns": 4, "cost": 0.0} | wrong)


@pytest.mark.parametrize(("prices", "order"), [((0.5,), (2,)), ((0.5,), (-1,)), ((0.5, 0.4), (0,))])
def test_an_order_that_does_not_fit_is_refused(prices, order):
    with pytest.raises(ValueError, match=r"order|turns"):
        optimum.evaluate(prices=prices, order=order, spec=U, rho=0.0, buyers=2, cost=0.0)


def test_the_engine_starts_without_the_numerical_packages():
    script = "import sys; from markets.engine import optimum; print({'numpy', 'scipy'} & set(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "set()"


# A buyer's ladder


@pytest.mark.parametrize("turns", [1, 2, 5, 20])
@pytest.mark.parametrize("value", [1.0, 0.6])
def test_a_buyer_facing_a_uniform_cost_mirrors_the_seller(turns, value):
    ladder = optimum.buyer_ladder(spec=U, value=value, turns=turns)
    assert ladder.bids == pytest.approx([value * turn / (turns + 1) for turn in range(1, turns + 1)], abs=1e-4)
    assert ladder.surplus_share == pytest.approx(turns / (turns + 1), abs=1e-6)
    assert ladder.first_best == pytest.approx(value**2 / 2)


@settings(max_examples=40)
@given(spec=specs, value=edges, turns=st.integers(1, 6))
def test_bids_rise_to_the_value_at_most_and_beat_even_steps(spec, value, turns):
    ladder = optimum.buyer_ladder(spec=spec, value=value, turns=turns)
    assert list(ladder.bids) == sorted(ladder.bids)
    assert ladder.bids[-1] <= value
    assert -1e-12 <= ladder.surplus <= ladder.welfare + 1e-9 <= ladder.first_best + 2e-9
    assume(value > priors.low(spec))
    start = priors.low(spec)
    even = [start + (value - start) * (turn + 1) / (turns + 1) for turn in range(turns)]
    assert bid_surplus(spec, value, ladder.bids) == pytest.approx(ladder.surplus, abs=2e-6)
    assert bid_surplus(spec, value, even) <= ladder.surplus + 2e-3 * ladder.first_best + 1e-9


def bid_surplus(spec, value, bids):
    reached = [0.0, *(priors.cdf(spec, bid) for bid in bids)]
    return math.fsum((value - bid) * (reached[turn + 1] - reached[turn]) for turn, bid in enumerate(bids))


def test_a_known_cost_is_bid_at_once_and_a_hopeless_one_never_beyond_the_value():
    known = optimum.buyer_ladder(spec=priors.ConstantSpec(value=0.6), value=1.0, turns=3)
    assert (known.bids[0], known.surplus, known.surplus_share) == (0.6, pytest.approx(0.4), pytest.approx(1))
    hopeless = optimum.buyer_ladder(spec=priors.ConstantSpec(value=0.6), value=0.5, turns=3)
    assert (hopeless.surplus, hopeless.surplus_share, max(hopeless.bids)) == (0, None, 0.5)


def test_a_bid_meant_for_a_cost_that_many_have_is_not_rounded_below_it():
    counted = priors.EmpiricalSpec(quantiles=(1 / 3, 1 / 3, 1 / 3, 2 / 3, 2 / 3))
    ladder = optimum.buyer_ladder(spec=counted, value=1.0, turns=2)
    assert ladder.bids[0] == 1 / 3
    assert ladder.deal_rate == pytest.approx(1)


def test_a_price_meant_for_the_foot_of_a_band_is_not_rounded_above_it():
    bands = priors.BandsSpec(bands=((1 / 7, 1 / 5), (2 / 3, 0.7)))
    ladder = optimum.optimal_ladder(spec=bands, rho=0.0, buyers=2, turns=4, cost=0.1)
    assert ladder.prices[-1] == 2 / 3
    assert ladder.deal_rate == pytest.approx(1, abs=1e-12)


# Assignments

surpluses = st.integers(1, 5).flatmap(
    lambda products: st.tuples(
        st.lists(st.lists(st.integers(-300, 1000), min_size=products, max_size=products), min_size=1, max_size=5),
        st.lists(st.integers(1, 3), min_size=products, max_size=products),
    )
)


def brute_force(surplus, stock):
    @functools.cache
    def best(buyer, left):
        if buyer == len(surplus):
            return 0
        found = best(buyer + 1, left)
        for item, units in enumerate(left):
            if units and surplus[buyer][item] > 0:
                after = (*left[:item], units - 1, *left[item + 1 :])
                found = max(found, surplus[buyer][item] + best(buyer + 1, after))
        return found

    return best(0, tuple(stock))


@settings(max_examples=200)
@given(market=surpluses)
def test_the_assignment_is_worth_as_much_as_the_best_of_all(market):
    surplus, stock = market
    total, pairs = optimum.optimal_assignment(surplus=surplus, stock=stock)
    assert total == brute_force(surplus, stock) == sum(surplus[buyer][item] for buyer, item in pairs)
    assert len({buyer for buyer, _ in pairs}) == len(pairs)
    assert all(sum(item == held for _, item in pairs) <= units for held, units in enumerate(stock))
    assert all(surplus[buyer][item] > 0 for buyer, item in pairs)
    assert list(pairs) == sorted(pairs)


@settings(max_examples=100)
@given(market=surpluses)
def test_small_and_large_markets_are_solved_alike(market):
    """Idle products, which nobody gains from, only push a market onto the other method."""
    surplus, stock = market
    idle = [[*row, *[0] * 6] for row in surplus]
    assert optimum.optimal_assignment(surplus=idle, stock=[*stock, *[1] * 6])[0] == brute_force(surplus, stock)


def test_ties_and_losses_are_settled_the_same_way_every_time():
    assert optimum.optimal_assignment(surplus=[[5], [9], [9]], stock=[1]) == (9, ((1, 0),))
    assert optimum.optimal_assignment(surplus=[[5, 5], [5, 5]], stock=[1, 1]) == (10, ((0, 0), (1, 1)))
    assert optimum.optimal_assignment(surplus=[[0, -5], [-1, 0]], stock=[1, 1]) == (0, ())
    assert optimum.optimal_assignment(surplus=[[7, 3]], stock=[0, 1]) == (3, ((0, 1),))


def test_large_sums_are_exact_to_the_cent():
    surplus = [[10**10 - (0 if buyer == item else 1) for item in range(12)] for buyer in range(12)]
    assert optimum.optimal_assignment(surplus=surplus, stock=[1] * 12) == (
        12 * 10**10,
        tuple((buyer, buyer) for buyer in range(12)),
    )


def test_two_by_two_of_uniform_values_is_worth_37_thirtieths():
    rng = random.Random(3)
    totals = [
        optimum.optimal_assignment(surplus=[[rng.randrange(10**6) for _ in range(2)] for _ in range(2)], stock=[1, 1])[
            0
        ]
        for _ in range(6000)
    ]
    assert statistics.fmean(totals) / 10**6 == pytest.approx(37 / 30, abs=0.015)
