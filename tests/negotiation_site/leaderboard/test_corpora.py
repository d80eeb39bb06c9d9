"""People of public corpora stand beside the games here: with what their corpus tells, and with a sentence for what it does not."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from markets import corpora, erasure
from markets.corpus_figures import ShareOf, price_named
from markets.models import ImportedParty
from negotiation_site.leaderboard import corpora as board
from tests.markets import dialogues, rooms
from tests.negotiation_site.leaderboard.records import stored

pytestmark = pytest.mark.django_db

ADDRESS = "/leaderboard/corpora/"


def text(response: Any) -> str:
    body = re.sub(r"<script.*?</script>", " ", response.content.decode(), flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)).replace("\xa0", " "))


def bargain(k: int) -> dict[str, Any]:
    """The buyer names 100 and then 150 in words, the seller 180; they agree at 170, or do not."""
    record = dialogues.bargain(price=170, targets=(120, 200), key=f"C_{k}")
    talk = [(0, "Would you take $100? I have 2 kids."), (1, "No, 180."), (0, "150?")]
    record["events"] = [
        {"action": "message", "start_time": None, "data": said, "agent": agent, "time": str(100 + place)}
        for place, (agent, said) in enumerate(talk)
    ] + [
        {"action": "offer", "start_time": None, "data": {"price": 170}, "agent": 1, "time": "160"},
        {"action": "accept" if k % 4 else "reject", "start_time": None, "data": None, "agent": 0, "time": "220"},
    ]
    record["outcome"]["reward"] = int(k % 4 > 0)
    return record


@pytest.fixture
def imported(tmp_path: Path) -> None:
    for name, format, content in (
        ("bikes", "craigslist-bargain", [bargain(k) for k in range(24)]),
        ("camps", "casino", [dialogues.camping(k) for k in range(6)]),
        ("few", "casino", [dialogues.camping(k) for k in range(2)]),
        ("models", "negotiation-arena", dialogues.arena()),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        corpora.store(name=name, format=format, path=path)


def group(corpus: str, role: str) -> board.Group:
    return next(each for each in board.groups_of_corpora() if (each.corpus, each.role) == (corpus, role))


def test_what_people_did_is_counted_as_it_was(imported):
    seller, buyer = group("bikes", "seller"), group("bikes", "buyer")
    for side in (seller, buyer):
        assert side.sides == 24
        assert side.deals.value == pytest.approx(0.75)
        assert side.price.value == pytest.approx(0.85)
        assert side.seconds.value == pytest.approx(120)
    assert (seller.first.value, buyer.first.value) == (pytest.approx(0.9), pytest.approx(0.5))
    assert seller.path == pytest.approx((0.9, 0.85))
    assert buyer.path == pytest.approx((0.5, 0.75))
    assert seller.share.value == pytest.approx((170 - 120) / 80)
    assert buyer.share.value == pytest.approx(1 - (170 - 120) / 80)
    assert seller.share_of is ShareOf.TARGETS


def test_points_are_out_of_the_most_and_no_price_is_made_up(imported):
    camper = group("camps", "")
    assert camper.sides == 12
    assert camper.share.value == pytest.approx((21 + 17) / 2 / 36)
    assert camper.first.value is None
    assert camper.price.value is None
    assert camper.path == ()


def test_no_mean_is_shown_of_a_handful(imported):
    lone = group("few", "")
    assert (lone.deals.value, lone.share.value) == (None, None)


def test_what_models_played_is_no_human_source(imported):
    assert "models" not in {each.corpus for each in board.groups_of_corpora()}


def test_anybody_sees_the_figures_and_nothing_that_was_said(client: Client, imported):
    stored(rooms.market("bilateral", slug="bench"), seller="linear", count=24)
    found = client.get(ADDRESS)
    shown = text(found)
    assert found.status_code == 200
    for expected in (
        "CraigslistBargain, selling", "Agents here, buying", "75.0 %", "of the way between the targets",
        "no reservation values", "no price is negotiated", "Fewer than 5", "32 dialogues between people",
    ):  # fmt: skip
        assert expected in shown, expected
    body = found.content.decode()
    for said in ("2 kids", "often cold", "corpus-", "/corpora/bikes/", "C_3"):
        assert said not in body
    assert body.count('data-chart="corpora-') == 2


def test_researchers_find_the_way_to_the_dialogues(client: Client, imported):
    client.force_login(User.objects.create_user("rita", is_staff=True))
    assert 'href="/corpora/bikes/"' in client.get(ADDRESS).content.decode()
    assert ADDRESS in client.get("/corpora/").content.decode()
    assert ADDRESS in client.get("/leaderboard/").content.decode()


def test_words_that_are_erased_leave_the_figures_at_once(imported):
    assert group("bikes", "buyer").first.value == pytest.approx(0.5)
    for party in ImportedParty.objects.filter(dialogue__corpus__name="bikes", party="buyer-1"):
        erasure.erase_imported(party.pseudonym)
    assert group("bikes", "buyer").first.value is None
    assert group("bikes", "seller").first.value == pytest.approx(0.9)


def test_nothing_imported_says_what_to_do(client: Client):
    assert "No human dialogues were imported yet." in text(client.get(ADDRESS))


@pytest.mark.parametrize(
    ("words", "cents"),
    [
        ("Would you take $1,150.50?", 115_050),
        ("how about 1.2k or 1100", 110_000),
        ("It is 5 years old and 100% fine", None),
        ("model 2016x, 12 lbs", None),
        ("I can do 900 cash", 90_000),
        ("10000 no way", None),
        ("", None),
    ],
)
def test_a_price_in_words_is_a_number_near_the_list_price(words, cents):
    assert price_named(words, 100_000) == cents


def test_the_median_is_moved_little_by_one_absurd_price():
    import numpy as np

    values = np.array([1.0] * 30 + [400.0])
    found = board.median(values, np.arange(31))
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)
    assert board.mean(values, np.arange(31)).value > 10
