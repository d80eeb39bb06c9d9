"""Whoever is erased is gone from the data sets that lie here, and what was in them stays accounted for."""

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from markets import corpora, erasure
from markets.engine.protocol import SELLER
from markets.models import ImportedParty
from negotiation_site.exports import jobs, making, tasks
from negotiation_site.exports.asked import Asked
from negotiation_site.exports.models import Export, ExportedPerson, ExportStatus
from tests.markets import dialogues
from tests.markets.engine.factories import B1, accept, bilateral, offer
from tests.markets.rooms import Game, staged

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def here(monkeypatch, settings, tmp_path):
    monkeypatch.setattr(tasks, "announce", lambda row: None)
    settings.VAR = tmp_path


def sold(talk: str = "Hello", *, consent: str = "public") -> Game:
    game = staged(bilateral(), people=(B1, SELLER), consent=consent)
    game.act(B1, offer(6_000, talk=talk))
    game.act(SELLER, accept(1))
    return game


def exported(**how: str) -> Export:
    row = jobs.order(Asked(**{"format": "jsonl", **how}), by=None)
    assert jobs.work(row.pk)
    row.refresh_from_db()
    assert row.status == ExportStatus.DONE
    return row


def test_the_files_of_a_person_go_and_the_row_keeps_its_hash(client, django_capture_on_commit_callbacks):
    game = sold("I am zanzibar")
    held, other = exported(), exported(since="2100-01-01")
    assert ExportedPerson.objects.filter(export=held).count() == 2
    with django_capture_on_commit_callbacks(execute=True):
        erased = erasure.erase(participant=game.people[B1])
    assert erased.exports == 1
    for row in (held, other):
        row.refresh_from_db()
    assert (held.status, other.status) == (ExportStatus.WITHDRAWN, ExportStatus.DONE)
    assert not jobs.folder(held).exists()
    assert not jobs.archive(held).exists()
    assert jobs.archive(other).exists()
    assert held.sha256
    client.force_login(User.objects.create_user("boss", is_staff=True))
    page = client.get(reverse("export-list")).content.decode()
    assert "withdrawn" in page
    assert "Somebody in it was erased" in page
    assert held.sha256 in page
    assert client.get(reverse("export-download", args=[held.public_id])).status_code == 404
    client.post(reverse("export-delete", args=[held.public_id]))
    held.refresh_from_db()
    assert held.status == ExportStatus.WITHDRAWN


def test_the_next_export_has_the_game_and_not_the_person():
    game = sold("I am zanzibar")
    erasure.erase(participant=game.people[B1])
    text = (jobs.folder(exported()) / "episodes.jsonl").read_text()
    assert "zanzibar" not in text
    (record,) = map(json.loads, text.splitlines())
    by_party = {seat["party"]: seat for seat in record["seats"]}
    assert by_party[B1]["participant"] is None
    assert by_party[SELLER]["participant"] is not None
    assert record["outcome"]["deals"]


def test_an_older_export_that_does_not_say_who_is_in_it_is_withdrawn_too():
    game = sold()
    row = exported()
    ExportedPerson.objects.all().delete()
    Export.objects.update(people_noted=False)
    assert erasure.erase(participant=game.people[B1]).exports == 1
    row.refresh_from_db()
    assert row.status == ExportStatus.WITHDRAWN


def test_files_that_a_crash_left_go_at_the_next_look():
    game = sold()
    row = exported()
    erasure.erase(participant=game.people[B1])  # Within the test's transaction, so nothing is removed yet.
    assert jobs.archive(row).exists()
    tasks.sweep(now=timezone.now())
    assert not jobs.archive(row).exists()
    assert not jobs.folder(row).exists()


def test_an_export_that_is_being_written_begins_anew(monkeypatch):
    game = sold()
    row = jobs.order(Asked(format="jsonl"), by=None)
    real = making.make

    def slow(*args, **more):
        made = real(*args, **more)
        erasure.erase(participant=game.people[B1])
        return made

    monkeypatch.setattr(making, "make", slow)
    assert not jobs.work(row.pk)
    row.refresh_from_db()
    assert row.status == ExportStatus.QUEUED
    monkeypatch.setattr(making, "make", real)
    assert jobs.work(row.pk)
    row.refresh_from_db()
    assert row.status == ExportStatus.DONE
    assert ExportedPerson.objects.filter(export=row).count() == 1


def test_a_party_of_a_corpus_takes_the_data_sets_of_that_corpus_along(tmp_path: Path):
    for name in ("lamps", "chairs"):
        (tmp_path / f"{name}.json").write_text(json.dumps([dialogues.bargain(key=f"{name}_1")]))
        corpora.store(name=name, format="craigslist-bargain", path=tmp_path / f"{name}.json")
    lamps, chairs = exported(format="sft", corpus="lamps"), exported(format="sft", corpus="chairs")
    party = ImportedParty.objects.filter(dialogue__corpus__name="lamps").first()
    assert party is not None
    assert erasure.erase_imported(party.pseudonym).exports == 1
    for row, status in ((lamps, ExportStatus.WITHDRAWN), (chairs, ExportStatus.DONE)):
        row.refresh_from_db()
        assert row.status == status
