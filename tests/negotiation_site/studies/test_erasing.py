"""Whoever is erased, by whatever way, has nothing of theirs left in the tables of studies, and is still counted."""

import pytest

from markets import erasure
from markets.engine.protocol import MakeOffer, Say
from markets.models import Episode, Seat, SeatKind
from negotiation_site.studies import conduct, events, play
from negotiation_site.studies.design import Matching
from negotiation_site.studies.models import Participation, State
from tests.markets.test_erasure import remains
from tests.negotiation_site.studies.people import act, agents_answer, condition, design, enter, link, study, to

pytestmark = pytest.mark.django_db

WORDS = "The plover nests behind Zanzibar road number twelve."


def everywhere() -> Participation:
    """Somebody who left words in every table of a study that can hold some."""
    somebody = enter(link(study()), person="plover-pid", study="plover-study", session="plover-session")
    somebody = to(State.PLAYING, somebody)
    conduct.go_on(somebody)
    agents_answer()
    act(somebody, MakeOffer(product=0, price_cents=4_000, talk=WORDS))
    somebody = to(State.SURVEY, somebody)
    conduct.answer_survey(somebody, {"who": "1", "remark": WORDS})
    events.note(somebody.study, "message", participation=somebody, detail=f"You wrote: {WORDS}")
    return conduct.refresh(somebody)


@pytest.mark.parametrize("way", ["withdrawal", "erasure"])
def test_nothing_of_an_erased_participant_is_left(way):
    somebody = everywhere()
    needles = ("plover", "zanzibar", somebody.participant.pseudonym, somebody.completion_code)
    assert len({place.split(".")[0] for place in remains(*needles)}) >= 5
    if way == "withdrawal":
        conduct.withdraw(somebody)
    else:
        erasure.erase(participant=somebody.participant)
    assert remains(*needles) == []
    row = Participation.objects.get()
    assert (row.state, row.condition, row.participant) == (State.WITHDREW, somebody.condition, None)
    assert row.rounds.get().surplus_cents is not None  # What was negotiated is nobody's word.


def test_words_of_somebody_whom_an_agent_replaced_are_erased_and_go_no_further_than_they_agreed(django_user_model):
    staff = django_user_model.objects.create_user("staff", is_staff=True)
    way = link(study(design(condition("pair", matching=Matching.PERSON))))
    one, two = (to(State.PLAYING, enter(way)) for _person in range(2))
    conduct.go_on(one)
    conduct.go_on(two)
    one, two = conduct.refresh(one), conduct.refresh(two)
    talker = next(each for each in (one, two) if play.seat_of(play.current(each)).deadline_at is not None)
    other = two if talker.pk == one.pk else one
    act(talker, Say(talk=WORDS))
    act(other, Say(talk="I see."))
    conduct.replace(talker, actor=staff)
    to(State.FINISHED, other)
    agents_answer()
    episode = Episode.objects.get()
    assert episode.consent_scope == "research"
    seat = Seat.objects.get(room=episode.room_id, participant=talker.participant)
    assert seat.kind == SeatKind.AGENT
    conduct.withdraw(talker)
    assert remains("plover", talker.participant.pseudonym) == []
    assert Episode.objects.get().consent_scope == "private"
