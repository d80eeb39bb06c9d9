"""The data of a study join, hold everybody who consented and nobody who took consent back."""

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from markets.engine.scenarios import decode_scenario
from markets.export import ExportError
from negotiation_site.studies import conduct, dataset
from negotiation_site.studies.design import Matching, Side
from negotiation_site.studies.models import Participation, State, Study, StudyStatus
from tests.negotiation_site.studies import people
from tests.negotiation_site.studies.test_bonus import deal, researcher, signed_in
from tests.negotiation_site.studies.test_monitor import pair

pytestmark = pytest.mark.django_db


@pytest.fixture
def study() -> Study:
    made = people.study(people.design(people.condition(side=Side.BUYER)))
    made.created_by = researcher("ada")
    made.save()
    return made


def tables(study: Study, out: Path, scope: str = "research") -> dict[str, list[dict[str, str]]]:
    folder = dataset.make(study, out / scope, scope=scope).folder
    return {path.name: list(csv.DictReader(io.StringIO(path.read_text()))) for path in folder.glob("*.csv")}


def facts(study: Study, out: Path) -> Any:
    return json.loads((out / "research" / "study.json").read_text())


def test_person_round_and_episode_join(study: Study, tmp_path: Path) -> None:
    somebody = deal(study)
    found = tables(study, tmp_path)
    [person] = found["participants.csv"]
    [played] = found["rounds.csv"]
    [episode] = found["episodes.csv"]
    assert (person["condition"], person["role"], person["played"], person["outcome"]) == (
        "linear", "buyer", "True", "finished",
    )  # fmt: skip
    assert person["survey_who"] == "An AI"
    assert played["participant"] == person["participant"]
    assert played["episode"] == episode["episode"] == somebody.rounds.get().room.episode.public_id
    assert played["outcome"] == "deal"
    assert {event["episode"] for event in found["events.csv"]} == {episode["episode"]}
    seats = {seat["party"]: seat["participant"] for seat in json.loads(episode["seats"])}
    assert seats == {"buyer-1": person["participant"], "seller": None}
    assert {(answer["part"], answer["question"], answer["right"]) for answer in found["answers.csv"]} == {
        ("quiz", "binds", "True"), ("survey", "who", ""), ("survey", "remark", ""),
    }  # fmt: skip
    own = decode_scenario(somebody.rounds.get().room.scenario).buyer_values_cents[0][0]
    assert played["own_value_cents"] == str(own)


def test_who_was_assigned_and_did_not_play_is_there_and_who_declined_is_counted(study: Study, tmp_path: Path) -> None:
    way = people.link(study)
    conduct.decline(people.enter(way))
    people.enter(way)
    people.to(State.QUIZ, people.enter(way))
    found = tables(study, tmp_path)
    [person] = found["participants.csv"]
    assert (person["condition"], person["slot"], person["played"], person["rounds_begun"]) == (
        "linear",
        "0",
        "False",
        "0",
    )
    assert (person["bonus_cents"], person["survey_who"]) == ("", "")
    flow = facts(study, tmp_path)["flow"]
    assert (flow["entered"], flow["declined_or_left_before_consent"], flow["assigned_and_did_not_play"]) == (3, 2, 1)


def test_who_withdrew_is_in_no_file(study: Study, tmp_path: Path) -> None:
    kept, gone = deal(study, "p-1"), deal(study, "p-2")
    name = dataset.pseudonym(study, "p", gone.public_id)
    episode = gone.rounds.get().room.episode.public_id
    conduct.withdraw(gone)
    folder = dataset.make(study, tmp_path / "out").folder
    everything = "".join(path.read_text() for path in folder.iterdir())
    assert dataset.pseudonym(study, "p", kept.public_id) in everything
    assert name not in everything
    assert episode not in everything


def test_a_partner_who_withdrew_takes_the_game_along_and_leaves_the_other_s_row(tmp_path: Path) -> None:
    study = people.study(people.design(people.condition("pair", matching=Matching.PERSON), people.condition("alone")))
    seller, buyer = pair(study)
    people.to(State.FINISHED, seller)
    people.to(State.FINISHED, buyer)
    before = {row["participant"]: row for row in tables(study, tmp_path)["rounds.csv"]}
    name, other = (dataset.pseudonym(study, "p", each.public_id) for each in (seller, buyer))
    assert (before[name]["partner"], before[name]["room"]) == (other, before[other]["room"])
    conduct.withdraw(buyer)
    found = tables(study, tmp_path)
    [row] = found["rounds.csv"]
    assert (row["participant"], row["withheld"], row["partner"], row["surplus_cents"]) == (name, "True", "", "")
    assert found["episodes.csv"] == []
    assert {one["participant"]: one["bonus_cents"] for one in found["participants.csv"]}[name] == ""


def test_open_data_hold_only_those_who_agreed_to_them(study: Study, tmp_path: Path) -> None:
    closed, opened = deal(study, "p-1"), deal(study, "p-2")
    Participation.objects.filter(pk=opened.pk).update(consent_scope="public")
    [person] = tables(study, tmp_path, "public")["participants.csv"]
    assert person["participant"] == dataset.pseudonym(study, "p", opened.public_id)
    assert person["entered_at"] == ""
    assert closed.consent_scope == "research"


def test_nothing_that_tells_who_somebody_is_leaves(study: Study, tmp_path: Path) -> None:
    somebody = deal(study, "prolific-person-1")
    folder = dataset.make(study, tmp_path / "out").folder
    everything = "".join(path.read_text() for path in folder.iterdir())
    secret = (
        "prolific-person-1", "of-prolific-person-1", somebody.public_id, somebody.resume_token, somebody.device,
        somebody.completion_code, somebody.person_key,
    )  # fmt: skip
    assert [text for text in secret if text in everything] == []


def test_a_pilot_s_people_are_not_in_it(tmp_path: Path) -> None:
    study = people.study(people.design(people.condition(side=Side.BUYER)), status=StudyStatus.PILOT)
    people.to(State.FINISHED, people.enter(people.link(study)))
    assert tables(study, tmp_path)["participants.csv"] == []


def test_every_column_is_in_the_dictionary_and_again_gives_the_same_bytes(study: Study, tmp_path: Path) -> None:
    deal(study)
    found = tables(study, tmp_path)
    described = {(row["file"], row["column"]) for row in found["dictionary.csv"]}
    for name, rows in found.items():
        if name != "dictionary.csv":
            assert {(name, column) for column in rows[0]} <= described
    first = {path.name: path.read_bytes() for path in (tmp_path / "research").iterdir()}
    again = dataset.make(study, tmp_path / "again").folder
    assert {path.name: path.read_bytes() for path in again.iterdir()} == first


def test_the_command_and_the_other_export_agree(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deal(study)
    call_command("export_study", study.slug, out=tmp_path / "a", json=True)
    made = json.loads(capsys.readouterr().out)
    call_command("export_episodes", format="jsonl", study=study.slug, consent="research", out=tmp_path / "b", json=True)
    assert (made["participants"], made["episodes"]) == (1, json.loads(capsys.readouterr().out)["episodes"])
    with pytest.raises(CommandError, match="no study") as refused:
        call_command("export_study", "nothing", out=tmp_path / "c")
    assert refused.value.returncode == 2
    with pytest.raises(ExportError, match="choose from"):
        dataset.make(study, tmp_path / "d", scope="everybody")


def test_an_export_of_open_data_alone_that_is_empty_says_how_to_get_the_rest(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deal(study)
    call_command("export_episodes", format="jsonl", study=study.slug, out=tmp_path / "open")
    assert "0 episodes in 0 rows" in (said := capsys.readouterr().out)
    assert "--consent research" in said
    call_command("export_episodes", format="jsonl", study=study.slug, consent="research", out=tmp_path / "all")
    assert "--consent" not in capsys.readouterr().out


def test_the_download_is_the_same_folder_and_its_author_s_alone(study: Study) -> None:
    deal(study)
    address = reverse("study-data", args=[study.slug])
    answer = signed_in(study.created_by).get(address)
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert f"{study.slug}/participants.csv" in archive.namelist()
    assert signed_in(study.created_by).get(address + "?consent=all").status_code == 400
    assert signed_in(researcher("bob")).get(address).status_code == 404
    assert Client().get(address).status_code == 302
