"""The count of what was lost counts: a log with a hole, a move written twice, a page left behind, a turn never taken.

An audit that finds nothing because it looks at nothing would promise people that their moves are safe.
"""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from markets.engine.protocol import SELLER, Leave, LogEntry, MakeOffer, MessageSent, Role, Say
from markets.models import AgentTurn, Episode, RoomEvent, TurnState
from tests.faults import audit, clerk
from tests.faults.__main__ import COLUMNS, Row, main, table
from tests.lab import ROOT
from tests.markets.engine import factories
from tests.markets.rooms import Game, staged

pytestmark = pytest.mark.django_db

BUYER = "buyer-1"


@pytest.fixture
def game() -> Game:
    """A person buys from an agent: an offer, an answer, and the person leaves."""
    game = staged(factories.bilateral())
    game.act(BUYER, MakeOffer(price_cents=3000), move="first")
    game.let_agents_play()
    game.act(BUYER, MakeOffer(price_cents=3500), move="second")
    game.let_agents_play()
    return game


def page_of(game: Game, room: audit.Stored, **answers: str) -> audit.Page:
    """A page that got these answers and shows what the server would show."""
    view = room.views[BUYER]
    return audit.Page(
        BUYER,
        [{"id": name, "type": "make_offer", "answer": answer} for name, answer in answers.items()],
        view["seq"],
        [[item["seq"], item["thread"], item["html"]] for item in view["items"]],
        dict(view["panels"]),
        view["ended"],
    )


def judged(room: audit.Stored, *pages: audit.Page) -> dict[str, Any]:
    found = audit.Findings()
    audit.judge(room, pages, found)
    return {name: count for name, count in vars(found).items() if name in COLUMNS[4:] and count} | {"ok": found.ok}


@pytest.fixture
def room(game: Game) -> audit.Stored:
    """That game played to its end."""
    game.act(BUYER, Leave(), move="last")
    return clerk.stored(game.room.public_id, [BUYER])


@pytest.fixture
def page(game: Game, room: audit.Stored) -> audit.Page:
    return page_of(game, room, first="ack", second="ack", last="ack")


def test_a_room_in_order_is_found_in_order(room: audit.Stored, page: audit.Page) -> None:
    found = audit.Findings()
    audit.judge(room, [page], found)
    assert found.ok, found.notes
    assert (found.rooms, found.acknowledged, found.moves, found.unfinished) == (1, 3, 5, 0)


def test_an_acknowledged_move_that_is_not_in_the_log_is_lost(room: audit.Stored, page: audit.Page) -> None:
    more = [*page.moves, {"id": "gone", "type": "say", "answer": "ack"}]
    assert judged(room, replace(page, moves=more)) == {"lost": 1, "ok": False}


def test_a_move_without_an_answer_was_never_promised(room: audit.Stored, page: audit.Page) -> None:
    more = [*page.moves, {"id": "gone", "type": "say", "answer": ""}]
    assert judged(room, replace(page, moves=more)) == {"ok": True}


def test_a_move_that_stands_twice_in_the_log_is_doubled(room: audit.Stored, page: audit.Page) -> None:
    twice = [replace(row, client_move_id="second") if row.client_move_id == "last" else row for row in room.rows]
    assert judged(replace(room, rows=twice), page) == {"lost": 1, "doubled": 1, "ok": False}


def test_a_refused_move_that_is_in_the_log_is_doubled(game: Game, room: audit.Stored) -> None:
    page = page_of(game, room, first="ack", second="refused", last="ack")
    assert judged(room, page) == {"doubled": 1, "ok": False}


def test_a_move_that_nobody_sent_is_doubled(game: Game, room: audit.Stored) -> None:
    assert judged(room, page_of(game, room, first="ack", last="ack")) == {"doubled": 1, "ok": False}


@pytest.mark.parametrize(
    "change",
    [
        lambda page: {"seq": page.seq - 1},
        lambda page: {"items": page.items[:-1]},
        lambda page: {"items": [*page.items[:-1], [*page.items[-1][:2], "<li>something else</li>"]]},
        lambda page: {"panels": dict(page.panels) | {"panel-status": "<p>Your turn</p>"}},
        lambda page: {"ended": False},
    ],
)
def test_a_page_that_shows_something_else_has_not_converged(room: audit.Stored, page: audit.Page, change: Any) -> None:
    assert judged(room, replace(page, **change(page))) == {"unconverged": 1, "ok": False}


def test_a_page_in_a_room_that_never_ends_waits_in_vain(game: Game) -> None:
    room = clerk.stored(game.room.public_id, [BUYER])
    page = page_of(game, room, first="ack", second="ack")
    assert judged(room, page) == {"unconverged": 1, "ok": False}


@pytest.mark.parametrize("state", ["queued", "running", "superseded"])
def test_a_turn_that_was_played_and_is_not_marked_so_is_missing(
    room: audit.Stored, page: audit.Page, state: str
) -> None:
    assert judged(replace(room, turns=[replace(room.turns[0], state=state), *room.turns[1:]]), page) == {
        "turns_missing": 1,
        "ok": False,
    }


def test_a_turn_that_was_never_asked_for_is_missing(room: audit.Stored, page: audit.Page) -> None:
    assert judged(replace(room, turns=room.turns[1:]), page) == {"turns_missing": 1, "ok": False}


def test_an_agent_that_is_still_waited_for_is_missing(game: Game) -> None:
    game.act(BUYER, Say(talk="Well?"), move="third")
    room = clerk.stored(game.room.public_id, [BUYER])
    assert [turn.state for turn in room.turns].count(TurnState.QUEUED) == 1
    page = page_of(game, room, first="ack", second="ack", third="ack")
    assert judged(room, page) == {"turns_missing": 1, "unconverged": 1, "ok": False}


def test_a_turn_that_is_marked_as_taken_and_not_in_the_log_is_missing(game: Game) -> None:
    game.act(BUYER, Say(talk="Well?"), move="third")
    AgentTurn.objects.filter(room=game.room, state=TurnState.QUEUED).update(state=TurnState.DONE)
    room = clerk.stored(game.room.public_id, [BUYER])
    assert judged(room, page_of(game, room, first="ack", second="ack", third="ack"))["turns_missing"] == 1


def test_an_agent_that_moves_twice_is_doubled(game: Game) -> None:
    room = clerk.stored(game.room.public_id, [BUYER])
    n = len(room.rows) + 1
    again = audit.Row(LogEntry(n, room.rows[-1].entry.at_ms, MessageSent(by=Role.SELLER, buyer=1)), SELLER)
    page = page_of(game, room, first="ack", second="ack")
    assert judged(replace(room, rows=[*room.rows, again]), page)["doubled"] == 1


def test_an_episode_that_does_not_replay_is_a_mismatch(game: Game, room: audit.Stored, page: audit.Page) -> None:
    Episode.objects.filter(room=game.room).update(welfare_cents=1)
    assert judged(clerk.stored(game.room.public_id, [BUYER]), page) == {"replay_mismatches": 1, "ok": False}


def test_a_log_with_a_hole_is_a_mismatch(game: Game, room: audit.Stored, page: audit.Page) -> None:
    RoomEvent.objects.filter(room=game.room).order_by("-n").first().delete()
    found = judged(clerk.stored(game.room.public_id, [BUYER]), page)
    assert (found["unconverged"], found["replay_mismatches"], found["ok"]) == (1, 1, False)


def test_the_rows_have_the_agreed_names_and_a_failed_fault_is_not_ok() -> None:
    row = Row("web_killed", "embedded", 3, failed="it did not bite")
    assert list(row.document()) == [*COLUMNS, "ok"]
    assert row.document()["ok"] is False
    assert "it did not bite" in table([row])
    assert Row("web_killed", "embedded", 3, found={"ok": True}).ok


def test_no_rooms_are_refused_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--rooms", "0"])
    assert ended.value.code == 2
    assert "--rooms must be at least 1" in capsys.readouterr().err


def test_the_clock_of_a_process_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "clock").write_text("3600")
    told = """if True:
        import datetime, time
        from django.utils import timezone
        really = datetime.datetime.now(datetime.UTC)
        print(time.time() - really.timestamp(), (timezone.now() - really).total_seconds())
    """
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "tests" / "faults" / "shifted_clock"),
        "PARLEY_FAULTS_CLOCK": str(tmp_path / "clock"),
    }
    done = subprocess.run([sys.executable, "-c", told], env=environment, capture_output=True, text=True, check=True)
    assert [round(float(word) / 600) for word in done.stdout.split()] == [6, 6]
