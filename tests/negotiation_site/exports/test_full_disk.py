"""A disk that fills at any byte leaves no half data set, and whoever asked is told."""

import json
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from markets import corpora
from markets.export import ExportError
from markets.importers.transcripts import CorpusError
from negotiation_site.exports import jobs, making
from negotiation_site.exports.asked import FORMATS, Asked
from negotiation_site.exports.models import ExportStatus
from tests.markets import dialogues, rooms
from tests.negotiation_site.leaderboard.records import stored
from training import datasets
from training.datasets import Chosen, DataError, Kind

pytestmark = pytest.mark.django_db


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The system refuses every write beyond `size` bytes of a file, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def games() -> None:
    stored(rooms.market("bilateral", slug="bench"), seller="linear", count=8)


@pytest.fixture
def lamps(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "lamps.json").write_text(json.dumps([dialogues.bargain(key=f"C_{k}") for k in range(30)]))
    corpora.store(name="lamps", format="craigslist-bargain", path=folder)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("size", [300, 3_000])
def test_no_format_leaves_a_half_folder(games, tmp_path, form, size):
    if form == "parquet":
        pytest.importorskip("pyarrow")
        __import__("pyarrow.parquet")
    with largest_file(size), pytest.raises(ExportError, match="cannot be written"):
        making.make(Asked(format=form), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["jsonl", "sft"])
def test_an_earlier_export_stays_as_it_was(games, tmp_path, form):
    making.make(Asked(format=form), tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with largest_file(1_000), pytest.raises(ExportError):
        making.make(Asked(format=form), tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_data_set_to_imitate_is_whole_or_not_there(lamps, tmp_path):
    with largest_file(2_000), pytest.raises(DataError, match="cannot be written"):
        datasets.write(Chosen(kind=Kind.CORPUS, name="lamps"), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_corpus_that_is_written_out_is_whole_or_not_there(lamps, tmp_path):
    with largest_file(2_000), pytest.raises(CorpusError, match="cannot be written"):
        corpora.write(name="lamps", path=tmp_path / "out" / "lamps.jsonl")
    assert list((tmp_path / "out").iterdir()) == []


def _ordered(settings, tmp_path: Path) -> Callable[[], jobs.Export]:
    settings.VAR = tmp_path
    row = jobs.order(Asked(format="jsonl"), by=None)

    def worked() -> jobs.Export:
        jobs.work(row.pk)
        row.refresh_from_db()
        return row

    return worked


def test_an_order_that_found_the_disk_full_says_so_and_can_be_given_again(games, settings, tmp_path, client):
    with largest_file(2_000):
        row = _ordered(settings, tmp_path)()
    assert row.status == ExportStatus.FAILED
    assert list((tmp_path / "exports").iterdir()) == []
    client.force_login(User.objects.create_user("boss", is_staff=True))
    assert "cannot be written" in client.get(reverse("export-list")).content.decode()
    assert _ordered(settings, tmp_path)().status == ExportStatus.DONE


def test_a_disk_that_is_full_only_for_the_archive_leaves_nothing_either(games, settings, tmp_path, monkeypatch):
    def full(*_args: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jobs, "pack", full)
    row = _ordered(settings, tmp_path)()
    assert (row.status, row.sha256) == (ExportStatus.FAILED, "")
    assert list((tmp_path / "exports").iterdir()) == []
