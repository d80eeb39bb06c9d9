"""A registered plan is there for everybody, fits its hash, and tells nothing that a participant must not know."""

import hashlib

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from negotiation_site.studies import authoring, conduct
from negotiation_site.studies.design import Completion, Scenarios
from negotiation_site.studies.models import StudyStatus
from tests.negotiation_site.studies import people
from tests.negotiation_site.studies.people import design, enter, link, study

pytestmark = pytest.mark.django_db

SEED = 987_654_321
CODE = "SECRETCODE"


@pytest.fixture
def made():
    value = design(scenarios=Scenarios(seed=SEED), completion=Completion(codes={"finished": CODE}))
    return study(value, status=StudyStatus.DRAFT)


def test_the_file_fits_the_hash_and_holds_no_seed_code_or_right_answer(made):
    version = authoring.register(conduct.newest_version(made), actor=None)
    stranger = Client()
    file = stranger.get(reverse("study-plan-json", args=[version.plan_sha256])).content
    assert hashlib.sha256(file).hexdigest() == version.plan_sha256
    page = stranger.get(reverse("study-plan", args=[version.plan_sha256])).content.decode()
    assert version.plan_sha256 in page
    assert version.sha256 in page
    for secret in (str(SEED), CODE, "Talk is free."):
        assert secret not in file.decode()
        assert secret not in page
    assert b'"right":null' in file


def test_a_registered_version_is_frozen_and_a_change_is_the_next(made):
    version = authoring.register(conduct.newest_version(made), actor=None)
    assert authoring.register(version, actor=None).registered_at == version.registered_at
    saved = authoring.save(made, people.changed(made, title="Other"), based_on=1, author=None)
    assert (saved.number, saved.registered_at) == (2, None)


def test_nothing_is_registered_once_people_have_entered():
    made = study()
    enter(link(made))
    with pytest.raises(authoring.AuthoringError, match="entered this version already"):
        authoring.register(conduct.newest_version(made), actor=None)


def test_only_its_author_registers_it_and_an_unknown_hash_is_not_there(made):
    assert Client().get(reverse("study-plan", args=["0" * 64])).status_code == 404
    assert Client().get(reverse("study-plan-json", args=["x"])).status_code == 404
    other = Client()
    other.force_login(User.objects.create_user("other"))
    address = reverse("study-register", args=[made.slug, 1])
    assert other.post(address).status_code == 403
    staff = Client()
    staff.force_login(User.objects.create_user("staff", is_staff=True))
    assert "Register this version" in staff.get(reverse("study", args=[made.slug])).content.decode()
    assert "/study/plan/" in staff.post(address).url
    assert "The registered plan" in staff.get(reverse("study", args=[made.slug])).content.decode()
    assert staff.post(reverse("study-register", args=[made.slug, 7])).status_code == 404
