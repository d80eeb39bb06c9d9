"""Imported negotiations are shown to the staff and researchers, searched, filtered and turn by turn; to nobody else."""

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from markets import corpora, erasure
from markets.apps import RESEARCHERS
from markets.models import ImportedParty
from negotiation_site.corpora_pages import money
from tests.markets import dialogues

pytestmark = pytest.mark.django_db


@pytest.fixture
def imported(tmp_path: Path) -> None:
    bargains = [dialogues.bargain(price=90), dialogues.bargain(price=95, key="C_2")]
    bargains[1]["outcome"]["reward"] = 0
    bargains[1]["events"][0]["data"] = "<script>alert('zebra')</script>"
    for name, format, content in (
        ("bikes", "craigslist-bargain", bargains),
        ("camps", "casino", [dialogues.camping()]),
        ("models", "negotiation-arena", dialogues.arena()),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        corpora.store(name=name, format=format, path=path)
    lines = tmp_path / "lines.txt"
    lines.write_text(dialogues.division(0, dialogues.AGREED))
    corpora.store(name="hats", format="deal-or-no-deal", path=lines)


@pytest.fixture
def researcher(client: Client) -> Client:
    user = User.objects.create_user("rita", password="a long secret")
    user.groups.add(Group.objects.get(name=RESEARCHERS))
    client.force_login(user)
    return client


@pytest.mark.parametrize("address", ["/corpora/", "/corpora/bikes/", "/corpora/bikes/C_1/"])
def test_strangers_sign_in_and_players_are_refused(client, imported, address):
    assert client.get(address).headers["Location"].startswith("/account/sign-in/?next=/corpora/")
    client.force_login(User.objects.create_user("pia"))
    assert client.get(address).status_code == 403


def test_the_list_tells_licences_and_an_empty_one_what_to_do(researcher, imported):
    text = researcher.get("/corpora/").content.decode()
    assert "CC BY-NC 4.0" in text
    assert "for tests only" in text
    assert 'href="/corpora/bikes/"' in text


def test_without_a_corpus_the_command_is_shown(researcher):
    assert "import_transcripts PATH" in researcher.get("/corpora/").content.decode()
    assert researcher.get("/corpora/nothing/").status_code == 404


@pytest.mark.parametrize(
    ("query", "there", "absent"),
    [
        ("", ["C_1", "C_2"], []),
        ("?q=ZEBRA", ["C_2"], ["C_1"]),
        ("?outcome=deal", ["C_1"], ["C_2"]),
        ("?outcome=nonsense&page=99", ["C_1", "C_2"], []),
        ("?q=%00%22%3E&outcome=deal", ["No dialogue fits."], ["C_1"]),
    ],
    ids=["all", "words", "outcome", "nonsense", "nothing"],
)
def test_dialogues_are_found_by_words_and_by_how_they_ended(researcher, imported, query, there, absent):
    text = researcher.get(f"/corpora/bikes/{query}").content.decode()
    assert all(f">{key}<" in text for key in there)
    assert not any(f">{key}<" in text for key in absent)


def test_a_bargain_is_shown_with_its_price_line_and_no_surplus_that_nobody_knows(researcher, imported):
    text = researcher.get("/corpora/bikes/C_1/").content.decode()
    assert "Agreed at $90." in text
    assert "price-line" in text
    assert "The corpus gives a target to aim for and no reservation value." in text
    assert "Is it still there?" in text
    assert "after 2 s" in text


def test_what_was_said_cannot_run(researcher, imported):
    text = researcher.get("/corpora/bikes/C_2/").content.decode()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_divisions_and_hidden_reasons_are_shown_apart_from_words(researcher, imported):
    camp = researcher.get("/corpora/camps/7/").content.decode()
    assert "Party 2 gets 2 Firewood, 1 Food, 1 Water" in camp
    assert "High: I am often cold." in camp
    game = researcher.get("/corpora/models/1707348339631/").content.decode()
    assert "What it wrote for itself" in game
    assert "−5 ZUP" in game
    corpus = corpora.corpus("hats").dialogues.get()
    assert (
        "Party 1 chose for itself: 0 ball, 0 book, 4 hat."
        in researcher.get(f"/corpora/hats/{corpus.key}/").content.decode()
    )


def test_an_erased_party_is_shown_as_such(researcher, imported):
    party = ImportedParty.objects.get(dialogue__key="C_1", party="buyer-1")
    erasure.erase_imported(party.pseudonym)
    text = researcher.get("/corpora/bikes/C_1/").content.decode()
    assert "Is it still there?" not in text
    assert ">erased<" in text


def test_amounts_are_written_in_any_currency():
    assert [money(123_450, "USD"), money(-500, "ZUP"), money(-500, "USD"), money(None, "USD")] == [
        "$1,234.50",
        "−5 ZUP",
        "−$5",
        "–",
    ]
