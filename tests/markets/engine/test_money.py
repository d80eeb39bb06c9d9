"""A price must mean what the person who typed it meant, or be asked back; never be guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markets.engine import money
from markets.engine.money import AmountCode

amounts = st.integers(min_value=1, max_value=money.MAX_PRICE_CENTS)
currencies = st.sampled_from(sorted(money.CURRENCIES))


# Printing


@pytest.mark.parametrize(
    ("cents", "shown", "plain"),
    [
        (123450, "$1,234.50", "1234.50"),
        (5, "$0.05", "0.05"),
        (0, "$0.00", "0.00"),
        (-500, "−$5.00", "-5.00"),
        (100000000, "$1,000,000.00", "1000000.00"),
    ],
)
def test_amounts_are_printed_with_two_decimals_and_a_real_minus(cents, shown, plain):
    assert money.format_amount(cents, "USD") == shown
    assert money.format_plain(cents) == plain


@given(cents=amounts, currency=currencies)
def test_what_is_printed_can_be_typed_back(cents, currency):
    assert money.parse_amount(money.format_amount(cents, currency), currency=currency) == cents
    assert money.parse_amount(money.format_plain(cents), currency=currency) == cents
    assert money.parse_amount(f" {money.format_plain(cents)} {currency} ", currency=currency) == cents


# A typed price


@pytest.mark.parametrize(
    ("text", "cents"),
    [
        ("120", 12000),
        ("120.5", 12050),
        ("120.50", 12050),
        ("120.", 12000),
        (".50", 50),
        ("$120", 12000),
        ("$ 120", 12000),
        ("120$", 12000),
        ("1,234.50", 123450),
        ("12,345,678", 1234567800),
        (" 120 USD", 12000),
        ("usd 120", 12000),
        ("007", 700),
        ("0.01", 1),
        ("100000000", money.MAX_PRICE_CENTS),
    ],
)
def test_usual_ways_to_type_a_price_are_read(text, cents):
    assert money.parse_amount(text, currency="USD") == cents


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", AmountCode.EMPTY),
        ("   ", AmountCode.EMPTY),
        ("$", AmountCode.EMPTY),
        ("-1", AmountCode.NEGATIVE),
        ("−1", AmountCode.NEGATIVE),
        ("-$1", AmountCode.NEGATIVE),
        ("$-1", AmountCode.NEGATIVE),
        ("0", AmountCode.ZERO),
        ("0.00", AmountCode.ZERO),
        ("NaN", AmountCode.NOT_FINITE),
        ("inf", AmountCode.NOT_FINITE),
        ("-inf", AmountCode.NEGATIVE),
        ("Infinity", AmountCode.NOT_FINITE),
        ("1e99", AmountCode.EXPONENT),
        ("1E-2", AmountCode.EXPONENT),
        ("1.234", AmountCode.TOO_MANY_DECIMALS),
        ("3.350", AmountCode.TOO_MANY_DECIMALS),
        ("1,234.567", AmountCode.TOO_MANY_DECIMALS),
        ("12,50", AmountCode.AMBIGUOUS_COMMA),
        (",89", AmountCode.AMBIGUOUS_COMMA),
        ("1,23,456", AmountCode.AMBIGUOUS_COMMA),
        ("1.234,50", AmountCode.COMMA_DECIMALS),
        ("45.000,00", AmountCode.COMMA_DECIMALS),
        ("1.234.567", AmountCode.COMMA_DECIMALS),
        ("١٢٠", AmountCode.FOREIGN_DIGITS),
        ("१२०", AmountCode.FOREIGN_DIGITS),
        ("€120", AmountCode.OTHER_CURRENCY),
        ("120 GBP", AmountCode.OTHER_CURRENCY),
        ("🙂", AmountCode.NOT_A_NUMBER),
        ("abc", AmountCode.NOT_A_NUMBER),
        ("1 234", AmountCode.NOT_A_NUMBER),
        ("120 or so", AmountCode.NOT_A_NUMBER),
        ("50%", AmountCode.NOT_A_NUMBER),
        (".", AmountCode.NOT_A_NUMBER),
        ("1.2.3", AmountCode.NOT_A_NUMBER),
        ("$$5", AmountCode.NOT_A_NUMBER),
        ("100000000.01", AmountCode.TOO_LARGE),
        ("9" * 40, AmountCode.TOO_LARGE),
        ("1" * 41, AmountCode.TOO_LONG),
        (" " * 41, AmountCode.TOO_LONG),
    ],
)
def test_what_could_be_misread_is_refused_with_its_own_reason(text, code):
    with pytest.raises(money.AmountError) as refusal:
        money.parse_amount(text, currency="USD")
    assert refusal.value.code is code
    assert refusal.value.sentence.endswith(".")
    assert refusal.value.sentence[0].isupper()


def test_an_ambiguous_comma_is_asked_back_with_both_readings():
    with pytest.raises(money.AmountError, match=r"12\.50 or 1,250"):
        money.parse_amount("12,50", currency="USD")


@given(text=st.text(max_size=60))
def test_any_text_is_an_allowed_price_or_a_refusal(text):
    try:
        cents = money.parse_amount(text, currency="EUR")
    except money.AmountError:
        return
    assert 1 <= cents <= money.MAX_PRICE_CENTS
