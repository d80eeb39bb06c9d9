"""A link that is handed on leads to the page that the sender sees."""

import pytest

from markets import links

HEADERS = [(b"origin", b"https://parley.example"), (b"host", b"parley.example:8443")]


@pytest.mark.parametrize(
    ("scheme", "redirects", "origin"),
    [
        ("ws", False, "http://parley.example:8443"),
        ("wss", False, "https://parley.example:8443"),
        ("ws", True, "https://parley.example:8443"),
    ],
    ids=["plain", "TLS", "TLS ended by a proxy"],
)
def test_the_link_on_a_live_page_has_the_scheme_of_the_page(settings, scheme, redirects, origin):
    settings.SECURE_SSL_REDIRECT = redirects
    assert links.origin_of_socket(scheme=scheme, headers=HEADERS) == origin


def test_where_no_seat_is_open_there_is_no_link():
    assert links.share_url(origin="http://localhost", public_id="abc", token="") == ""
    address = links.share_url(origin="http://localhost", public_id="abc", token="t0k-en_")
    assert address == "http://localhost/rooms/abc/join/t0k-en_/"
