"""The commands of imported corpora and of erasing keep their contract: one document, sentences, exit status 2."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from markets.models import Corpus, Participant, Utterance
from tests.markets import dialogues
from tests.markets.engine.factories import B1, bilateral, offer
from tests.markets.rooms import staged

pytestmark = pytest.mark.django_db


def ran(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command(*arguments, "--json", stdout=out, stderr=StringIO())
    return json.loads(out.getvalue())


def refused(*arguments: str) -> str:
    with pytest.raises(CommandError) as told:
        call_command(*arguments, stdout=StringIO(), stderr=StringIO())
    assert told.value.returncode == 2
    return str(told.value)


@pytest.fixture
def camps(tmp_path: Path) -> Path:
    path = tmp_path / "camps.json"
    path.write_text(json.dumps([dialogues.camping(1), dialogues.camping(2), {"dialogue_id": 3}]))
    return path


def test_an_import_tells_of_every_record(camps):
    told = ran("import_transcripts", str(camps), "--format", "casino", "--name", "camps")
    bad = told.pop("bad_records")
    assert told == {
        "corpus": "camps",
        "format": "casino",
        "records": 3,
        "imported": 2,
        "skipped": 1,
        "duplicates": 0,
        "payoffs_checked": 4,
        "payoff_mismatches": 0,
        "mismatched": [],
    }
    assert bad[0]["place"] == "camps.json, record 3"
    again = ran("import_transcripts", str(camps), "--format", "casino", "--name", "camps")
    assert (again["imported"], again["duplicates"], again["skipped"]) == (0, 2, 1)


def test_what_goes_out_comes_in_again_byte_for_byte(camps, tmp_path):
    ran("import_transcripts", str(camps), "--format", "casino", "--name", "camps")
    first = ran("export_transcripts", "--name", "camps", "--out", str(tmp_path / "out" / "a.jsonl"))
    assert ran("import_transcripts", first["file"], "--format", "parley", "--name", "again")["imported"] == 2
    second = ran("export_transcripts", "--name", "again", "--out", str(tmp_path / "b.jsonl"))
    assert (first["sha256"], first["dialogues"], first["licence"]) == (second["sha256"], 2, "CC BY 4.0")
    assert Path(first["file"]).read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_what_cannot_be_used_ends_with_a_sentence(camps, tmp_path):
    into = ["--format", "casino", "--name", "camps"]
    assert "There is no file or folder" in refused("import_transcripts", str(tmp_path / "none"), *into)
    assert "None of the 3 records" in refused(
        "import_transcripts", str(camps), "--format", "craigslist-bargain", "--name", "camps"
    )
    assert "The name 'No Name'" in refused("import_transcripts", str(camps), "--format", "casino", "--name", "No Name")
    with pytest.raises(CommandError, match="invalid choice"):
        call_command("import_transcripts", str(camps), "--format", "nonsense", "--name", "camps")
    assert "There is no corpus 'camps'" in refused(
        "export_transcripts", "--name", "camps", "--out", str(tmp_path / "x")
    )
    ran("import_transcripts", str(camps), *into)
    assert "is a folder" in refused("export_transcripts", "--name", "camps", "--out", str(tmp_path))
    assert Corpus.objects.count() == 1


def test_a_person_is_erased_by_pseudonym_and_a_slip_erases_nobody():
    game = staged(bilateral(), people=(B1,))
    game.act(B1, offer(6_000, talk="My name is Ada."))
    pseudonym = game.people[B1].pseudonym
    assert "There is nobody with the pseudonym" in refused("erase_participant", pseudonym.lower() + " ")
    assert Utterance.objects.filter(party=B1).exists()
    told = ran("erase_participant", pseudonym, "--yes")
    assert (told["erased"], told["rooms"], told["account"]) == (True, 1, False)
    assert not Utterance.objects.filter(party=B1).exists()
    assert not Participant.objects.filter(pseudonym=pseudonym).exists()


def test_whoever_sits_at_a_terminal_is_asked_first(monkeypatch):
    pseudonym = staged(bilateral(), people=(B1,)).people[B1].pseudonym
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _question: "no")
    assert refused("erase_participant", pseudonym) == "Nothing was erased."
    assert Participant.objects.filter(pseudonym=pseudonym).exists()
    monkeypatch.setattr("builtins.input", lambda _question: pseudonym)
    assert ran("erase_participant", pseudonym)["erased"]


def test_the_staff_is_not_erased_by_a_command():
    participant = Participant.objects.create(pseudonym="Wise Owl", account=User.objects.create_superuser("root"))
    assert "in the administration" in refused("erase_participant", "Wise Owl", "--yes")
    assert Participant.objects.filter(pk=participant.pk).exists()
