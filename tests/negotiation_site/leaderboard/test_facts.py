"""The copy holds what the record holds: new games, withdrawn consent and erasures are in it with the next look."""

from pathlib import Path

import numpy as np
import pytest

from markets import episodes
from markets.engine import figures
from markets.models import Episode, EpisodeSeat, Participant, RecordChange
from negotiation_site.leaderboard import facts
from negotiation_site.leaderboard.facts import BUYER, MIXED, PERSON, SELLER, Copy
from tests.markets import rooms
from tests.markets.engine.factories import B1
from tests.negotiation_site.leaderboard.records import bought, stored, walked

pytestmark = pytest.mark.django_db


def test_every_seat_is_a_row_with_the_figures_of_its_record():
    (episode,) = stored(rooms.market(), seller="linear", buyers="boulware")
    held = Copy(None).current()
    assert len(held) == 2
    seller, buyer = held["role"].tolist().index(SELLER), held["role"].tolist().index(BUYER)
    kept = figures.decode(episode.seats.get(party="seller").figures)
    assert held["episode"].tolist() == [episode.pk] * 2
    assert held.agents[held["agent"][seller]] == ("linear", "1")
    assert held.agents[held["opponent"][seller]] == held.agents[held["agent"][buyer]] == ("boulware", "1")
    assert held["opening"][seller] == pytest.approx(kept.opening_ratio)
    assert held["messages"][seller] == kept.messages
    assert held["path"][seller][: len(kept.path)] == pytest.approx(kept.path)
    assert held["steps"][seller] == len(kept.path)
    assert held["scenario"].tolist() == [episode.scenario_key] * 2
    share = episode.seats.get(party="seller").surplus_share
    assert np.isnan(held["share"][seller]) if share is None else held["share"][seller] == pytest.approx(share)


def test_several_kinds_of_buyers_are_no_one_opponent():
    market = rooms.market("multi_buyer")
    stored(market, seller="falling-ladder", buyers="linear")
    EpisodeSeat.objects.filter(party="buyer-2").update(agent_slug="conceder")
    held = Copy(None).current()
    assert held["opponent"][held["role"] == SELLER].tolist() == [MIXED]


def test_new_games_come_in_and_old_ones_stay_as_they_are():
    copy = Copy(None)
    market = rooms.market()
    stored(market, seller="linear", count=3)
    first = copy.current()
    stored(market, seller="conceder", count=2)
    second = copy.current()
    assert (len(first), len(second)) == (6, 10)
    assert second["episode"][:6].tolist() == first["episode"].tolist()
    assert second.version > first.version
    assert copy.current() is second


def test_a_table_is_the_same_scenario_and_seat_against_the_same_others():
    market = rooms.market()
    for seller in ("linear", "conceder"):
        for buyer in ("linear", "boulware"):
            stored(market, seller=seller, buyers=buyer, count=2)
    held = Copy(None).current()
    selling = held["role"] == SELLER
    assert len(set(held.tables[selling].tolist())) == 2 * 2
    assert len(set(held.scenarios.tolist())) == 2
    assert not set(held.tables[selling].tolist()) & set(held.tables[~selling].tolist())


def test_a_withdrawn_consent_is_in_the_copy_at_once():
    copy, game = Copy(None), bought(6_500)
    assert copy.current()["public"].all()
    rooms.agree(game, B1, "research")
    assert not copy.current()["public"].any()
    rooms.agree(game, B1, "public")
    held = copy.current()
    assert (len(held), held["public"].all()) == (2, True)


def test_an_erased_person_is_gone_from_the_copy():
    copy, game = Copy(None), bought(6_500)
    assert set(copy.current()["participant"].tolist()) == {person.pk for person in game.people.values()}
    game.people[B1].delete()
    held = copy.current()
    assert sorted(held["participant"].tolist())[0] == 0
    assert held["agent"].tolist() == [PERSON, PERSON]


def test_an_erased_game_is_gone_from_the_copy():
    copy = Copy(None)
    kept, gone = stored(rooms.market(), seller="linear", count=2)
    copy.current()
    Episode.objects.filter(pk=gone.pk).delete()
    assert set(copy.current()["episode"].tolist()) == {kept.pk}


def test_figures_that_were_worked_out_anew_are_read_again():
    copy = Copy(None)
    (episode,) = stored(rooms.market(), seller="linear")
    right = copy.current()["messages"].tolist()
    EpisodeSeat.objects.update(figures=EpisodeSeat.objects.first().figures.replace('"messages":', '"messages":1'))
    episodes.note_change([episode.pk])
    assert copy.current()["messages"].tolist() != right
    episodes.refresh_figures()
    assert copy.current()["messages"].tolist() == right


def test_a_game_that_is_committed_late_is_not_missed():
    """With several writers a lower number may become visible after a higher one."""
    copy = Copy(None)
    market = rooms.market()
    late, _ = stored(market, seller="linear", count=2)
    seats = list(late.seats.all())
    EpisodeSeat.objects.filter(episode=late)._raw_delete("default")
    Episode.objects.filter(pk=late.pk)._raw_delete("default")
    assert late.pk not in copy.current()["episode"]
    Episode.objects.bulk_create([late])
    EpisodeSeat.objects.bulk_create(seats)
    stored(market, seller="conceder")
    held = copy.current()
    assert np.bincount(held["episode"])[late.pk] == 2
    assert len(held) == 6


# --- On disk ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(facts, "KEEP_AFTER", 1)
    return tmp_path / "copy"


def test_a_restart_reads_the_copy_and_not_the_record(folder, django_assert_max_num_queries):
    market = rooms.market("catalogue")
    stored(market, seller="greedy", count=3)
    bought(6_500)
    before = Copy(folder).current()
    with django_assert_max_num_queries(8):
        after = Copy(folder).current()
    assert before.version == after.version
    for name in before.columns:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)
    assert (before.agents, before.families, before.lineups) == (after.agents, after.families, after.lineups)
    stored(market, seller="greedy", count=1, seed=9)
    assert len(Copy(folder).current()) == len(before) + 1 + 2


def test_the_copy_of_another_database_is_not_believed(folder):
    stored(rooms.market(), seller="linear")
    Copy(folder).current()
    Episode.objects.update(public_id="another-world")
    EpisodeSeat.objects.update(agent_slug="conceder")
    assert Copy(folder).current().agents == (("conceder", "1"), ("linear", "1"))[:1]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 half a file", b"no archive at all"])
def test_a_broken_copy_is_made_again(folder, content, caplog):
    stored(rooms.market(), seller="linear")
    Copy(folder).current()
    (folder / "seats.npz").write_bytes(content)
    assert len(Copy(folder).current()) == 2
    assert "cannot be read" in caplog.text


def test_a_copy_that_cannot_be_kept_costs_no_page(folder, caplog):
    folder.write_text("in the way")
    stored(rooms.market(), seller="linear")
    assert len(Copy(folder).current()) == 2
    assert "cannot be kept" in caplog.text


def test_an_empty_record_is_an_empty_copy():
    held = Copy(None).current()
    assert (len(held), held.version) == (0, (0, 0))
    assert held.tables.tolist() == []


def test_private_games_are_marked_so():
    walked(consent="private")
    assert not Copy(None).current()["public"].any()


def test_merging_two_people_leaves_one(django_user_model):
    copy, game = Copy(None), walked()
    copy.current()
    other = rooms.person()
    EpisodeSeat.objects.filter(participant=game.people[B1]).update(participant=other)
    episodes.note_change([game.episode.pk])
    assert set(copy.current()["participant"].tolist()) == {0, other.pk}
    assert RecordChange.objects.count() == 1
    assert Participant.objects.filter(pk=other.pk).exists()
