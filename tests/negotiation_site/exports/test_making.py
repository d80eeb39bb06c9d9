"""A data set holds what may leave and nothing else, says so, and is whole or not there."""

import csv
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest
from django.utils import timezone

from markets import corpora, export_files
from markets.engine.protocol import SELLER
from markets.export import ExportError
from markets.models import Episode, EpisodeText
from negotiation_site.exports import making
from negotiation_site.exports.asked import FORMATS, Asked
from negotiation_site.studies.models import Mode, Participation, Study, StudyRound, StudyVersion
from tests.markets import dialogues, rooms
from tests.markets.engine.factories import B1, LEAVE, accept, bilateral, offer
from tests.markets.rooms import staged
from tests.negotiation_site.leaderboard.records import stored

pytestmark = pytest.mark.django_db

TRAINING = ("sft", "prompt-completion", "preference", "rl")


@pytest.fixture
def games() -> None:
    """Two sellers in the same forty scenarios, so that some states have two endings."""
    bench = rooms.market("bilateral", slug="bench")
    for seller in ("linear", "boulware"):
        stored(bench, seller=seller, count=40)


def made(out: Path, form: str, **how) -> making.Made:
    return making.make(Asked(format=form, **how), out)


def rows(out: Path) -> list[dict]:
    return [json.loads(line) for path in sorted(out.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]


def a_sale(*, consent: str = "public", talk: str = "Deal?", value: int = 8_000) -> Episode:
    game = staged(bilateral(value=value), people=(B1, SELLER), consent=consent)
    game.act(B1, offer(6_000, talk=talk))
    game.act(SELLER, accept(1))
    return game.episode


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_complete_hashed_and_the_same_again(games, tmp_path, form):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    first, again = made(tmp_path / "a", form), made(tmp_path / "b", form)
    assert first.manifest["episodes"] == 80
    for line in (tmp_path / "a" / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((tmp_path / "a" / name).read_bytes()).hexdigest() == digest
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert first.manifest["sha256"] == again.manifest["sha256"]
    named = set(json.loads((tmp_path / "a" / "fields.json").read_text()))
    if form in TRAINING:
        assert set(rows(tmp_path / "a")[0]) == named


@pytest.mark.parametrize("form", FORMATS)
def test_croissant_tells_of_every_file_and_every_column(tmp_path, form):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    a_sale()
    found = made(tmp_path / "out", form)
    told = json.loads((tmp_path / "out" / "croissant.json").read_text("utf-8"))
    hashes = {each["contentUrl"]: each["sha256"] for each in told["distribution"]}
    assert hashes == {
        path.relative_to(tmp_path / "out").as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in found.files
    }
    named = {each["name"] for records in told["recordSet"] for each in records["field"]}
    fields = set(json.loads((tmp_path / "out" / "fields.json").read_text("utf-8")))
    holding_objects = {
        "jsonl": {"scenario", "seats", "events", "texts", "outcome", "times"}, "sft": {"messages"},
        "prompt-completion": {"prompt", "completion"}, "preference": {"prompt", "chosen", "rejected"}, "rl": {"prompt"},
    }  # fmt: skip
    assert named == fields - holding_objects.get(form, set())


def test_croissant_is_valid_by_its_own_reader(games, tmp_path):
    if find_spec("mlcroissant") is None:
        pytest.skip("mlcroissant is not installed")
    made(tmp_path / "out", "jsonl")
    # In a process of its own: what it imports for its log closes the streams that tests are captured with.
    read = f"""
import mlcroissant
told = mlcroissant.Dataset(jsonld={str(tmp_path / "out" / "croissant.json")!r})
print(len(list(told.records("records-episodes"))))
"""
    done = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "80"


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_of_nothing_is_a_valid_empty_data_set(tmp_path, form):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    found = made(tmp_path / "none", form)
    assert (found.manifest["episodes"], found.manifest["rows"]) == (0, 0)
    assert all(path.exists() for path in found.files)
    assert export_files.is_export(tmp_path / "none")


def test_no_scenario_and_no_participant_is_in_two_splits(games, tmp_path):
    host = rooms.person()
    for k in range(12):
        game = staged(bilateral(value=8_000 + k), people=(B1,))
        game.act(B1, LEAVE)
        game.episode.seats.filter(party=B1).update(participant=host if k % 3 else rooms.person())
    made(tmp_path / "out", "jsonl")
    splits, people = defaultdict(set), defaultdict(set)
    for row in rows(tmp_path / "out"):
        splits[json.dumps(row["scenario"])].add(row["split"])
        for seat in row["seats"]:
            people[seat["participant"]].add(row["split"])
    del people[None]
    assert len(people) == 5
    assert all(len(found) == 1 for found in (*splits.values(), *people.values()))


def test_pseudonyms_differ_between_exports_and_name_nobody(tmp_path):
    episode = a_sale()
    made(tmp_path / "a", "jsonl")
    made(tmp_path / "b", "jsonl", thoughts="with")
    one, two = (rows(tmp_path / name)[0]["seats"][0]["participant"] for name in "ab")
    assert one != two
    assert re.fullmatch("p-[0-9a-f]{16}", one)
    person = episode.seats.exclude(participant=None).first().participant
    for path in (tmp_path / "a").iterdir():
        assert person.pseudonym not in path.read_text("utf-8")


@pytest.mark.parametrize("form", ["jsonl", "csv", "sft", "preference", "rl"])
def test_addresses_in_words_stay_here_unless_asked_otherwise(tmp_path, form):
    a_sale(talk="Mail jo.doe@example.org or call +44 20 7946 0958, see https://example.org/x, for 1,250.00 dollars")
    made(tmp_path / "masked", form)
    text = "".join(path.read_text("utf-8") for path in (tmp_path / "masked").iterdir())
    for found in ("jo.doe", "7946 0958", "example.org"):
        assert found not in text
    if form in ("jsonl", "csv"):
        assert "Mail [email] or call [phone], see [link] for 1,250.00 dollars" in text
        made(tmp_path / "as-is", form, keep_text_as_is=True)
        assert "jo.doe@example.org" in "".join(p.read_text("utf-8") for p in (tmp_path / "as-is").iterdir())


@pytest.mark.parametrize("form", ["jsonl", "csv", "sft", "rl"])
def test_only_what_the_scope_allows_leaves(tmp_path, form):
    for scope in ("public", "research", "private"):
        a_sale(consent=scope, talk=f"Words of {scope}.")
    counts = [made(tmp_path / scope, form, consent=scope).manifest["episodes"] for scope in ("public", "research")]
    assert counts == [1, 2]
    text = "".join(path.read_text("utf-8") for path in (tmp_path / "research").iterdir())
    assert "Words of private" not in text


def test_half_an_emoji_is_replaced_and_stops_nothing(tmp_path):
    episode = a_sale()
    scenario = json.loads(episode.scenario)
    scenario["products"][0]["title"] = "Lamp \ud83d"
    Episode.objects.update(scenario=json.dumps(scenario))
    for form in ("jsonl", "csv", "sft", "rl"):
        made(tmp_path / form, form)
        assert "Lamp ?" in "".join(path.read_text("utf-8") for path in (tmp_path / form).iterdir())


def test_cells_that_a_spreadsheet_would_compute_are_text(tmp_path):
    a_sale(talk='=HYPERLINK("x")')
    made(tmp_path / "out", "csv")
    with (tmp_path / "out" / "events.csv").open(encoding="utf-8", newline="") as file:
        talks = [row["talk"] for row in csv.DictReader(file)]
    assert '\'=HYPERLINK("x")' in talks


def test_live_events_have_server_time_and_think_time(tmp_path):
    a_sale()
    made(tmp_path / "out", "jsonl")
    times = rows(tmp_path / "out")[0]["times"]
    assert all(time["server_time"].startswith("20") for time in times)
    assert all(time["think_ms"] >= 0 for time in times[:2])


@pytest.mark.parametrize(
    ("how", "count"),
    [
        ({"agent": "boulware"}, 40),
        ({"agent": "boulware", "role": "buyer"}, 0),
        ({"kind": "scripted"}, 80),
        ({"kind": "person"}, 1),
        ({"kind": "llm"}, 0),
        ({"source": "live"}, 1),
        ({"family": "catalogue"}, 0),
        ({"market": "bench"}, 80),
        ({"since": "2100-01-01"}, 0),
        ({"outcome": "seller_left"}, 0),
    ],
    ids=str,
)
def test_filters_choose_episodes(games, tmp_path, how, count):
    a_sale()
    assert made(tmp_path / "out", "jsonl", **how).manifest["episodes"] == count


def test_outcome_and_least_share_choose_episodes(games, tmp_path):
    deals = Episode.objects.filter(deals__gt=0).count()
    assert 0 < deals < 80
    assert made(tmp_path / "deal", "jsonl", outcome="deal").manifest["episodes"] == deals
    assert made(tmp_path / "none", "jsonl", outcome="no-deal").manifest["episodes"] == 80 - deals
    made(tmp_path / "much", "sft", role="seller", min_share=0.6)
    assert {row["surplus_share"] >= 0.6 for row in rows(tmp_path / "much")} == {True}


def test_a_study_is_its_rounds_that_count(tmp_path):
    when = timezone.now()
    study = Study.objects.create(slug="fair")
    version = StudyVersion.objects.create(study=study, number=1, title="Fair", design="{}", sha256="")
    for mode, number in ((Mode.LIVE, 0), (Mode.LIVE, 1), (Mode.PILOT, 1)):
        game = staged(bilateral(), people=(B1,))
        game.act(B1, LEAVE)
        someone = Participation.objects.create(
            study=study, version=version, mode=mode, entered_at=when, state_at=when, last_seen_at=when
        )
        StudyRound.objects.create(participation=someone, number=number, room=game.room, party=B1, opened_at=when)
    a_sale()
    assert made(tmp_path / "all", "jsonl").manifest["episodes"] == 4
    assert made(tmp_path / "fair", "jsonl", study="fair").manifest["episodes"] == 1
    with pytest.raises(ExportError, match="There is no study 'foul'; there is: fair"):
        made(tmp_path / "none", "jsonl", study="foul")


def test_an_imported_corpus_is_exported_as_rows_to_learn_from(tmp_path):
    (tmp_path / "lamps.json").write_text(json.dumps([dialogues.bargain(key=f"C_{k}") for k in range(3)]))
    corpora.store(name="lamps", format="craigslist-bargain", path=tmp_path / "lamps.json")
    manifest = made(tmp_path / "out", "sft", corpus="lamps", perspective="buyer").manifest
    assert (manifest["episodes"], manifest["rows"]) == (3, 6)
    assert {row["market"] for row in rows(tmp_path / "out")} == {"lamps"}
    for how, sentence in (
        ({"form": "jsonl"}, "export_transcripts writes it"),
        ({"form": "sft", "market": "bench"}, "no market"),
        ({"form": "sft", "perspective": "party-1"}, "party-1"),
    ):
        rooms.market("bilateral", slug="bench")
        with pytest.raises(ExportError, match=sentence):
            made(tmp_path / "not", how.pop("form"), corpus="lamps", **how)
        assert not (tmp_path / "not").exists()


@pytest.mark.parametrize("perspective", ["seller", "buyer"])
@pytest.mark.parametrize("unit", ["turn", "episode"])
def test_conversations_alternate_and_hold_the_chosen_side_alone(games, tmp_path, perspective, unit):
    manifest = made(tmp_path / "out", "sft", perspective=perspective, rows=unit).manifest
    wrong = "BUY" if perspective == "seller" else "SELL"
    answers = 0
    for row in rows(tmp_path / "out"):
        roles = [message["role"] for message in row["messages"]]
        assert roles == ["system", *["user", "assistant"] * (len(roles) // 2)]
        for message in row["messages"]:
            if message["role"] == "assistant":
                answers += 1
                assert f"[{wrong}]" not in message["content"]
                assert "Thought:" not in message["content"]
    assert answers == manifest["moves_answered"]


def test_a_pair_shares_its_prompt_and_prefers_what_ended_better(games, tmp_path):
    made(tmp_path / "out", "preference")
    pairs = rows(tmp_path / "out")
    assert pairs
    for pair in pairs:
        assert pair["chosen"] != pair["rejected"]
        assert pair["chosen_surplus_cents"] > pair["rejected_surplus_cents"]
        assert Episode.objects.filter(public_id__in=[pair["episode"], pair["rejected_episode"]]).count() == 2


def test_steps_say_what_was_allowed_and_what_was_paid(games, tmp_path):
    manifest = made(tmp_path / "out", "rl", perspective="buyer").manifest
    steps = defaultdict(list)
    for row in rows(tmp_path / "out"):
        steps[row["episode"]].append(row)
    assert sum(map(len, steps.values())) == manifest["moves"]
    for found in steps.values():
        assert [row["step"] for row in found] == list(range(1, len(found) + 1))
        assert [row["done"] for row in found] == [False] * (len(found) - 1) + [True]
        assert sum(row["reward"] for row in found) == pytest.approx(found[0]["return"])
        for row in found:
            assert json.loads(row["legal_actions"])["threads"]
            assert row["behavior_policy"] == "linear@1"
            assert json.loads(row["observation"])["role"] == "buyer"


def test_a_move_that_the_rules_refused_is_nobodys_to_imitate(tmp_path):
    bench = rooms.market("bilateral", slug="bench", regulated=("seller",))
    stored(bench, seller="zi-u", count=20)
    manifest = made(tmp_path / "out", "rl").manifest
    assert manifest["moves_refused_or_late"] > 0
    assert {row["mask"] for row in rows(tmp_path / "out") if row["action"] is None} == {0}


def test_a_folder_with_anything_else_in_it_is_left_alone(games, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(ExportError, match="is not empty"):
        made(tmp_path / "out", "jsonl")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_full_disk_leaves_nothing_and_says_so(games, tmp_path, monkeypatch):
    def full(self, row):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(export_files.JsonLines, "add", full)
    with pytest.raises(ExportError, match="No space left on device"):
        made(tmp_path / "out", "jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_draft_of_somebody_who_was_killed_is_cleared_away(games, tmp_path):
    dead = tmp_path / f"{export_files._drafts(tmp_path / 'out')}999999999.abcd"
    dead.mkdir()
    made(tmp_path / "out", "jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_text_that_goes_missing_while_it_is_written_fails_the_export(games, tmp_path, monkeypatch):
    real = making._plan
    a_sale()

    def losing(asked):
        plan = real(asked)
        EpisodeText.objects.all().delete()
        return plan

    monkeypatch.setattr(making, "_plan", losing)
    with pytest.raises(ExportError, match="the record changed meanwhile"):
        made(tmp_path / "out", "jsonl")
    assert list(tmp_path.iterdir()) == []


def test_reading_does_not_grow_with_the_episodes(games, tmp_path, monkeypatch):
    monkeypatch.setattr(making, "CHUNK", 20)
    seen = []
    making.make(Asked(format="jsonl"), tmp_path / "out", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 80), (20, 80), (40, 80), (60, 80), (80, 80)]


def test_answers_are_read_back_by_the_protocol_as_moves(games, tmp_path):
    made(tmp_path / "out", "prompt-completion")
    for row in rows(tmp_path / "out")[:50]:
        text = row["completion"][0]["content"]
        assert re.search(r"^Action: \[(SELL|DEAL|REJECT|QUIT|TALK)\]", text, re.MULTILINE)
