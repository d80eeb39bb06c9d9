"""What a study can be expected to tell follows from simulated games, shrinks with numbers, and touches no draw of it."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from markets.models import Episode
from negotiation_site.studies import power
from negotiation_site.studies.design import Side
from tests.negotiation_site.studies.people import condition, design, study

pytestmark = pytest.mark.django_db


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(power, "MOST_PEOPLE", 20)


def test_conditions_that_are_alike_come_out_alike_and_others_do_not(small):
    value = design(
        condition("one", side=Side.BUYER),
        condition("same", side=Side.BUYER),
        condition("tough", side=Side.BUYER, agent="hardliner"),
    )
    one, same, tough = power.expect(value, stand_in="linear")
    assert (one.mean_share, one.sd_share, one.deal_rate) == (same.mean_share, same.sd_share, same.deal_rate)
    assert tough.mean_share < one.mean_share
    assert power.half_width(one, n=100) == pytest.approx(power.half_width(one, n=25) / 2)
    alike, *_others = power.contrasts((one, same, tough), n=50)
    assert (alike.one, alike.other, alike.difference) == ("one", "same", 0)
    assert alike.smallest == pytest.approx(2.8 * (2 * one.sd_share**2 / 50) ** 0.5)


def test_what_cannot_be_simulated_is_said(small, monkeypatch):
    with pytest.raises(power.PowerError, match="There is no agent"):
        power.expect(design(), stand_in="nobody")
    with pytest.raises(power.PowerError, match="knows what no participant knows"):
        power.expect(design(), stand_in="oracle")
    monkeypatch.setattr(power, "MOST_GAMES", 5)
    with pytest.raises(power.PowerError, match="too many conditions"):
        power.expect(design(rounds=3), stand_in="linear")


def test_the_page_is_its_authors_and_stores_nothing(small):
    made = study(design(condition("one"), condition("two", agent="conceder")))
    staff = Client()
    staff.force_login(User.objects.create_user("staff", is_staff=True))
    address = reverse("study-expected", args=[made.slug])
    page = staff.get(address, {"n": "40"}).content.decode()
    assert "one and two" in page
    assert "±" in page
    assert staff.get(address, {"n": "many"}).status_code == 400
    assert staff.get(address, {"n": "40", "agent": "nobody"}).status_code == 400
    assert not Episode.objects.exists()
    player = Client()
    player.force_login(User.objects.create_user("player"))
    assert player.get(address).status_code == 403
