"""A corpus comes in whole or not at all, once, and goes out as it came in."""

import bz2
import gzip
import json
import lzma
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from markets import corpora, erasure
from markets.importers import transcripts
from markets.importers.transcripts import CorpusError, parley, records
from markets.models import Corpus, ImportedDialogue, ImportedParty, ImportedText
from tests.markets import dialogues

pytestmark = pytest.mark.django_db


def stored(path: Path, format: str, name: str = "here") -> corpora.Imported:
    result = corpora.store(name=name, format=format, path=path)
    assert result.imported + result.skipped + result.duplicates == result.records
    return result


def nothing_is_stored() -> bool:
    return not (Corpus.objects.exists() or ImportedDialogue.objects.exists() or ImportedText.objects.exists())


def a_file(folder: Path, content: Any, name: str = "data.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


# --- The public data ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "folder", "facts"),
    [
        ("casino", "casino", {"records": 330, "imported": 330, "duplicates": 0, "checked": 660}),
        ("craigslist-bargain", "craigslist_bargain", {"records": 643, "imported": 643, "duplicates": 0, "checked": 0}),
        ("deal-or-no-deal", "deal_or_no_deal", {"records": 2287, "imported": 1118, "duplicates": 1169, "checked": 938}),
        ("negotiation-arena", "negotiation_arena_logs", {"records": 2, "imported": 2, "duplicates": 0, "checked": 4}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_public_corpora_come_in_whole_with_the_payoffs_they_publish(parley_data, tmp_path, format, folder, facts):
    if not (parley_data / folder).is_dir():
        pytest.skip(f"no {folder} in the public data")
    result = stored(parley_data / folder, format)
    # Bounds rather than counts: a server may hold more files of a corpus than were measured.
    assert result.records >= facts["records"]
    assert result.imported >= facts["imported"]
    assert result.duplicates >= facts["duplicates"]
    assert result.payoffs_checked >= facts["checked"]
    assert result.skipped <= result.records / 100
    assert result.payoff_mismatches == 0
    again = stored(parley_data / folder, format)
    assert (again.imported, again.duplicates + again.skipped) == (0, again.records)
    assert all(corpora.verify(row) for row in ImportedDialogue.objects.select_related("corpus")[:50])
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    corpora.write(name="here", path=first)
    back = stored(first, "parley", name="there")
    assert back.imported == result.imported
    corpora.write(name="there", path=second)
    assert first.read_bytes() == second.read_bytes()


# --- What is kept ---------------------------------------------------------------------------------------


def test_a_target_is_no_reservation_value_and_shares_are_not_clamped(tmp_path):
    stored(a_file(tmp_path, [dialogues.bargain(price=90, targets=(100, 200))]), "craigslist-bargain")
    kept = records.decode(ImportedDialogue.objects.get().record)
    buyer, seller = kept.sides
    assert (buyer.surplus_cents, buyer.surplus_share, seller.surplus_cents) == (None, None, None)
    assert buyer.notes["surplus_share"] == records.NO_LIMIT
    assert (buyer.target_share, seller.target_share) == (1.1, -0.1)
    assert (kept.price_cents, kept.price_ratio, seller.opening_ratio) == (9_000, 0.45, 0.45)
    assert [event.at_ms for event in kept.events] == [0, 2_000, 4_000]


def test_an_offer_that_was_turned_down_is_no_deal(tmp_path):
    record = dialogues.bargain(price=90)
    record["outcome"]["reward"] = 0
    record["events"][-1]["action"] = "reject"
    stored(a_file(tmp_path, [record]), "craigslist-bargain")
    kept = ImportedDialogue.objects.get()
    assert (kept.outcome, kept.price_cents) == ("no_deal", None)


def test_who_took_part_is_not_kept_of_campers(tmp_path):
    stored(a_file(tmp_path, [dialogues.camping()]), "casino")
    everything = "".join(ImportedDialogue.objects.values_list("record", flat=True))
    everything += "".join(ImportedText.objects.values_list("text", flat=True))
    assert "zorblax" not in everything  # Gender, ethnicity, education, personality.
    sides = records.decode(ImportedDialogue.objects.get().record).sides
    assert [(side.payoff_points, side.published_payoff) for side in sides] == [(21, 21), (17, 17)]


def test_a_published_payoff_that_does_not_follow_from_the_deal_is_counted(tmp_path):
    record = dialogues.camping()
    record["participant_info"]["mturk_agent_1"]["outcomes"]["points_scored"] = 20
    result = stored(a_file(tmp_path, [record]), "casino")
    assert (result.imported, result.payoffs_checked, result.payoff_mismatches) == (1, 2, 1)
    assert result.mismatched == ["7"]


@pytest.mark.parametrize(
    ("endings", "outcome", "payoffs"),
    [
        ((dialogues.AGREED, dialogues.AGREED_OTHER), "deal", [8, 6]),
        ((dialogues.AGREED,), "deal", [8, 6]),
        (("item0=1 item1=4 item2=1 <eos> reward=10 disagree",) * 2, "disagreement", [0, 0]),
        (("no agreement <eos> reward=no agreement agree",) * 2, "no_deal", [0, 0]),
        (("disconnect <eos> reward=disconnect agree",), "unfinished", [None, None]),
    ],
    ids=["both views", "one view", "different choices", "no agreement", "disconnected"],
)
def test_views_of_one_dialogue_become_one(tmp_path, endings, outcome, payoffs):
    lines = [dialogues.division(view, ending) for view, ending in enumerate(endings)]
    result = stored(a_file(tmp_path, "\n".join(lines), "data.txt"), "deal-or-no-deal")
    assert (result.imported, result.duplicates) == (1, len(endings) - 1)
    kept = records.decode(ImportedDialogue.objects.get().record)
    assert (kept.outcome, [side.payoff_points for side in kept.sides]) == (outcome, payoffs)


def test_views_that_contradict_each_other_are_told(tmp_path):
    lines = [
        dialogues.division(0, dialogues.AGREED),
        dialogues.division(1, "no agreement <eos> reward=no agreement agree"),
    ]
    result = stored(a_file(tmp_path, "\n".join(lines), "data.txt"), "deal-or-no-deal")
    assert (result.imported, result.skipped) == (1, 1)
    assert "ends otherwise than data.txt, line 1" in result.bad[0].reason


def test_what_a_model_wrote_for_itself_is_never_something_it_said(tmp_path):
    folder = tmp_path / "buysell" / "1"
    folder.mkdir(parents=True)
    a_file(folder, dialogues.arena(), "game_state.json")
    (folder / "interaction.log").write_text("the same in prose")
    (tmp_path / "README.json").write_text("{}")
    result = stored(tmp_path, "negotiation-arena")
    assert (result.records, result.payoffs_checked, result.payoff_mismatches) == (1, 2, 0)
    said = " ".join(ImportedText.objects.filter(kind="said").values_list("text", flat=True))
    assert "secret" not in said
    seller, buyer = records.decode(ImportedDialogue.objects.get().record).sides
    assert (seller.surplus_cents, buyer.surplus_cents, buyer.surplus_share) == (-500, 2_500, 1.25)


# --- Bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"   ", "not a JSON list"),
        (b"[]", "is an empty list"),
        (b"{}", "not a JSON list"),
        (b"[1, 2]", "None of the 2 records"),
        (b"PK\x03\x04\0\0\0\0", "is not text; archives are not unpacked"),
        (b"[\xff\xfe]", "is not UTF-8"),
        (b'[{"dialogue_id": 1}] more', "goes on after the end"),
        (b"[" * 100_000, "cut short"),
    ],
    ids=["empty", "blank", "no records", "object", "no dialogues", "archive", "bytes", "tail", "deep"],
)
def test_a_file_of_another_kind_is_refused_with_a_sentence_and_stores_nothing(tmp_path, content, sentence):
    path = tmp_path / "data.json"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=sentence):
        corpora.store(name="here", format="casino", path=path)
    assert nothing_is_stored()


def test_a_file_that_is_cut_short_stores_nothing_at_any_place(tmp_path):
    whole = json.dumps([dialogues.camping(key) for key in range(4)])
    for length in range(1, len(whole) - 1, 97):
        with pytest.raises(CorpusError):
            corpora.store(name="here", format="casino", path=a_file(tmp_path, whole[:length]))
    assert nothing_is_stored()


def test_a_folder_without_data_is_refused(tmp_path):
    with pytest.raises(CorpusError, match="There is no file or folder"):
        corpora.store(name="here", format="casino", path=tmp_path / "nowhere")
    with pytest.raises(CorpusError, match="holds no data"):
        corpora.store(name="here", format="casino", path=tmp_path)
    a_file(tmp_path, "Licence", "LICENSE.json")
    a_file(tmp_path, "read me", "README.md")
    with pytest.raises(CorpusError, match="holds no data"):
        corpora.store(name="here", format="casino", path=tmp_path)


def test_a_file_or_line_too_long_for_any_corpus_is_not_read_into_memory(tmp_path):
    path = tmp_path / "data.json"
    with path.open("wb") as file:
        file.truncate(200 * 2**20)
    with pytest.raises(CorpusError, match="has 200 MB; files of at most 64 MB"):
        corpora.store(name="here", format="casino", path=path)
    line = "x" * (2**20 + 7) + "\n" + dialogues.division(0, dialogues.AGREED)
    result = stored(a_file(tmp_path, line, "data.txt"), "deal-or-no-deal")
    assert (result.imported, result.skipped) == (1, 1)
    assert result.bad[0].place == "data.txt, line 1"


def test_a_line_without_end_of_our_own_form_is_told_of_and_the_next_is_read(tmp_path, monkeypatch):
    stored(a_file(tmp_path, [dialogues.camping(1)]), "casino")
    path = tmp_path / "out.jsonl"
    corpora.write(name="here", path=path)
    line = path.read_bytes()
    monkeypatch.setattr(parley, "MAX_LINE_BYTES", 2 * len(line))
    path.write_bytes(b"x" * (50 * len(line)) + b"\n" + line)
    result = stored(path, "parley", name="there")
    assert (result.imported, result.skipped) == (1, 1)
    assert f"more than {2 * len(line):,} bytes" in result.bad[0].reason


@pytest.mark.parametrize("packed", ["zip", "gz", "bz2", "xz"])
def test_an_archive_that_would_fill_the_memory_is_not_unpacked(tmp_path, packed):
    bomb = b"[" + b"0," * 2**21 + b"0]"
    path = tmp_path / "data.json"
    if packed == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data.json", bomb)
    else:
        path.write_bytes({"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[packed](bomb))
    with pytest.raises(CorpusError, match=r"is not text|is not UTF-8|is not a JSON list"):
        corpora.store(name="here", format="casino", path=path)
    assert nothing_is_stored()
    with pytest.raises(CorpusError, match="holds no data"):
        corpora.store(name="here", format="casino", path=a_folder_with(tmp_path, path, f"data.json.{packed}"))


def a_folder_with(tmp_path: Path, path: Path, name: str) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    path.rename(folder / name)
    return folder


def test_half_an_emoji_costs_its_record_and_no_other(tmp_path):
    records_ = [dialogues.camping(key) for key in range(3)]
    records_[1]["chat_logs"][0]["text"] = "half \ud83d"
    result = stored(a_file(tmp_path, records_), "casino")
    assert (result.imported, result.skipped) == (2, 1)
    assert result.bad[0].place == "data.json, record 2"
    assert "half of an emoji" in result.bad[0].reason


def test_overlapping_files_are_read_once_and_a_changed_copy_is_told(tmp_path):
    a_file(tmp_path, [dialogues.camping(1), dialogues.camping(2)], "a.json")
    changed = dialogues.camping(2)
    changed["participant_info"]["mturk_agent_1"]["outcomes"]["points_scored"] = 30
    a_file(tmp_path, [dialogues.camping(1), changed], "b.json")
    result = stored(tmp_path, "casino")
    assert (result.imported, result.duplicates, result.skipped, result.payoffs_checked) == (2, 1, 1, 4)


def test_two_corpora_do_not_mix_under_one_name(tmp_path):
    stored(a_file(tmp_path, [dialogues.camping()]), "casino")
    with pytest.raises(CorpusError, match="'here' holds dialogues of casino"):
        corpora.store(name="here", format="craigslist-bargain", path=a_file(tmp_path, [dialogues.bargain()]))
    assert ImportedDialogue.objects.count() == 1


def test_a_record_that_was_changed_after_it_was_written_out_is_not_taken(tmp_path):
    stored(
        a_file(tmp_path, [dialogues.bargain(price=90), dialogues.bargain(price=95, key="C_2")]), "craigslist-bargain"
    )
    path = tmp_path / "out.jsonl"
    corpora.write(name="here", path=path)
    path.write_text(path.read_text().replace('"price_cents":9000', '"price_cents":1000'))
    result = stored(path, "parley", name="there")
    assert (result.imported, result.skipped) == (1, 1)
    assert "does not fit its hash" in result.bad[0].reason


@pytest.mark.parametrize(
    "change",
    [{"key": "a/b"}, {"key": "x" * 101}, {"currency": "US dollars"}, {"price_cents": 10**18}, {"sides": ()}],
    ids=lambda change: next(iter(change)),
)
def test_a_record_that_no_table_can_hold_is_told_of_although_its_hash_fits(tmp_path, change):
    stored(a_file(tmp_path, [dialogues.bargain()]), "craigslist-bargain")
    kept = records.decode(ImportedDialogue.objects.get().record)
    forged = msgspec.structs.replace(kept, **change)
    line = parley.line(forged, (), licence="", pseudonyms={})
    path = tmp_path / "forged.jsonl"
    path.write_bytes(line)
    with pytest.raises(CorpusError, match="None of the 1 records"):
        corpora.store(name="there", format="parley", path=path)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))][0 if path else 1 :]


@pytest.mark.parametrize(
    ("format", "record"),
    [
        ("casino", dialogues.camping()),
        ("craigslist-bargain", dialogues.bargain()),
        ("negotiation-arena", dialogues.arena()),
    ],
    ids=["casino", "craigslist-bargain", "negotiation-arena"],
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_stands_in_one_field_a_record_is_read_or_told_of(tmp_path, format, record, data):
    damaged = json.loads(json.dumps(record))
    *outer, last = data.draw(st.sampled_from(places(damaged)))
    holder = damaged
    for key in outer:
        holder = holder[key]
    holder[last] = data.draw(JUNK)
    path = a_file(tmp_path, damaged if format == "negotiation-arena" else [damaged])
    for found in transcripts.FORMATS[format](path):
        if isinstance(found, tuple):
            dialogue = found[1].dialogue
            assert records.decode(records.canonical(dialogue)) == dialogue
        else:
            assert isinstance(found, transcripts.BadRecord)
            assert found.reason.endswith(".")


# --- Erasing a party ------------------------------------------------------------------------------------


def test_an_erased_party_stays_erased_and_the_record_valid(tmp_path):
    data = a_file(tmp_path, [dialogues.camping()])
    stored(data, "casino")
    party = ImportedParty.objects.get(party="party-1")
    erased = erasure.erase_imported(party.pseudonym)
    assert (erased.imported_dialogues, erased.texts) == (1, 2)
    assert set(ImportedText.objects.values_list("party", flat=True)) == {"party-2"}
    assert corpora.verify(ImportedDialogue.objects.select_related("corpus").get())
    assert stored(data, "casino").imported == 0
    assert not ImportedParty.objects.filter(party="party-1").exists()
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    corpora.write(name="here", path=first)
    stored(first, "parley", name="there")
    corpora.write(name="there", path=second)
    assert first.read_bytes() == second.read_bytes()
    assert party.pseudonym not in first.read_text()
