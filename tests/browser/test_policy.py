"""The content security policy must let the site's own pages work, sockets included, and keep everything else out."""

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.lab import RunningLab

OPEN_SOCKET = """() => new Promise((resolve) => {
  document.addEventListener("securitypolicyviolation", () => resolve("blocked"));
  const socket = new WebSocket(location.origin.replace("http", "ws") + "/ws/no-such-room/");
  socket.onclose = () => resolve("answered");
})"""


def test_a_page_may_open_a_socket_to_its_own_origin(page: Page, lab: RunningLab) -> None:
    page.goto(lab.url + "/admin/login/")
    assert page.evaluate(OPEN_SOCKET) == "answered"


def test_an_injected_script_does_not_run(page: Page, lab: RunningLab) -> None:
    page.goto(lab.url + "/admin/login/")
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.stolen = 1'; document.body.append(s); }"
    )
    assert page.evaluate("() => window.stolen") is None


def test_the_admin_has_nothing_to_complain_of(page: Page, lab: RunningLab, complaints: list[str]) -> None:
    page.goto(lab.url + "/admin/login/")
    assert complaints == []


@pytest.mark.parametrize("origin", ["http://127.0.0.1", "http://localhost"])
def test_both_names_of_this_machine_lead_to_the_site(page: Page, lab: RunningLab, origin: str) -> None:
    response: Any = page.goto(f"{origin}:{lab.url.rsplit(':', 1)[1]}/admin/login/")
    assert response.status == 200
    assert page.evaluate(OPEN_SOCKET) == "answered"


def test_pages_come_back_after_the_web_process_is_killed(page: Page, lab: RunningLab) -> None:
    lab.restart_web()
    response: Any = page.goto(lab.url + "/admin/login/")
    assert response.status == 200
