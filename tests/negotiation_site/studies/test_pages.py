"""What a participant sees is theirs: resumed where it was, refused to strangers, with nothing of the other side."""

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from markets.engine.money import format_amount
from markets.engine.scenarios import decode_scenario
from negotiation_site.studies import conduct, play
from negotiation_site.studies.design import Consent, Matching, Practice, Reveal, Told, Waiting
from negotiation_site.studies.models import LinkKind, Participation, State
from negotiation_site.studies.pages import rate_text
from tests.negotiation_site.studies import people
from tests.negotiation_site.studies.people import agents_answer, condition, design, link, study

pytestmark = pytest.mark.django_db


class Browser(Client):
    """A participant at a browser."""

    def begin(self, way, query: str = "") -> str:
        """Enter by a link; the address of the participation's page."""
        answer = self.post(reverse("study-join", args=[way.token]) + query)
        assert answer.status_code == 302, answer.content.decode()
        self.public_id = answer.url.strip("/").split("/")[-1]
        return answer.url

    @property
    def row(self) -> Participation:
        return Participation.objects.get(public_id=self.public_id)

    def see(self, status: int = 200) -> str:
        answer = self.get(reverse("study-page", args=[self.public_id]))
        assert answer.status_code == status, answer.content.decode()
        return answer.content.decode()

    def send(self, step: str, **fields: object):
        return self.post(reverse(f"study-{step}", args=[self.public_id]), fields)

    def to_table(self) -> None:
        """Past the quiz, to the first round."""
        self.send("consent", agree="yes")
        self.send("instructions")
        self.send("quiz", binds="1", attempt="1")
        self.send("go-on")


def test_a_consent_page_that_is_sent_without_an_answer_asks_again_and_ends_nothing():
    browser = Browser()
    browser.begin(link(study()))
    unanswered = browser.send("consent")
    assert unanswered.status_code == 400
    assert "Say whether you agree" in unanswered.content.decode()
    assert browser.row.state == "entered"
    browser.send("consent", agree="no")
    over = browser.see()
    assert browser.row.outcome == "declined"
    assert "Only that you declined is kept" in over


def test_somebody_walks_through_by_the_pages_alone():
    way = link(study(design(practice=Practice(agent="linear"), consent=Consent(text="**Read** this.", version="v3"))))
    browser = Browser()
    landing = browser.get(reverse("study-join", args=[way.token])).content.decode()
    assert "Haggling with strangers" in landing
    assert Participation.objects.count() == 0  # Looking at a link is not entering.
    browser.begin(way)
    consent = browser.see()
    assert "<strong>Read</strong> this." in consent
    assert "when text is pasted" in consent
    browser.send("consent", agree="yes")
    own = browser.row.role
    instructions = browser.see()
    assert ("You buy." in instructions) is (own == "buyer")
    assert ("You sell." in instructions) is (own == "seller")
    browser.send("instructions")
    assert browser.send("quiz", attempt="1").status_code == 400
    wrong = browser.send("quiz", binds="0", attempt="1").content.decode()
    assert "Talk is free." in wrong
    assert "1 try left" in wrong
    browser.send("quiz", binds="1", attempt="2")
    assert "practice round" in browser.see()
    for _round in range(2):  # Practice, and the one that counts.
        browser.send("go-on")
        table = browser.see()
        assert "room-data" in table
        assert "/rematch/" not in table
        assert "/markets/" not in table
        acted = browser.post(
            reverse("study-room-act", args=[browser.public_id]),
            json.dumps({"type": "act", "client_move_id": "bye", "action": {"type": "leave"}}),
            content_type="application/json",
        )
        assert acted.json()["type"] == "ack"
        result = browser.get(reverse("study-room-result", args=[browser.public_id])).content.decode()
        assert "rematch" not in result.lower()
    browser.send("go-on")
    assert "completion code" not in browser.see()
    assert browser.send("survey", remark="x").status_code == 400
    browser.send("survey", who="2")
    end = browser.see()
    assert browser.row.completion_code in end
    assert "$2.00" in end


def test_a_form_of_a_later_step_leads_back_to_the_step_that_is_due():
    visitor = Browser()
    visitor.begin(link(study()))
    for step in ("instructions", "quiz", "go-on", "survey"):
        assert visitor.send(step, binds="1").status_code in (200, 302)
        assert visitor.row.state == State.ENTERED
    assert "Before you decide" in visitor.see()


def test_coming_back_resumes_where_one_was():
    way = link(study())
    browser = Browser()
    address = browser.begin(way, "?PROLIFIC_PID=p1&STUDY_ID=s&SESSION_ID=e")
    browser.send("consent", agree="yes")
    again = browser.get(reverse("study-join", args=[way.token]) + "?PROLIFIC_PID=p1&STUDY_ID=s&SESSION_ID=e")
    assert again.url == address
    assert (browser.row.platform_person, browser.row.platform_study, browser.row.platform_session) == ("p1", "s", "e")
    assert Participation.objects.count() == 1


def test_a_second_device_takes_over_and_the_first_is_told():
    way = link(study())
    first, second = Browser(), Browser()
    first.begin(way, "?participant_label=p1")
    first.send("consent", agree="yes")
    offered = second.get(reverse("study-join", args=[way.token]) + "?participant_label=p1").content.decode()
    assert "Go on here" in offered
    second.begin(way, "?participant_label=p1")
    assert second.public_id == first.public_id
    assert "How it works" in second.see()
    assert "another device" in first.see(status=409)
    assert first.send("instructions").status_code == 409
    assert first.row.state == State.CONSENTED
    first.send("here")
    assert "How it works" in first.see()
    assert "another device" in second.see(status=409)


def test_ones_own_link_leads_on_and_a_strangers_page_is_refused():
    way = link(study(), LinkKind.ONE_TIME)
    owner, phone, stranger = Browser(), Browser(), Browser()
    owner.begin(way)
    used = stranger.post(reverse("study-join", args=[way.token]))
    assert used.status_code == 409
    assert "has been used" in used.content.decode()
    stranger.public_id = owner.public_id
    assert "somebody else" in stranger.see(status=403)
    for step in ("consent", "instructions", "quiz", "go-on", "survey", "leave", "here", "beat"):
        assert stranger.send(step, agree="yes").status_code == 403
    assert owner.row.state == State.ENTERED
    resume = reverse("study-resume", args=[owner.row.resume_token])
    assert resume in owner.get(reverse("study-leave", args=[owner.public_id])).content.decode()
    phone.public_id = owner.public_id
    assert phone.post(resume).status_code == 302
    assert "Before you decide" in phone.see()
    assert owner.get(reverse("study-join", args=["nobody"])).status_code == 404


def test_who_declined_and_comes_back_is_told_so_and_not_that_they_took_part():
    way = link(study())
    browser = Browser()
    browser.begin(way, "?PROLIFIC_PID=p1")
    conduct.decline(browser.row)
    body = Browser().get(reverse("study-join", args=[way.token]) + "?PROLIFIC_PID=p1").content.decode()
    assert "You chose not to take part" in body
    assert "taken part in this study already" not in body


def test_a_second_try_is_refused_politely_and_the_first_browser_keeps_its_code():
    way = link(study())
    browser = Browser()
    browser.begin(way, "?PROLIFIC_PID=p1")
    people.to(State.FINISHED, browser.row)
    assert browser.row.completion_code in browser.see()
    other = Browser().get(reverse("study-join", args=[way.token]) + "?PROLIFIC_PID=p1")
    assert other.status_code == 409
    body = other.content.decode()
    assert "taken part in this study already" in body
    assert browser.row.completion_code not in body


def test_no_page_of_a_seat_holds_the_other_sides_value():
    shown = design(condition(told=Told.NOTHING), reveal=Reveal.NEVER)
    way = link(study(shown))
    browser = Browser()
    browser.begin(way)
    browser.to_table()
    played = play.current(browser.row)
    scenario = decode_scenario(played.room.scenario)
    sold = played.party == "seller"
    others = scenario.buyer_values_cents[0][0] if sold else scenario.seller_values_cents[0]
    secret = format_amount(others, scenario.currency)
    table = browser.see()
    agents_answer()
    frames = browser.get(reverse("study-room-view", args=[browser.public_id])).content.decode()
    people.act(browser.row, people.Leave())
    result = browser.get(reverse("study-room-result", args=[browser.public_id])).content.decode()
    between = browser.see()
    people.to(State.FINISHED, browser.row)
    for text in (table, frames, result, between, browser.see()):
        assert secret not in text
        assert str(others) not in text
        assert "Linear" not in text  # Nothing is said of who sits opposite.


def test_values_are_revealed_when_the_design_says_so_and_not_before():
    for reveal, after_round in ((Reveal.AFTER_ROUND, True), (Reveal.AT_END, False)):
        browser = Browser()
        browser.begin(link(study(design(rounds=2, reveal=reveal))))
        browser.to_table()
        people.act(browser.row, people.Leave())
        assert ("revealed" in browser.see()) is after_round
        people.to(State.FINISHED, browser.row)
        assert "revealed" in browser.see()


@pytest.mark.parametrize(("told", "words"), [(Told.AI, "an AI"), (Told.PERSON, "a person")])
def test_people_are_told_of_the_other_side_what_the_condition_says(told, words):
    browser = Browser()
    browser.begin(link(study(design(condition(told=told), debrief="It was a program."))))
    browser.to_table()
    assert f"against {words}" in browser.see()
    frame = browser.get(reverse("study-room-view", args=[browser.public_id])).json()
    assert frame["panels"]["panel-opponent"] == f"against {words}"


def test_the_room_of_a_study_is_no_room_of_the_site():
    browser = Browser()
    browser.begin(link(study()))
    browser.to_table()
    public_id = play.current(browser.row).room.public_id
    assert browser.get(f"/rooms/{public_id}/").status_code == 404
    assert browser.post(f"/rooms/{public_id}/rematch/").status_code == 404
    assert public_id not in browser.get("/history/").content.decode()


def test_the_waiting_room_states_its_limit_and_leads_on_by_itself():
    pair = condition("pair", matching=Matching.PERSON)
    way = link(study(design(pair, waiting=Waiting(limit_s=300, exit_after_s=60, pay_cents=50))))
    one, two = Browser(), Browser()
    one.begin(way)
    one.to_table()
    waiting = one.see()
    assert "Waiting for somebody" in waiting
    assert "5 minutes" in waiting
    assert one.send("leave-waiting").status_code == 400
    stamp = one.post(reverse("study-beat", args=[one.public_id]), "{}", content_type="application/json").json()
    assert stamp["stamp"].startswith("waiting")
    two.begin(way)
    two.to_table()
    assert "room-data" in two.see()
    beat = one.post(reverse("study-beat", args=[one.public_id]), "{}", content_type="application/json").json()
    assert beat["stamp"].startswith("playing")
    assert "room-data" in one.see()


def test_the_way_out_of_the_waiting_room_pays_a_part():
    pair = condition("pair", matching=Matching.PERSON)
    browser = Browser()
    browser.begin(link(study(design(pair, waiting=Waiting(limit_s=300, exit_after_s=60, pay_cents=50)))))
    browser.to_table()
    Participation.objects.update(waiting_since=timezone.now() - timedelta(seconds=61))
    browser.send("leave-waiting")
    end = browser.see()
    assert "$0.50" in end
    assert browser.row.completion_code in end


def test_withdrawing_erases_and_the_page_says_so():
    browser = Browser()
    browser.begin(link(study()), "?PROLIFIC_PID=p1")
    browser.to_table()
    assert "Leave the study?" in browser.get(reverse("study-leave", args=[browser.public_id])).content.decode()
    assert "You have withdrawn" in browser.send("leave").content.decode()
    assert "You have withdrawn" in browser.see()
    assert "Leave the study" not in browser.see(), "nobody leaves twice"
    row = browser.row
    assert (row.state, row.platform_person, row.participant) == (State.WITHDREW, "", None)


def test_the_page_notes_pastes_and_nothing_it_was_not_told_to():
    browser = Browser()
    browser.begin(link(study()))
    browser.send("consent", agree="yes")
    address = reverse("study-beat", args=[browser.public_id])
    for body, status in (
        ({"noticed": "paste", "detail": "12 characters"}, 200),
        ({"noticed": "keys", "detail": "secret"}, 400),
        ({"noticed": "paste", "detail": 5}, 400),
        ([], 200),
    ):
        assert browser.post(address, json.dumps(body), content_type="application/json").status_code == status
    assert browser.post(address, "{", content_type="application/json").status_code == 400
    assert list(browser.row.events.filter(kind="paste").values_list("detail", flat=True)) == ["12 characters"]


def test_markdown_of_authors_cannot_carry_scripts():
    text = "<script>alert(1)</script> [x](javascript:alert(1)) ![i](https://elsewhere.example/i.png) **fine**"
    browser = Browser()
    browser.begin(link(study(design(consent=Consent(text=text, version="1")))))
    page = browser.see()
    assert "<script>alert" not in page
    assert 'href="javascript' not in page
    assert "<img" not in page.split('data-testid="agree"')[0].split("Before you decide")[1]
    assert "<strong>fine</strong>" in page


def test_a_message_of_the_staff_is_shown_until_it_is_put_away(django_user_model):
    staff = django_user_model.objects.create_user("keeper", is_staff=True)
    made = study()
    browser = Browser()
    browser.begin(link(made))
    conduct.say(made, "Ten more minutes.", actor=staff)
    page = browser.see()
    assert "Ten more minutes." in page
    beat = browser.post(reverse("study-beat", args=[browser.public_id]), "{}", content_type="application/json").json()
    assert [text for _number, text in beat["notices"]] == ["Ten more minutes."]
    browser.send("notice", notice=browser.row.study.notices.get().pk)
    assert "Ten more minutes." not in browser.see()


@pytest.mark.parametrize(
    ("ppm", "words"), [(50_000, "$0.05"), (1_000_000, "$1.00"), (5_000, "$0.005"), (1_234_567, "$1.234567")]
)
def test_a_rate_is_told_to_its_last_decimal(ppm, words):
    assert rate_text(ppm, "USD") == words
