"""What people are paid, and that nobody is paid twice or by guess."""

import csv
import io

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from markets import selectors
from markets.engine.protocol import AcceptOffer, MakeOffer
from markets.models import Room
from negotiation_site.studies import bonus, conduct, play
from negotiation_site.studies.bonus import BonusError
from negotiation_site.studies.design import Side
from negotiation_site.studies.models import Participation, Payment, State, Study, StudyEvent
from tests.negotiation_site.studies import people

pytestmark = pytest.mark.django_db


def researcher(name: str) -> User:
    user = User.objects.create_user(name)
    user.groups.add(Group.objects.get(name="Researchers"))
    return user


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def study() -> Study:
    """Somebody's study, in which buyers keep the whole gain of a round, and bear its loss."""
    pay = people.Pay(show_up_cents=20_000, exchange_ppm=1_000_000, floor_cents=-20_000)
    made = people.study(people.design(people.condition(side=Side.BUYER), pay=pay))
    made.created_by = researcher("ada")
    made.save()
    return made


def deal(study: Study, person: str = "p-1") -> Participation:
    """Somebody who has bought from the agent and finished."""
    somebody = people.to(State.PLAYING, people.enter(people.link(study), person=person, session=f"of-{person}"))
    conduct.go_on(somebody)
    played = play.current(somebody)
    assert played is not None
    people.agents_answer()
    if Room.objects.get(pk=played.room_id).version == 0:
        people.act(somebody, MakeOffer(product=0, price_cents=100))
        people.agents_answer()
    standing = selectors.seat_view(play.seat_of(played)).observation.threads[0].standing
    people.act(somebody, AcceptOffer(offer_id=next(offer.offer_id for offer in standing if not offer.mine)))
    return people.to(State.FINISHED, somebody)


def shown(study: Study) -> dict[str, int]:
    return {row.public_id: row.total_cents for row in bonus.rows(study) if row.can_settle}


def test_a_row_follows_from_the_log_and_not_from_copies_of_it(study: Study) -> None:
    somebody = deal(study)
    gain = somebody.rounds.get().room.episode.seats.get(party="buyer-1").surplus_cents
    somebody.rounds.update(surplus_cents=999_999)
    Payment.objects.update(bonus_cents=999_999)
    [row] = bonus.rows(study)
    assert (row.person, row.session, row.fee_cents, row.counted) == ("p-1", "of-p-1", 20_000, (1,))
    assert row.bonus_cents == gain
    assert bonus.recompute(study) == 1
    assert Payment.objects.get().bonus_cents == gain


def test_what_is_not_known_is_empty_and_what_is_nothing_is_zero(study: Study) -> None:
    way = people.link(study)
    people.enter(way, person="reads-the-consent")
    conduct.decline(people.enter(way, person="declined"))
    rows = {row.person: row for row in bonus.rows(study)}
    assert rows["reads-the-consent"].total_cents is None
    assert rows["declined"].total_cents == 0
    cells = {line["participant_id"]: line for line in csv.DictReader(io.StringIO(bonus.full_csv(list(rows.values()))))}
    assert (cells["reads-the-consent"]["bonus"], cells["declined"]["bonus"]) == ("", "0.00")
    assert bonus.bulk_csv(list(rows.values())) == ""


def test_settling_twice_pays_once_and_keeps_the_first_time(study: Study) -> None:
    deal(study)
    ada = study.created_by
    amounts = shown(study)
    assert bonus.settle(study, amounts, actor=ada) == 1
    first = Payment.objects.get()
    assert bonus.settle(study, amounts, actor=ada) == 0
    assert Payment.objects.get().settled_at == first.settled_at
    [row] = bonus.rows(study)
    assert row.settled
    assert not row.can_settle
    assert bonus.bulk_csv([row], fee_too=True) == ""
    assert bonus.recompute(study) == 0
    assert StudyEvent.objects.filter(kind="settle").values_list("actor__username", flat=True).get() == "ada"


def test_an_amount_that_changed_since_it_was_looked_at_settles_nothing(study: Study) -> None:
    deal(study, "p-1")
    deal(study, "p-2")
    amounts = shown(study)
    changed = dict(amounts, **{max(amounts): 1})
    with pytest.raises(BonusError, match="by now"):
        bonus.settle(study, changed, actor=study.created_by)
    assert not Payment.objects.filter(settled_at__isnull=False).exists()
    waiting = people.enter(people.link(study))
    with pytest.raises(BonusError, match="not known yet"):
        bonus.settle(study, amounts | {waiting.public_id: 0}, actor=study.created_by)
    assert not Payment.objects.filter(settled_at__isnull=False).exists()


def test_another_study_s_row_is_not_settled_here(study: Study) -> None:
    elsewhere = deal(people.study(people.design(people.condition(side=Side.BUYER))))
    with pytest.raises(BonusError, match="not a participant"):
        bonus.settle(study, {elsewhere.public_id: 200}, actor=study.created_by)


def test_who_withdrew_has_no_row_unless_they_were_paid(study: Study) -> None:
    paid, unpaid = deal(study, "p-1"), deal(study, "p-2")
    bonus.settle(study, {paid.public_id: shown(study)[paid.public_id]}, actor=study.created_by)
    conduct.withdraw(paid)
    conduct.withdraw(unpaid)
    [row] = bonus.rows(study)
    assert (row.public_id, row.person, row.settled) == (paid.public_id, "", True)


@pytest.mark.parametrize("name", ["=1+1", "a,b", "a\nb", "@x", "-1"])
def test_a_name_that_a_file_would_misread_stays_out_of_the_bulk_file(study: Study, name: str) -> None:
    somebody = deal(study)
    Participation.objects.filter(pk=somebody.pk).update(platform_person=name)
    assert bonus.bulk_csv(bonus.rows(study), fee_too=True) == ""
    [line] = csv.DictReader(io.StringIO(bonus.full_csv(bonus.rows(study))))
    assert line["participant_id"][0] not in "=@-"


def test_the_page_settles_what_it_showed(study: Study) -> None:
    somebody = deal(study)
    client = signed_in(study.created_by)
    page = client.get(reverse("study-bonus", args=[study.slug])).content.decode()
    [(public_id, cents)] = shown(study).items()
    assert f'value="{public_id}:{cents}"' in page
    bulk = reverse("study-bonus-bulk", args=[study.slug]) + "?pay=total"
    assert client.get(bulk).content.decode() == f"p-1,{cents // 100}.{cents % 100:02d}\n"
    settle = reverse("study-bonus-settle", args=[study.slug])
    assert client.post(settle, {"row": f"{public_id}:{cents}"}).status_code == 302
    assert Payment.objects.get(participation=somebody).settled_by == study.created_by
    assert client.get(bulk).content == b""
    assert client.post(settle, {"row": f"{public_id}:x"}).status_code == 400


def test_nobody_else_sees_the_sheet_or_settles_it(study: Study) -> None:
    somebody = deal(study)
    addresses = [reverse(name, args=[study.slug]) for name in ("study-bonus", "study-bonus-csv", "study-bonus-bulk")]
    settle = reverse("study-bonus-settle", args=[study.slug])
    row = {"row": f"{somebody.public_id}:{shown(study)[somebody.public_id]}"}
    other, member = signed_in(researcher("bob")), signed_in(User.objects.create_user("member"))
    for client, status in ((other, 404), (member, 403), (Client(), 302)):
        assert {client.get(address).status_code for address in addresses} == {status}
        assert client.post(settle, row).status_code == status
    assert not Payment.objects.filter(settled_at__isnull=False).exists()
    staff = signed_in(User.objects.create_user("staff", is_staff=True))
    assert {staff.get(address).status_code for address in addresses} == {200}
