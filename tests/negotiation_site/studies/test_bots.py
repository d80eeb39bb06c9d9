"""Bots read what a browser reads, and a run that cannot begin says why and changes nothing."""

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from markets.engine.scenarios import decode_scenario
from negotiation_site.studies import bot_pages, conduct, play
from negotiation_site.studies.design import Side
from negotiation_site.studies.models import LinkKind, Participation, State, StudyStatus
from tests.negotiation_site.studies import people

pytestmark = pytest.mark.django_db


def entered(client: Client) -> Participation:
    """Somebody who has agreed, in this browser."""
    way = people.link(people.study(people.design(people.condition(side=Side.BUYER))))
    client.post(reverse("study-join", args=[way.token]))
    somebody = Participation.objects.get()
    conduct.agree(somebody)
    return somebody


def test_a_page_gives_its_state_its_form_and_what_the_form_asks() -> None:
    client = Client()
    somebody = entered(client)
    conduct.read_instructions(somebody)
    page = bot_pages.read(client.get(reverse("study-page", args=[somebody.public_id])).content.decode())
    assert page.state == State.QUIZ
    assert page.token
    form = page.form("/quiz/")
    assert form is not None
    assert form.choices == {"binds": ["0", "1"]}
    assert form.fixed["attempt"] == "1"
    people.to(State.SURVEY, somebody)
    survey = bot_pages.read(client.get(reverse("study-page", args=[somebody.public_id])).content.decode()).form(
        "/survey/"
    )
    assert survey is not None
    assert (survey.choices, survey.texts) == ({"who": ["0", "1", "2"]}, {"remark": False})


def test_a_table_gives_the_own_value_and_the_offers_that_can_be_taken() -> None:
    client = Client()
    somebody = people.to(State.PLAYING, entered(client))
    conduct.go_on(somebody)
    people.agents_answer()
    html = client.get(reverse("study-page", args=[somebody.public_id])).content.decode()
    played = play.current(somebody)
    assert played is not None
    assert bot_pages.own_value_cents(html) == decode_scenario(played.room.scenario).buyer_values_cents[0][0]
    offers = bot_pages.offers(html)
    assert [offer.offer_id for offer in offers] in ([], [1])
    assert bot_pages.read(html).data["room-data"]["socket"] == f"/ws/study/{somebody.public_id}/"


def test_an_offer_is_read_with_its_price_and_whether_it_loses() -> None:
    html = (
        '<ul><li data-offer="1" data-price="$1,065.00"><button data-accept="1">Accept</button></li>'
        '<li data-offer="2" data-price="$20.50" data-loses><button data-accept="2">Accept</button></li>'
        '<li data-offer="3" data-price="$9.00"><p>Your offer stands</p></li></ul>'
    )
    assert [(offer.offer_id, offer.price, offer.loses) for offer in bot_pages.offers(html)] == [
        (1, "$1,065.00", False),
        (2, "$20.50", True),
    ]
    assert bot_pages.amount_cents("$1,065.00") == 106_500
    assert bot_pages.amount_cents("no price") is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nothing", "--n", "2"), "There is no study 'nothing'"),
        (("haggling", "--n", "0"), "less than 1"),
        (("haggling", "--n", "ten"), "not a whole number"),
        (("haggling", "--n", "501"), "more than 500"),
        (("haggling", "--url", "somewhere"), "no address of a site"),
        (("haggling", "--url", "http://127.0.0.1:9"), "No site answers"),
        (("haggling", "--patience", "x"), "not a number of seconds"),
    ],
)
def test_what_cannot_be_walked_is_refused_with_a_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    people.link(people.study(slug="haggling"))
    with pytest.raises(CommandError, match=sentence):
        call_command("study_bots", *arguments)
    assert not Participation.objects.exists()


@pytest.mark.parametrize("status", [StudyStatus.DRAFT, StudyStatus.PAUSED, StudyStatus.CLOSED])
def test_a_study_that_lets_nobody_in_lets_no_bot_in(status: StudyStatus) -> None:
    study = people.study(slug="haggling")
    study.status = status
    study.save()
    with pytest.raises(CommandError, match="haggling: This study") as refused:
        call_command("study_bots", "haggling", "--n", "1", "--url", "http://127.0.0.1:9")
    assert refused.value.returncode == 2
    assert not study.links.filter(kind=LinkKind.OPEN).exists()
