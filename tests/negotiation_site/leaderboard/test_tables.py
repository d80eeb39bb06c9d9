"""Figures of the board: what is compared is comparable, intervals are those of the bootstrap, and nothing is nan."""

import math

import numpy as np
import pytest

from markets.engine import measures
from markets.engine.figures import ViolationType
from markets.engine.protocol import Role, decode_log
from markets.engine.scenarios import decode_scenario
from negotiation_site.leaderboard import tables
from negotiation_site.leaderboard.facts import BUYER, SELLER, Copy
from negotiation_site.leaderboard.tables import PROVISIONAL, Board, Estimate, Line, board
from tests.markets import rooms
from tests.negotiation_site.leaderboard.columns import NAN, facts_of
from tests.negotiation_site.leaderboard.records import stored


def of(facts, rows=None) -> Board:
    return board(facts, facts.agent_rows if rows is None else rows)


def line(made: Board, agent: int) -> Line:
    return next(line for line in made.lines if line.agent == agent)


def duel(*, scenarios: int = 200, seed: int = 3, gap: float = 0.1, noise: float = 0.05):
    """Agents 0 and 1 in the same scenarios: agent 0 gets `gap` more, and scenarios differ far more than that."""
    rng = np.random.default_rng(seed)
    level = rng.uniform(0.1, 0.8, scenarios)
    rows = []
    for number in range(scenarios):
        for agent, more in ((0, gap), (1, 0.0)):
            rows.append({"scenario": number, "agent": agent, "share": level[number] + more + rng.normal(0, noise)})
    return facts_of(*rows)


# --- Shares and rates -------------------------------------------------------------------------------


def test_a_share_counts_a_missed_deal_as_nothing_and_leaves_the_hopeless_out():
    made = of(facts_of({"share": 0.6}, {"share": 0.0, "deals": 0}, {"share": NAN, "joint": -5.0, "deals": 0}))
    only = line(made, 0)
    assert only.share.value == pytest.approx(0.3)
    assert only.deal_rate.value == pytest.approx(1 / 3)
    assert only.deal_rate_with_gains.value == pytest.approx(1 / 2)
    assert only.walk_away.value == 1.0
    assert (only.games, made.episodes, made.scenarios) == (3, 3, 3)


def test_an_interval_is_that_of_the_bootstrap_over_scenarios():
    rng = np.random.default_rng(1)
    cluster = rng.normal(0.5, 0.2, 60)
    rows = [
        {"scenario": number, "share": cluster[number] + rng.normal(0, 0.01)} for number in range(60) for _ in range(5)
    ]
    share = line(of(facts_of(*rows)), 0).share
    means = np.array([[row["share"] for row in rows][at : at + 5] for at in range(0, 300, 5)]).mean(axis=1)
    plain = rng.choice(means, size=(4_000, 60)).mean(axis=1)
    assert share.value == pytest.approx(means.mean(), abs=1e-6)
    assert (share.low, share.high) == pytest.approx(np.quantile(plain, [0.025, 0.975]).tolist(), abs=0.01)
    # As if its 300 games were independent, it would be less than half as wide.
    naive = 1.96 * np.std([row["share"] for row in rows]) / math.sqrt(300)
    assert share.high - share.low > 3.5 * naive


def test_one_scenario_has_no_interval_and_none_has_no_board():
    share = line(of(facts_of({"scenario": 7}, {"scenario": 7})), 0).share
    assert share == Estimate(0.5)
    assert of(facts_of({"public": False})) == Board()
    assert of(facts_of()) == Board()


def test_what_cannot_be_told_is_empty():
    only = line(of(facts_of({"share": NAN, "joint": -1.0, "deals": 0, "messages": 0, "first_best": 0.0})), 0)
    empty = (only.share, only.adherence, only.quality, only.rescaled, only.concession, only.patience, only.coverage)
    assert set(empty) == {Estimate()}
    assert (only.slope, only.tier_spread, only.equal_terms.value, only.points.value) == (None, None, None, None)
    assert only.violations == {}


def test_more_scenarios_than_clusters_give_the_same_figure_and_about_the_same_interval():
    rng = np.random.default_rng(5)
    keys = rng.integers(1, 2**62, 5_000)
    rows = [{"scenario": int(key), "share": float(rng.uniform())} for key in keys]
    share = line(of(facts_of(*rows)), 0).share
    half = 1.96 * math.sqrt(1 / 12 / 5_000)
    assert (share.value - share.low, share.high - share.value) == pytest.approx((half, half), rel=0.25)


def test_resamples_draw_as_many_clusters_as_there_are():
    drawn = tables.weights(37)
    assert drawn.shape == (tables.RESAMPLES, 37)
    assert set(drawn.sum(axis=1).tolist()) == {37.0}
    assert drawn.mean() == pytest.approx(1.0)
    assert drawn.var() == pytest.approx(1 - 1 / 37, abs=0.02)


# --- On equal terms ---------------------------------------------------------------------------------


def test_where_everybody_sat_everywhere_equal_terms_are_plain_means_and_paired():
    made = of(duel(gap=0.04))
    best, other = line(made, 0), line(made, 1)
    assert [entry.agent for entry in made.lines] == [0, 1]
    assert best.equal_terms.value == pytest.approx(best.share.value, abs=1e-6)
    assert best.equal_terms.low == pytest.approx(best.share.low, abs=0.004)
    assert other.equal_terms.high == pytest.approx(other.share.high, abs=0.004)
    assert (best.tables, made.tables) == (200, 200)
    # Scenarios differ more than the agents do: alone each interval holds the other's mean, the paired one does not.
    assert best.share.low < other.share.high
    assert other.behind.high < -0.015
    assert other.behind.high - other.behind.low < 0.5 * (other.share.high - other.share.low)
    assert best.behind == Estimate(0.0)


def test_an_agent_that_was_given_hard_tables_is_not_the_worse_for_it():
    rows = []
    for number in range(
        100
    ):  # Easy ones for agents 0 and 1, hard ones for 1 and 2; each gets a tenth more than the next.
        easy = number < 50
        level = 0.7 if easy else 0.3
        for agent in (0, 1) if easy else (1, 2):
            rows.append({"scenario": number, "agent": agent, "share": level + {0: 0.0, 1: 0.1, 2: 0.2}[agent]})
    made = of(facts_of(*rows))
    plain = sorted(made.lines, key=lambda each: -each.share.value)
    assert [each.agent for each in plain] == [0, 1, 2]
    assert [each.agent for each in made.lines] == [2, 1, 0]
    assert line(made, 2).equal_terms.value - line(made, 0).equal_terms.value == pytest.approx(0.2, abs=1e-6)
    assert made.strangers == 1


def test_a_table_is_one_seat_against_the_same_others():
    """Two agents that met different opponents in one scenario were not given the same task."""
    rows = [{"scenario": number, "agent": agent, "lineup": agent} for number in range(40) for agent in (0, 1)]
    made = of(facts_of(*rows))
    assert made.tables == 0
    assert {each.equal_terms for each in made.lines} == {Estimate()}


def test_agents_without_a_link_to_the_rest_are_not_ranked_with_them():
    rows = [{"scenario": number, "agent": agent} for number in range(40) for agent in (0, 1)]
    rows += [{"scenario": 1_000 + number, "agent": agent, "share": 0.99} for number in range(35) for agent in (2, 3)]
    made = of(facts_of(*rows))
    assert made.apart == 2
    assert {each.agent for each in made.lines if each.equal_terms.value is not None} == {0, 1}
    assert {each.agent for each in made.lines[-2:]} == {2, 3}


def test_few_tables_make_a_place_provisional_and_put_it_after_the_others():
    facts = duel(scenarios=PROVISIONAL)
    assert not any(each.provisional for each in of(facts).lines)
    rows = [{"scenario": number, "agent": agent, "share": 0.4} for number in range(40) for agent in (0, 1)]
    rows += [{"scenario": number, "agent": 2, "share": 0.9} for number in range(PROVISIONAL - 1)]
    made = of(facts_of(*rows))
    assert line(made, 2).provisional
    assert made.lines[-1].agent == 2


def test_the_same_game_stored_twice_counts_once_in_a_comparison():
    rows = [
        {"scenario": number, "agent": agent, "share": 0.3 + 0.2 * agent} for number in range(40) for agent in (0, 1)
    ]
    once, twice = of(facts_of(*rows)), of(facts_of(*rows, *rows[:40]))
    assert line(twice, 1).equal_terms.value == pytest.approx(line(once, 1).equal_terms.value)
    assert line(twice, 1).points == line(once, 1).points
    assert line(twice, 1).games > line(once, 1).games


# --- Bradley-Terry ----------------------------------------------------------------------------------


def test_bradley_terry_is_that_of_evalica():
    from evalica import Winner, bradley_terry

    rng = np.random.default_rng(8)
    wins = rng.integers(1, 40, (6, 6)).astype(float)
    np.fill_diagonal(wins, 0)
    winners, losers = np.nonzero(wins)
    fitted = bradley_terry(
        winners.tolist(),
        losers.tolist(),
        [Winner.X] * len(winners),
        weights=wins[winners, losers].tolist(),
        tolerance=1e-12,
        limit=100_000,
    )
    expected = np.log(fitted.scores.reindex(range(6)).to_numpy())
    assert tables.bradley_terry(wins) == pytest.approx(expected - expected.mean(), abs=1e-5)


def test_who_wins_every_table_has_a_finite_rating_and_a_tie_is_half_a_win():
    always = of(duel(noise=0.0))
    assert 1_000 < line(always, 0).points.value < 2_500
    even = of(facts_of(*({"scenario": number, "agent": agent} for number in range(40) for agent in (0, 1))))
    assert [each.points.value for each in even.lines] == pytest.approx([1_000.0, 1_000.0])


def test_the_intervals_of_the_ratings_are_near_those_of_refitting_every_resample():
    facts = duel(scenarios=80, gap=0.03)
    got = line(of(facts), 0).points
    share = facts["share"].reshape(80, 2)
    won = (share[:, 0] > share[:, 1]).astype(float)
    drawn = tables.weights(80) @ won + 0.5
    refitted = 1_000 + 200 / math.log(10) * np.log(drawn / (81 - drawn))
    low, high = np.quantile(refitted, [0.025, 0.975])
    assert (got.low, got.high) == pytest.approx((low, high), abs=12)


def test_places_do_not_depend_on_the_order_in_which_games_were_stored():
    facts = duel(scenarios=60)
    rows = [
        {name: facts[name][place] for name in ("scenario", "agent", "share")}
        for place in np.random.default_rng(2).permutation(120)
    ]
    forwards, shuffled = of(facts), of(facts_of(*rows))
    for agent in (0, 1):
        assert line(forwards, agent).points == pytest.approx(line(shuffled, agent).points)
        assert line(forwards, agent).equal_terms == pytest.approx(line(shuffled, agent).equal_terms)


# --- Style, rules, meetings -------------------------------------------------------------------------


def test_tiers_are_fifths_by_own_value_among_seats_of_one_kind():
    rows = [{"own_value": 100.0 * number, "share": number / 100} for number in range(100)]
    rows += [{"own_value": 1e9, "share": 0.5, "role": BUYER}]
    only = line(of(facts_of(*rows[:100])), 0)
    assert [tier.value for tier in only.tier_share] == pytest.approx([0.095, 0.295, 0.495, 0.695, 0.895])
    assert only.tier_spread == pytest.approx(0.8)
    assert len(of(facts_of(*rows[:100])).tier_edges) == 4
    assert of(facts_of(*rows)).tier_edges == ()


def test_concession_paths_are_means_over_the_games_that_got_so_far():
    made = of(facts_of({"path": (0.0, 0.2, 0.6)}, {"path": (0.0, 0.4)}, {"path": ()}))
    only = line(made, 0)
    assert only.path[3] is None
    assert only.path[:3] == pytest.approx((0.0, 0.3, 0.6))
    assert only.path_games[:4] == (2, 2, 1, 0)


def test_the_slope_follows_prices_and_values_as_parts_of_the_list_price():
    rows = [
        {"list_price": scale, "other_value": scale * value, "price": scale * (0.2 + 0.5 * value)}
        for scale in (100.0, 10_000.0)
        for value in (0.4, 0.6, 1.0)
    ]
    assert line(of(facts_of(*rows)), 0).slope == pytest.approx(0.5)
    assert line(of(facts_of(*rows[:2])), 0).slope is None


def test_losses_are_counted_with_and_without_gains_apart():
    rows = (
        {"offers": 3, "loss_offers": 1, "loss_deals": 1},
        {"offers": 2, "loss_offers": 2, "induced": 1, "joint": -10.0},
    )
    only = line(of(facts_of(*rows)), 0)
    assert (only.with_gains.loss_offers, only.with_gains.offers, only.with_gains.loss_deals) == (1, 3, 1)
    assert (only.without_gains.loss_offers, only.without_gains.induced, only.without_gains.deals) == (2, 1, 1)
    assert only.overshoot.value == 1.0


def test_violations_are_parts_of_messages_by_type():
    only = line(of(facts_of({"messages": 10, "violations": (1, 0, 2)}, {"messages": 10})), 0)
    assert only.violations[ViolationType.FORMAT] == pytest.approx(0.05)
    assert only.violations[ViolationType.SOLD_OUT] == pytest.approx(0.1)
    assert only.adherence.value == pytest.approx(17 / 20)


def test_amounts_of_several_currencies_are_not_added_up():
    made = of(facts_of({"welfare": 500.0}, {"welfare": 500.0, "currency": 1}))
    assert (line(made, 0).quality, made.currencies) == (Estimate(), 2)


def test_meetings_use_only_scenarios_that_all_of_them_had_where_these_are_enough():
    rows = [
        {"scenario": number, "agent": seller, "opponent": buyer, "share": 0.2 * seller + 0.1 * buyer}
        for number in range(PROVISIONAL)
        for seller in (0, 1)
        for buyer in (2, 3)
    ]
    extra = {"scenario": 9_999, "agent": 0, "opponent": 2, "share": 0.99}
    made = of(facts_of(*rows, extra))
    assert made.meetings_paired == PROVISIONAL
    assert {(each.seller, each.buyer): round(each.seller_share.value, 6) for each in made.meetings} == {
        (seller, buyer): pytest.approx(0.2 * seller + 0.1 * buyer) for seller in (0, 1) for buyer in (2, 3)
    }
    few = of(facts_of(*rows[:8], extra))
    assert few.meetings_paired == 0
    assert sum(each.games for each in few.meetings) == 9


@pytest.mark.parametrize("family", ["bilateral", "multi_buyer", "catalogue"])
@pytest.mark.django_db
def test_the_board_says_what_the_metrics_say(family):
    """One definition: columns and resampling give the figures of `engine.measures`."""
    seller = {"bilateral": "linear", "multi_buyer": "falling-ladder", "catalogue": "greedy"}[family]
    market = rooms.market(family)
    kept = stored(market, seller=seller, buyers="boulware", count=60)
    assert len(kept) == 60
    episodes = [measures.measure(decode_scenario(each.scenario), decode_log(each.log)) for each in kept]
    facts = Copy(None).current()
    sold = line(of(facts, facts.agent_rows & (facts["role"] == SELLER)), _code(facts, seller))
    bought = line(of(facts, facts.agent_rows & (facts["role"] == BUYER)), _code(facts, "boulware"))
    pairs = [
        (sold.share, measures.unconditional_surplus(episodes, Role.SELLER)),
        (bought.share, measures.unconditional_surplus(episodes, Role.BUYER)),
        (sold.deal_rate, measures.deal_rate(episodes)),
        (sold.deal_rate_with_gains, measures.deal_rate_with_gains(episodes)),
        (sold.walk_away, measures.walk_away_correctness(episodes)),
        (sold.adherence, measures.constraint_adherence(episodes, Role.SELLER)),
        (sold.quality, measures.allocation_quality(episodes)),
        (sold.rescaled, measures.allocation_rescaled(episodes)),
        (sold.extraction, measures.extraction(episodes)),
        (sold.match_accuracy, measures.match_accuracy(episodes)),
        (sold.top_buyer, measures.top_buyer_rate(episodes)),
        (sold.coverage, measures.exploration_coverage(episodes)),
        (sold.entropy, measures.probe_entropy(episodes)),
        (sold.fixation, measures.fixation_rate(episodes)),
        (sold.concession, measures.concession_rate(episodes, Role.SELLER)),
        (bought.concession, measures.concession_rate(episodes, Role.BUYER)),
        (sold.patience, measures.patience(episodes, Role.SELLER)),
        (sold.opening[SELLER], measures.opening_aggressiveness(episodes, Role.SELLER)),
        (bought.opening[BUYER], measures.opening_aggressiveness(episodes, Role.BUYER)),
        (sold.distinct, measures.distinct_offers(episodes, Role.SELLER)),
        (sold.overshoot, measures.overshoot_rate(episodes, Role.SELLER)),
    ]
    for got, expected in pairs:
        assert (got.value is None) == (expected is None)
        if expected is not None:
            assert got.value == pytest.approx(expected, abs=1e-6)
    assert sold.slope == pytest.approx(measures.price_slope(episodes, Role.SELLER), abs=1e-6)


def _code(facts, slug: str) -> int:
    return next(code for code, (known, _version) in enumerate(facts.agents) if known == slug)


def test_nothing_is_ever_nan():
    made = of(facts_of({"share": NAN}, {"agent": 1, "share": NAN}, {"agent": 1}, {"agent": 2, "scenario": 3}))
    numbers = [
        number
        for each in made.lines
        for value in vars(each).values()
        if isinstance(value, Estimate)
        for number in value
        if number is not None
    ]
    assert numbers
    assert all(math.isfinite(number) for number in numbers)
