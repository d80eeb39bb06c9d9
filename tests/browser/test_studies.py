"""Participants of a study on phones: from the link to the code, alone and with somebody, on one device and another."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Someone
from tests.browser.people import Player
from tests.browser.test_every_page import look_at
from tests.lab import RunningLab

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
CODE = re.compile(r"^[A-Z2-7]{8}$")
ANSWERS = {"binds": "To nothing", "gain-buyer": "15", "gain-seller": "15"}

PAIRS = """
from markets.models import Market
from negotiation_site.studies import authoring, models
from negotiation_site.studies.design import *
pair = Condition(key="pair", market="pair", market_version=1, side=Side.BOTH, matching=Matching.PERSON)
design = Design(title="In pairs", consent=Consent(text="Two at a time.", version="1"), conditions=(pair,),
    scenarios=Scenarios(seed=1), pay=Pay(exchange_ppm=100_000), reveal=Reveal.AFTER_ROUND)
study = authoring.create(slug="in-pairs", design=design, author=None)
models.RecruitmentLink.objects.create(study=study, kind="open", token="in-pairs")
authoring.set_status(study, models.StudyStatus.OPEN, actor=None)
"""


@pytest.fixture(scope="module")
def pairs(lab: RunningLab) -> None:
    """A study in which people meet people."""
    lab.manage("shell", "-v", "0", "-c", PAIRS)


def begin(player: Player, link: str) -> None:
    player.open(f"/study/join/{link}")
    player.text("begin").click()
    player.text("agree").click()
    player.text("read").click()


def answer_quiz(player: Player) -> None:
    for key, answer in ANSWERS.items():
        question = player.text(f"question-{key}")
        if question.count():
            question.get_by_label(answer, exact=True).check()
    player.text("answer-quiz").click()


def play_to_the_end_of_a_round(player: Player) -> None:
    player.text("go-on").click()
    player.my_move()
    player.leave()
    player.text("continue").click()


def test_somebody_alone_goes_from_the_link_to_the_code_and_changes_devices_on_the_way(
    someone: Someone, lab: RunningLab
) -> None:
    phone, laptop = someone(**PHONE), someone()
    phone.open("/study/join/demo-study/?PROLIFIC_PID=p-1&STUDY_ID=s&SESSION_ID=e")
    look_at(phone)
    phone.text("begin").click()
    look_at(phone)
    phone.text("agree").click()
    look_at(phone)
    phone.text("read").click()
    look_at(phone)
    laptop.open("/study/join/demo-study/?PROLIFIC_PID=p-1&STUDY_ID=s&SESSION_ID=e")
    laptop.text("begin").click()
    answer_quiz(laptop)
    phone.page.reload()
    expect(phone.text("elsewhere")).to_be_visible()
    phone.text("take-back").click()
    expect(phone.text("step")).to_contain_text("Practice")
    phone.watch.forgive("409")
    play_to_the_end_of_a_round(phone)
    phone.text("go-on").click()
    phone.my_move()
    look_at(phone)
    phone.page.evaluate("() => document.dispatchEvent(new ClipboardEvent('paste', {bubbles: true}))")
    phone.leave()
    expect(phone.text("result")).to_contain_text("No deal")
    look_at(phone)
    phone.text("continue").click()
    look_at(phone)
    for _round in range(2):
        play_to_the_end_of_a_round(phone)
    phone.text("go-on").click()
    look_at(phone)
    phone.text("question-who").get_by_label("With a program").check()
    phone.text("question-fair").get_by_label("5").check()
    phone.text("answer-survey").click()
    expect(phone.text("code")).to_have_text(CODE)
    expect(phone.text("pay")).to_contain_text("$2.00")
    look_at(phone)
    laptop.open("/study/join/demo-study/?PROLIFIC_PID=p-1&STUDY_ID=s&SESSION_ID=e")
    laptop.watch.forgive("409")
    noted = lab.manage(
        "shell", "-v", "0", "-c",
        "from negotiation_site.studies.models import StudyEvent; "
        "print(StudyEvent.objects.filter(kind='paste').count())",
    )  # fmt: skip
    assert noted.strip() == "1"


def test_two_people_wait_meet_and_are_paid_for_their_deal(someone: Someone, pairs: None) -> None:
    one, two = someone(**PHONE), someone(**PHONE)
    begin(one, "in-pairs/")
    one.text("go-on").click()
    expect(one.page.get_by_role("heading", name="Waiting for somebody")).to_be_visible()
    look_at(one)
    begin(two, "in-pairs/")
    two.text("go-on").click()
    for each in (one, two):
        expect(each.page.locator("#room-data")).to_be_attached()
    seller, buyer = (one, two) if one.page.locator(".room__seat.is-seller").count() else (two, one)
    seller.offer("70")
    expect(buyer.offers()).to_have_count(1)
    buyer.accept()
    for each, gain in ((seller, "$30.00"), (buyer, "$30.00")):
        expect(each.text("result")).to_contain_text(gain)
        expect(each.text("revealed")).to_be_visible()
        each.text("continue").click()
        each.text("go-on").click()
        expect(each.text("pay")).to_contain_text("$3.00")
        expect(each.text("code")).to_have_text(CODE)
