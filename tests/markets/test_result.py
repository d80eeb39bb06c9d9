"""What a finished game says: who gained what, what was possible, and how it came about."""

from collections.abc import Callable

import pytest
from django.template.loader import render_to_string

from markets import result, room_page, selectors, services
from markets.engine import metrics
from markets.engine.protocol import SELLER, EndReason
from markets.engine.scenarios import Scenario
from markets.presentation import Result
from tests.markets.engine.factories import (
    B1,
    B2,
    B3,
    LEAVE,
    Table,
    accept,
    bilateral,
    catalogue,
    multi_buyer,
    offer,
    reject,
    say,
)
from tests.markets.rooms import Game, staged


def said(table: Table, party: str) -> str:
    return result.headline(table.scenario, metrics.outcome(table.scenario, table.log), party)


def word(table: Table, party: str) -> str:
    return result.outcome_word(table.scenario, metrics.outcome(table.scenario, table.log), party)


def at(price: int, **scenario: int) -> Table:
    """Buyer and seller agree on a price."""
    return Table(bilateral(**scenario)).play_all((B1, offer(price)), (SELLER, accept(1)))


# --- Sentences --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "buyer", "seller"),
    [
        (
            at(6_200),
            "You bought at $62.00 and took 60 % of the $30.00 there was to share.",
            "You sold at $62.00 and took 40 % of the $30.00 there was to share.",
        ),
        (
            at(5_000),
            "You bought at $50.00 and took 100 % of the $30.00 there was to share.",
            "You sold at $50.00 and took 0 % of the $30.00 there was to share.",
        ),
        (
            at(9_000),
            "You bought at $90.00 and lost $10.00 on it.",
            "You sold at $90.00 and took 133 % of the $30.00 there was to share.",
        ),
        (
            at(5_000, value=4_000, cost=6_000),
            "You bought at $50.00 and lost $10.00 on it.",
            "You sold at $50.00 and lost $10.00 on it.",
        ),
        (
            at(5_000, value=5_000, cost=5_000),
            "You bought at $50.00, although there was nothing to share.",
            "You sold at $50.00, although there was nothing to share.",
        ),
        (
            Table(bilateral()).play_all((B1, LEAVE)),
            "No deal. There was $30.00 to share and it went to nobody.",
            "No deal. There was $30.00 to share and it went to nobody.",
        ),
        (
            Table(bilateral(value=4_000, cost=6_000)).play_all((B1, LEAVE)),
            "There was no price both could accept; walking away was right.",
            "There was no price both could accept; walking away was right.",
        ),
    ],
    ids=["deal", "all of it", "bought too dear", "both lost", "nothing to share", "impasse", "no zone"],
)
def test_an_end_is_told_in_one_sentence_to_each_side(table, buyer, seller):
    assert said(table, B1).replace("\u00a0", " ") == buyer
    assert said(table, SELLER).replace("\u00a0", " ") == seller


def test_a_buyer_who_was_outbid_learns_what_was_in_it():
    table = Table(multi_buyer()).play_all((SELLER, offer(6_000, to=2)), (B2, accept(1)))
    assert said(table, B1) == "You did not buy. There was $8.00 in it for you and the seller."
    assert said(table, B3) == "You did not buy. There was $70.00 in it for you and the seller."


def test_a_seller_of_several_things_is_told_the_sum():
    table = Table(catalogue()).play_all(
        (SELLER, offer(7_000, to=1)), (B1, accept(1)), (SELLER, offer(6_000, to=2, product=1)), (B2, accept(1))
    )
    assert said(table, SELLER).replace("\u00a0", " ") == (
        "You sold 2 products for $130.00 and took 53 % of the $75.00 there was to share."
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (at(6_000), ("deal", "deal")),
        (Table(bilateral()).play_all((B1, LEAVE)), ("impasse", "impasse")),
        (Table(bilateral(value=4_000, cost=6_000)).play_all((B1, LEAVE)), ("no_deal_possible", "no_deal_possible")),
    ],
)
def test_an_end_has_one_word_for_the_eye(table, words):
    assert (word(table, B1), word(table, SELLER)) == words


def test_a_game_that_somebody_let_run_out_is_called_abandoned():
    table = Table(bilateral())
    table.expire(B1)
    assert word(table, SELLER) == word(table, B1) == "abandoned"


def test_a_share_is_written_as_people_read_it():
    assert result.percent(0.614).replace("\u00a0", " ") == "61 %"
    assert result.percent(-0.2).replace("\u00a0", " ") == "−20 %"
    assert result.percent(0.0).replace("\u00a0", " ") == "0 %"


@pytest.mark.parametrize(
    ("party", "text"),
    [(B1, "Bought at $70.00"), (B2, "Bought at $60.00"), (SELLER, "Sold 2 for $130.00")],
)
def test_a_list_has_two_words_for_each_seat(party, text):
    table = Table(catalogue()).play_all(
        (SELLER, offer(7_000, to=1)), (B1, accept(1)), (SELLER, offer(6_000, to=2, product=1)), (B2, accept(1))
    )
    assert result.short_outcome(table.scenario, metrics.outcome(table.scenario, table.log), party) == text


# --- The panel --------------------------------------------------------------------------------------


def shown(game: Game, party: str) -> Result:
    seat = game.seat(party)
    return result.result(seat, selectors.seat_view(seat), selectors.revealed(seat.room))


def dealt() -> Game:
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(5_500))
    game.act(SELLER, offer(7_000))
    game.act(B1, accept(2))
    return game


@pytest.mark.django_db
def test_a_game_that_is_going_has_no_result():
    game = staged(bilateral(), people=(B1,))
    with pytest.raises(selectors.StillGoing):
        selectors.revealed(game.fresh())


@pytest.mark.django_db
def test_the_line_shows_both_values_the_deal_and_the_way_there():
    line = shown(dealt(), B1).line
    marks = [(mark.kind, mark.money, mark.you) for mark in line.marks]
    assert marks == [
        ("their_reservation", "$50.00", False),
        ("reservation", "$80.00", True),
        ("past_offer", "$55.00", True),
        ("deal", "$70.00", False),
    ]
    assert [band.kind for band in line.bands] == ["agreement"]
    assert line.title == "The seller's cost was $50.00 and the buyer's value $80.00."


@pytest.mark.django_db
def test_figures_say_what_was_gained_and_what_two_yardsticks_would_have_got():
    figures = shown(dealt(), B1).figures
    assert [figure.label for figure in figures] == [
        "Your gain",
        "Best with full information",
        "Best knowing only what was public",
    ]
    own, full, prior = figures
    assert (own.value, own.fraction) == ("$10.00", pytest.approx(1 / 3))
    assert (full.value, full.fraction) == ("$30.00", 1.0)
    assert 0 <= prior.fraction <= 1
    assert prior.note


@pytest.mark.django_db
@pytest.mark.parametrize(
    "scenario", [bilateral(), bilateral(value=4_000, cost=6_000), multi_buyer(), catalogue()], ids=[1, 2, 3, 4]
)
def test_every_end_in_every_seat_has_a_panel(scenario: Scenario):
    people = [SELLER, *(f"buyer-{k}" for k in range(1, scenario.buyers + 1))]
    for ending in (expired, left, sold):
        game = staged(scenario, people=people)
        ending(game)
        for party in people:
            panel = shown(game, party)
            assert panel.headline.endswith(".")
            assert len(panel.figures) == 3
            assert all(figure.fraction is None or figure.fraction <= 1.5 for figure in panel.figures)
            assert (panel.line is None) == (len(scenario.products) > 1)
            assert bool(panel.threads) == (party == SELLER and scenario.buyers > 1)


def expired(game: Game) -> None:
    """Whoever is due first lets the time run out."""
    due = next(seat for seat in game.room.seats.order_by("deadline_at") if seat.deadline_at)
    services.sweep(due.deadline_at)


def left(game: Game) -> None:
    game.act(SELLER, LEAVE)


def sold(game: Game) -> None:
    if game.scenario.family == "bilateral":
        game.act(B1, offer(6_000))
        game.act(SELLER, accept(1))
        return
    game.act(SELLER, offer(6_000, to=2))
    game.act(B2, accept(1))
    if not game.state.ended:
        game.act(SELLER, LEAVE)


@pytest.mark.django_db
def test_a_seller_reads_what_each_conversation_came_to():
    game = staged(multi_buyer(), people=(SELLER, B1), agents="threshold")
    game.act(SELLER, offer(9_000, to=1))
    game.act(B1, offer(4_100))
    game.act(SELLER, offer(9_500, to=1))
    game.act(B1, LEAVE)
    game.act(SELLER, offer(7_000, to=3))
    game.let_agents_play()
    panel = shown(game, SELLER)
    rows = [
        (row.name, row.outcome, row.outcome_text, row.their_value, row.best_price_seen, row.your_surplus)
        for row in panel.threads
    ]
    assert rows == [
        ("Buyer A", "left", "Left", "$48.00", "$41.00", ""),
        ("Buyer B", "none", "No deal", "$72.00", "", ""),
        ("Buyer C", "deal", "Bought at $70.00", "$110.00", "", "$30.00"),
    ]
    assert [row.who for row in panel.threads] == ["a person", "Threshold buyer", "Threshold buyer"]


@pytest.mark.django_db
def test_a_catalogue_shows_the_best_matching_beside_what_happened():
    game = staged(catalogue(), people=(SELLER,), agents="threshold")
    game.act(SELLER, offer(5_500, to=1, product=1))
    game.let_agents_play()
    game.act(SELLER, offer(5_200, to=2))
    game.let_agents_play()
    panel = shown(game, SELLER)
    rows = [(row.best_buyer, row.best_gain, row.actual_buyer, row.actual_gain, row.same) for row in panel.matching]
    assert rows == [
        ("Buyer A", "$40.00", "Buyer B", "$30.00", False),
        ("Buyer B", "$35.00", "Buyer A", "$20.00", False),
    ]
    assert panel.matching_sentence.replace("\u00a0", " ") == (
        "Together you reached 67 % of the best total gain of $75.00."
    )


@pytest.mark.django_db
def test_a_catalogue_that_sold_nothing_has_no_column_of_values_without_a_value():
    game = staged(catalogue(), people=(SELLER,), agents="threshold")
    game.act(SELLER, LEAVE)
    page = render_to_string("markets/_result.html", {"result": shown(game, SELLER)})
    assert "What each conversation came to" in page
    assert "Their value" not in page
    assert [page.count(f'data-label="Gain of both {which}"') for which in ("at best", "in fact")] == [2, 2]


# --- Replay -----------------------------------------------------------------------------------------


def replayed(game: Game, party: str):
    seat = game.seat(party)
    return result.replay_page(seat, selectors.seat_view(seat), selectors.revealed(seat.room))


@pytest.mark.django_db
def test_a_replay_goes_step_by_step_and_says_what_each_moment_was_worth():
    page = replayed(dealt(), B1)
    assert [step.heading for step in page.steps] == [f"Step {n} of 5" for n in (1, 2, 3, 4, 5)]
    assert [step.comment for step in page.steps] == [
        "",
        "Accepting $70.00 here would have been worth $10.00 to you.",
        "",
        "",
        "",
    ]
    assert [mark.kind for mark in page.steps[0].line.marks][-1] == "your_offer"
    assert [mark.kind for mark in page.steps[-1].line.marks][-1] == "deal"


@pytest.mark.django_db
@pytest.mark.parametrize("party", [SELLER, B1, B2])
@pytest.mark.parametrize(
    "play",
    [
        lambda game: game.act(SELLER, LEAVE),
        lambda game: [
            game.act(SELLER, say("Hello.", to=1)),
            game.act(B1, offer(4_500)),
            game.act(SELLER, reject(1, to=1)),
            game.act(B1, LEAVE),
            game.act(SELLER, offer(6_000, to=2)),
            game.act(B2, accept(1)),
            *([] if game.state.ended else [game.act(SELLER, LEAVE)]),
        ],
    ],
    ids=["left", "everything"],
)
@pytest.mark.parametrize("scenario", [multi_buyer(values=(4_800, 7_200)), catalogue()], ids=["one", "several"])
def test_a_replay_shows_exactly_what_the_seat_saw(party: str, play: Callable, scenario: Scenario):
    game = staged(scenario, people=(SELLER, B1, B2))
    play(game)
    page = replayed(game, party)
    assert [step.number for step in page.steps] == list(range(1, len(page.steps) + 1))
    seen = {event.seq for event in game.view(party).events}
    assert {step.item.seq for step in page.steps} <= seen
    assert page.steps[-1].item.kind == "end"


def test_every_reason_for_an_end_has_a_sentence():
    sentences = {room_page.end_sentence(reason) for reason in EndReason}
    assert len(sentences) == len(EndReason)
