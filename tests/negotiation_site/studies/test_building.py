"""A researcher builds a study in the browser; what could not be run is refused where it is typed; nobody else gets in."""

import csv
import re

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from markets.models import Market
from negotiation_site.studies import authoring, building_form, checks, conduct
from negotiation_site.studies.design import (
    AnswerKind,
    Completion,
    Consent,
    Matching,
    Pay,
    Practice,
    Quiz,
    Side,
    SurveyQuestion,
    Told,
    Waiting,
)
from negotiation_site.studies.models import Mode, Participation, RecruitmentLink, Study, StudyStatus
from tests.negotiation_site.studies import people
from tests.negotiation_site.studies.people import QUESTION, condition, design, enter, link, study

pytestmark = pytest.mark.django_db


@pytest.fixture
def researcher():
    user = User.objects.create_user("ada", password="x")
    user.user_permissions.add(Permission.objects.get(codename="run_study"))
    return user


@pytest.fixture
def browser(researcher):
    client = Client()
    client.force_login(researcher)
    return client


def fields(value, **changes: str) -> dict[str, str]:
    """What a filled-in form sends."""
    return {**building_form.typed_of(value)._words, **changes}


def test_what_is_typed_becomes_the_design_and_the_design_what_is_typed():
    full = design(
        condition("one", told=Told.AI, reply_ms=(2_000, 5_000), briefing="Rare.", shows_prior=True, persona="terse"),
        condition("two", weight=2),
        practice=Practice(agent="conceder"),
        waiting=Waiting(pay_cents=75),
        pay=Pay(show_up_cents=250, exchange_ppm=50_000, cap_cents=1_000, floor_cents=-250),
        completion=Completion(codes={"finished": "C1"}, per_person=True, url="https://example.org/?cc={code}"),
        debrief="A program.",
    )
    read, unread = building_form.design_of(building_form.typed_of(full), scenarios=full.scenarios)
    assert unread == ()
    assert read == full


def test_a_study_is_built_looked_at_opened_and_entered_without_code(browser, researcher):
    value = design(condition("one"))
    answer = browser.post(reverse("study-new"), fields(value, slug="mine"))
    assert answer.status_code == 302, answer.content.decode()
    made = Study.objects.get(slug="mine")
    assert (made.created_by, made.status) == (researcher, StudyStatus.DRAFT)
    page = browser.get(reverse("study", args=["mine"])).content.decode()
    assert "Haggling with strangers" in page
    looked = browser.post(reverse("study-preview", args=["mine"]), {"cell": "one:seller"})
    preview = Participation.objects.get()
    assert (preview.mode, preview.role) == (Mode.PREVIEW, "seller")
    shown = browser.get(looked.url).content.decode()
    assert "nothing here counts" in shown
    assert f'href="{reverse("study", args=["mine"])}"' in shown, "the author finds back from a preview"
    browser.post(reverse("study-links", args=["mine"]), {"kind": "open", "label": "poster"})
    browser.post(reverse("study-links", args=["mine"]), {"kind": "one_time", "count": "3"})
    assert made.links.count() == 4
    assert browser.get(reverse("study-links-csv", args=["mine"])).content.decode().count("/study/join/") == 4
    mailing = list(csv.DictReader(browser.get(reverse("study-links-csv", args=["mine"])).content.decode().splitlines()))
    assert [line["label"] for line in mailing].count("") == 3, "a link without a note has an empty cell"
    browser.post(reverse("study-status", args=["mine"]), {"status": "open"})
    way = made.links.get(kind="open")
    visitor = Client()
    entered = visitor.post(reverse("study-join", args=[way.token]))
    assert entered.status_code == 302
    assert reverse("study", args=["mine"]) not in visitor.get(entered.url).content.decode()
    browser.post(reverse("study-link-close", args=["mine", way.pk]))
    assert Client().post(reverse("study-join", args=[way.token])).status_code == 409
    kinds = set(made.events.values_list("kind", "actor__username"))
    assert {("status", "ada"), ("link", "ada"), ("version", "ada")} <= kinds


def test_a_character_that_no_database_keeps_is_dropped_from_what_is_typed(browser):
    browser.post(reverse("study-new"), fields(design(condition("one")), slug="mine", title="Who\0 gives in"))
    assert conduct.newest_version(Study.objects.get(slug="mine")).title == "Who gives in"


def test_buttons_add_and_take_away_entries_and_lose_nothing(browser):
    value = design(condition("one"), condition("two"), condition("three"))
    typed = fields(value, slug="x", do="remove:conditions:1", title="Kept")
    page = browser.post(reverse("study-new"), typed).content.decode()
    assert re.findall(r'name="conditions-\d-key" value="(\w+)"', page) == ["one", "three"]
    assert 'value="Kept"' in page
    page = browser.post(reverse("study-new"), fields(value, do="add:quiz")).content.decode()
    assert page.count("Number of the right answer") == 2
    assert '<option value="unyielding">says it will not move</option>' in page, "ways of talking stand in words"
    assert not Study.objects.exists()


def test_a_form_that_is_filled_in_is_folded_and_says_what_its_parts_hold(browser, researcher):
    authoring.create(slug="mine", design=design(condition("one"), condition("two")), author=researcher)
    page = browser.get(reverse("study-change", args=["mine"])).content.decode()
    assert not re.search(r"<details[^>]* open", page)
    assert '<span class="fold__digest">one, two</span>' in page
    typed = fields(design(condition("one"), condition("two")), do="add:conditions", based_on="1")
    page = browser.post(reverse("study-change", args=["mine"]), typed).content.decode()
    assert re.findall(r'<details class="fold" id="part-(\w+)" open>', page) == ["conditions"]
    assert len(re.findall(r'<details class="study-entry" open>', page)) == 1, "the new one alone"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"consent-text": " "}, "Write the consent"),
        ({"quiz-0-right": ""}, "Say which answer to “What binds?” is right"),
        ({"quiz-0-right": "3"}, "Say which answer"),
        ({"participants": "3"}, "cannot be balanced"),
        ({"conditions-0-matching": "person", "conditions-0-side": "buyer"}, "cannot balance"),
        ({"conditions-0-market": "no-such:1"}, "Choose a market."),
        ({"conditions-0-agent": "nobody"}, "There is no agent “nobody”."),
        ({"conditions-0-agent": "oracle"}, "knows both values"),
        ({"conditions-0-told": "person"}, "say so in the debriefing"),
        ({"conditions-0-reply_low": "9", "conditions-0-reply_high": "3"}, "the shorter first"),
        ({"conditions-count": "0"}, "Add at least one condition"),
        ({"rounds": "many"}, "Write a whole number."),
        ({"rounds": "99"}, "from 1 to 20"),
        ({"pay-floor_cents": "-5"}, "Losses may use up the show-up fee"),
        ({"pay-exchange_ppm": "a lot"}, "at most six decimals"),
        ({"pay-show_up_cents": "1e3"}, "Write the price out"),
        ({"completion-url": "http://example.org"}, "begins with https://"),
        ({"completion-finished": "A", "completion-timed_out": "A"}, "Give every outcome a code of its own"),
        ({"slug": "new"}, "an address of its own"),
        ({"slug": "Two words!"}, "An address has letters, digits, hyphens and underscores"),
        ({"slug": "s" * 51}, "at most 50 of them"),
        ({"title": ""}, "Give the study a title."),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_sentence_where_it_is_typed(browser, changes, sentence):
    answer = browser.post(reverse("study-new"), fields(design(condition("one")), **{"slug": "mine", **changes}))
    assert answer.status_code == 400
    page = answer.content.decode().replace("&#x27;", "'")
    assert sentence in page
    assert "has to be put right" in page or "have to be put right" in page
    shown = re.findall(
        r'<details class="fold" id="part-\w+" open>.*?(?=<details class="fold"|</form>)', page, re.DOTALL
    )
    assert any("field__error" in part for part in shown), "the part where it is typed is not folded"
    assert not Study.objects.exists()


def test_a_market_that_people_cannot_play_in_is_refused():
    value = design(condition("one"))
    Market.objects.update(seller_agent="gone-agent")
    (problem,) = checks.problems(value)
    assert problem.field == "conditions.0.market"
    assert "People cannot play in" in problem.sentence
    Market.objects.update(seller_agent="linear", retired_at=timezone.now())
    (problem,) = checks.problems(value)
    assert "is retired" in problem.sentence


def test_the_number_that_balances_is_named():
    uneven = design(condition("one"), condition("two", side=Side.BUYER, weight=2), participants=10)
    (problem,) = checks.problems(uneven)
    assert "Ask for 12" in problem.sentence
    assert checks.problems(design(condition("one"), condition("two", side=Side.BUYER, weight=2), participants=12)) == ()


def test_every_kind_of_bad_design_is_named():
    bad = design(
        condition("one"),
        condition("one"),
        consent=Consent(text="", version=""),
        quiz=Quiz(questions=(QUESTION, QUESTION), tries=0),
        survey=(SurveyQuestion(key="x", text="", kind=AnswerKind.CHOICE),),
    )
    fields_named = {problem.field for problem in checks.problems(bad)}
    assert fields_named >= {
        "consent.text",
        "consent.version",
        "conditions.0.key",
        "quiz.1.key",
        "quiz.tries",
        "survey.0.text",
        "survey.0.options",
    }


def test_a_version_that_somebody_has_entered_never_changes(browser, researcher):
    made = study(design(condition("one"), title="First"))
    Study.objects.update(created_by=researcher)
    inside = enter(link(made))
    frozen = conduct.newest_version(made)
    before = (frozen.design, frozen.sha256)
    assert "stays as it is" in browser.get(reverse("study-change", args=[made.slug])).content.decode()
    browser.post(
        reverse("study-change", args=[made.slug]),
        fields(frozen.parsed, title="Second", based_on="1", note="a better title"),
    )
    frozen.refresh_from_db()
    assert (frozen.design, frozen.sha256) == before
    newest = conduct.newest_version(made)
    assert (newest.number, newest.title, newest.note, newest.frozen_at) == (2, "Second", "a better title", None)
    assert newest.parsed.scenarios.seed == frozen.parsed.scenarios.seed
    assert conduct.refresh(inside).version_id == frozen.pk
    assert enter(link(made)).version_id == newest.pk
    late = browser.post(reverse("study-change", args=[made.slug]), fields(frozen.parsed, title="Third", based_on="1"))
    assert late.status_code == 400
    assert "Somebody has saved another version" in late.content.decode()


def test_a_version_that_nobody_has_entered_is_changed_in_place():
    made = study(status=StudyStatus.DRAFT)
    saved = authoring.save(made, people.changed(made, title="Better"), based_on=1, author=None)
    assert (saved.number, saved.title, made.versions.count()) == (1, "Better", 1)
    assert saved.sha256 == authoring.sha256(saved.design)


def test_two_tabs_that_change_one_draft_do_not_silently_undo_each_other(browser, researcher):
    made = authoring.create(slug="mine", design=design(condition("one"), title="First"), author=researcher)
    address, first = reverse("study-change", args=["mine"]), conduct.newest_version(made)

    def hidden(answer, name):
        return re.search(rf'name="{name}" value="([^"]*)"', answer.content.decode())[1]

    def sent(answer, **changes):
        seen = {name: hidden(answer, name) for name in ("based_on", "seen")}
        return browser.post(address, fields(first.parsed, **{**seen, **changes}))

    one, two = browser.get(address), browser.get(address)
    assert sent(one, title="Of the first tab").status_code == 302
    two = sent(two, do="add:quiz")  # A page that is drawn anew has still not seen what the first tab saved.
    late = sent(two, title="Of the second tab")
    assert (late.status_code, conduct.newest_version(made).title) == (400, "Of the first tab")
    assert "saved meanwhile" in late.content.decode()
    assert "Of the second tab" in late.content.decode(), "what was typed is kept"
    assert sent(late, title="Of the second tab").status_code == 302
    assert conduct.newest_version(made).title == "Of the second tab"
    assert sent(late, title="Of the second tab").status_code == 302, "sent twice, it is saved once and refused never"


def test_a_copy_is_a_draft_with_draws_of_its_own(browser, researcher):
    made = study()
    Study.objects.update(created_by=researcher)
    browser.post(reverse("study-copy", args=[made.slug]), {"slug": "again"})
    copied = Study.objects.get(slug="again")
    one, two = conduct.newest_version(made).parsed, conduct.newest_version(copied).parsed
    assert (copied.status, copied.created_by) == (StudyStatus.DRAFT, researcher)
    assert one.scenarios.seed != two.scenarios.seed
    assert one.conditions == two.conditions
    browser.post(reverse("study-copy", args=[made.slug]), {"slug": "again"})
    assert Study.objects.filter(slug="again").count() == 1


def test_a_status_that_does_not_follow_is_refused():
    made = study()
    with pytest.raises(authoring.AuthoringError, match="cannot become"):
        authoring.set_status(made, StudyStatus.DRAFT, actor=None)


def test_a_design_whose_market_went_cannot_be_opened(browser, researcher):
    made = study(status=StudyStatus.DRAFT)
    Study.objects.update(created_by=researcher)
    Market.objects.update(retired_at=timezone.now())
    page = browser.post(reverse("study-status", args=[made.slug]), {"status": "open"}, follow=True).content.decode()
    assert "is retired" in page
    made.refresh_from_db()
    assert made.status == StudyStatus.DRAFT


ADDRESSES = ("study", "study-change")
POSTED = ("study-copy", "study-status", "study-links", "study-preview")


def test_studies_are_their_authors_and_the_staffs(browser):
    other = study()
    RecruitmentLink.objects.create(study=other, kind="open")
    assert other.slug not in browser.get(reverse("studies")).content.decode()
    for name in ADDRESSES:
        assert browser.get(reverse(name, args=[other.slug])).status_code == 404
    for name in POSTED:
        assert browser.post(reverse(name, args=[other.slug]), {"status": "closed"}).status_code == 404
    other.refresh_from_db()
    assert other.status == StudyStatus.OPEN
    staff = Client()
    staff.force_login(User.objects.create_user("root", is_staff=True))
    assert other.slug in staff.get(reverse("studies")).content.decode()
    assert staff.get(reverse("study", args=[other.slug])).status_code == 200


def test_players_and_strangers_cannot_build():
    player = Client()
    player.force_login(User.objects.create_user("player"))
    for address in (reverse("studies"), reverse("study-new")):
        assert player.get(address).status_code == 403
        assert "/account/sign-in/" in Client().get(address).url
    assert player.post(reverse("study-new"), {}).status_code == 403
    assert not Study.objects.exists()


def test_matching_of_people_is_possible_on_both_sides():
    assert checks.problems(design(condition("pair", matching=Matching.PERSON))) == ()
