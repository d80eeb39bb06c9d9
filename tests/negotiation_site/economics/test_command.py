"""`verify_economics`: its document, its table, its exit status, and that it asks no database.

No test here may use the database, so one that did would fail.
"""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from negotiation_site.economics import proof, public_data
from negotiation_site.economics.rows import Row


def run(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("verify_economics", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def pretend(monkeypatch: pytest.MonkeyPatch, *measured: float) -> None:
    """Rows with these figures, all of which should be .5."""

    def prove(**asked: Any) -> proof.Proof:
        return proof.Proof(
            [
                Row(name=f"row {place}", reference=0.5, measured=figure, tolerance=0.01)
                for place, figure in enumerate(measured)
            ],
            [],
        )

    monkeypatch.setattr(proof, "prove", prove)


def test_the_document_is_a_list_of_rows() -> None:
    out, err = run("--part", "identities", "--episodes", "400", "--workers", "1", "--json")
    document = json.loads(out)
    assert err == ""
    assert document
    assert all(set(row) == {"name", "reference", "measured", "tolerance", "ok"} for row in document)
    assert all(row["ok"] for row in document)


def test_a_person_gets_a_table_and_a_count(monkeypatch) -> None:
    pretend(monkeypatch, 0.5, 0.505)
    out, _err = run()
    assert out.splitlines()[0].split() == ["ok", "reference", "measured", "tolerance", "name"]
    assert "2 of 2 figures came out." in out


def test_a_figure_that_does_not_come_out_ends_with_status_1_after_the_document(monkeypatch) -> None:
    pretend(monkeypatch, 0.5, 0.6, 0.7)
    out = StringIO()
    with pytest.raises(CommandError, match="2 figures did not come out: row 1; row 2") as refusal:
        call_command("verify_economics", "--json", stdout=out)
    assert refusal.value.returncode == 1
    assert [row["ok"] for row in json.loads(out.getvalue())] == [True, False, False]


def test_absent_data_is_named_on_standard_error(settings, tmp_path: Path) -> None:
    settings.DATA = tmp_path
    out, err = run("--part", "public-data", "--json")
    assert json.loads(out) == []
    assert all(name in err for name in public_data.names())


@pytest.mark.parametrize("arguments", [["--episodes", "0"], ["--workers", "0"], ["--part", "music"]], ids=" ".join)
def test_a_wrong_option_ends_with_a_sentence(arguments: list[str]) -> None:
    with pytest.raises(CommandError, match="argument --"):
        run(*arguments)
