"""What finds a person is masked, what is a price is not."""

import pytest

from markets.export_masking import mask


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("write to jo.doe+x@mail.example.org please", "write to [email] please"),
        ("jo (at) example (dot) org", "[email]"),
        ("see https://example.org/a?b=c now", "see [link] now"),
        ("www.example.org", "[link]"),
        ("find me on example.com/jo", "find me on [link]"),
        ("call +44 20 7946 0958", "call [phone]"),
        ("call (212) 555-0123 tonight", "call [phone] tonight"),
        ("0612345678", "[phone]"),
        ("555-0123", "[phone]"),
        ("half \ud83d here", "half ? here"),
        ("I pay $1,234.50", "I pay $1,234.50"),
        ("1,250,000 is too much", "1,250,000 is too much"),
        ("12345678 it is", "12345678 it is"),
        ("1234567.50 dollars", "1234567.50 dollars"),
        ("it is from 2019-05-02", "it is from 2019-05-02"),
        ("100-120 would do", "100-120 would do"),
        ("I offer 40. ok?", "I offer 40. ok?"),
        ("", ""),
    ],
)
def test_words(text, masked):
    assert mask(text) == masked
