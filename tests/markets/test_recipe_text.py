"""What a version says of itself in a history: plain, whole, and without a value that was drawn."""

import pytest

from markets import recipe_text
from markets.models import Market


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1, "1 second"),
        (90, "90 seconds"),
        (60, "1 minute"),
        (5_400, "90 minutes"),
        (7_200, "2 hours"),
        (86_400, "1 day"),
    ],
)
def test_a_wait_is_told_in_the_largest_unit_that_fits(seconds, text):
    assert recipe_text.seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(None, None, ""), (100, None, "$1.00 and more"), (None, 5_000, "up to $50.00"), (100, 5_000, "$1.00 to $50.00")],
)
def test_a_range_of_list_prices_is_told(low, high, text):
    assert recipe_text.price_range_text(Market(price_from_cents=low, price_to_cents=high), "USD") == text
