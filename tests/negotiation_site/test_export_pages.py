"""Only those who may export see, order and take data sets; a download goes on where it broke off."""

import io
import zipfile
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse
from django.utils import timezone

from markets.models import Market
from negotiation_site.exports import jobs, making, tasks
from negotiation_site.exports.asked import Asked
from negotiation_site.exports.models import Export, ExportStatus
from tests.markets import rooms
from tests.negotiation_site.leaderboard.records import stored

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_broker(monkeypatch, settings, tmp_path):
    monkeypatch.setattr(tasks, "announce", lambda row: None)
    settings.VAR = tmp_path


@pytest.fixture
def staff(client):
    client.force_login(User.objects.create_user("boss", is_staff=True))
    return client


@pytest.fixture
def ready() -> Export:
    stored(rooms.market("bilateral", slug="bench"), seller="linear", count=5)
    row = jobs.order(Asked(format="jsonl"), by=None)
    assert jobs.work(row.pk)
    row.refresh_from_db()
    return row


def addresses(row: Export) -> list[tuple[str, str]]:
    return [
        ("get", reverse("export-list")),
        ("post", reverse("export-list")),
        ("get", reverse("export-rows")),
        ("get", reverse("export-download", args=[row.public_id])),
        ("post", reverse("export-delete", args=[row.public_id])),
    ]


def test_strangers_and_players_are_refused_everywhere(client, ready):
    for method, address in addresses(ready):
        assert getattr(client, method)(address, {"format": "jsonl"}).status_code == 302
    client.force_login(User.objects.create_user("player"))
    for method, address in addresses(ready):
        assert getattr(client, method)(address, {"format": "jsonl"}).status_code == 403
    assert Export.objects.count() == 1
    assert jobs.archive(ready).exists()


def test_a_permission_is_enough(client, ready):
    user = User.objects.create_user("researcher")
    user.user_permissions.add(Permission.objects.get(codename="make_export"))
    client.force_login(user)
    assert client.get(reverse("export-list")).status_code == 200


def test_an_order_becomes_a_data_set_with_its_hash_on_the_page(staff):
    stored(rooms.market("bilateral", slug="bench"), seller="linear", count=5)
    assert staff.post(reverse("export-list"), {"format": "sft", "consent": "public"}).status_code == 302
    row = Export.objects.get()
    tasks.write(number=row.pk)
    row.refresh_from_db()
    assert (row.status, row.done, row.total) == (ExportStatus.DONE, 5, 5)
    page = staff.get(reverse("export-list")).content.decode()
    assert row.sha256 in page
    assert "5 episodes" in page


def test_two_orders_of_one_format_are_told_apart_by_what_they_were_narrowed_to(staff):
    rooms.market("bilateral", slug="bench")
    staff.post(reverse("export-list"), {"format": "sft", "consent": "public", "market": "bench", "outcome": "deal"})
    staff.post(reverse("export-list"), {"format": "sft", "consent": "public"})
    page = staff.get(reverse("export-list")).content.decode()
    assert ">sft, open data<" in page
    assert f">sft, open data, {Market.objects.get().name}, a deal<" in page


def test_a_wrong_wish_is_answered_with_a_sentence(staff):
    response = staff.post(reverse("export-list"), {"format": "xml"})
    assert response.status_code == 400
    assert "There is no format" in response.content.decode()
    assert not Export.objects.exists()


def test_a_download_goes_on_where_it_broke_off(staff, ready):
    address = reverse("export-download", args=[ready.public_id])
    whole = staff.get(address)
    body = whole.getvalue()
    assert "episodes.jsonl" in zipfile.ZipFile(io.BytesIO(body)).namelist()
    assert int(whole["Content-Length"]) == len(body) == ready.size_bytes
    rest = staff.get(address, headers={"range": "bytes=100-", "if-range": whole["ETag"]})
    assert (rest.status_code, rest["Content-Range"]) == (206, f"bytes 100-{len(body) - 1}/{len(body)}")
    assert rest.getvalue() == body[100:]
    assert staff.get(address, headers={"range": "bytes=-7"}).getvalue() == body[-7:]
    assert staff.get(address, headers={"range": f"bytes={len(body)}-"}).status_code == 416
    assert staff.get(address, headers={"range": "bytes=5-", "if-range": '"other"'}).status_code == 200


def test_deleted_files_are_gone_and_the_hash_stays(staff, ready):
    staff.post(reverse("export-delete", args=[ready.public_id]))
    assert staff.get(reverse("export-download", args=[ready.public_id])).status_code == 404
    assert not jobs.folder(ready).exists()
    assert ready.sha256 in staff.get(reverse("export-list")).content.decode()


def test_a_dead_workers_export_is_taken_up_and_given_up_in_the_end(ready):
    past = timezone.now() - timedelta(seconds=1)
    Export.objects.update(status=ExportStatus.RUNNING, lease_until=past, owner="dead")
    assert jobs.work(ready.pk)
    ready.refresh_from_db()
    assert ready.status == ExportStatus.DONE
    Export.objects.update(status=ExportStatus.RUNNING, lease_until=past, attempts=jobs.MAX_ATTEMPTS)
    tasks.sweep(now=timezone.now())
    ready.refresh_from_db()
    assert ready.status == ExportStatus.FAILED


def test_one_that_is_being_written_is_left_alone(ready):
    Export.objects.update(status=ExportStatus.RUNNING, lease_until=timezone.now() + timedelta(minutes=1))
    assert not jobs.work(ready.pk)


def test_a_full_disk_fails_the_export_with_a_reason(staff, monkeypatch):
    def full(*_args, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(making, "_plan", full)
    row = jobs.order(Asked(format="jsonl"), by=None)
    jobs.work(row.pk)
    row.refresh_from_db()
    assert row.status == ExportStatus.FAILED
    assert "No space left on device" in staff.get(reverse("export-list")).content.decode()
