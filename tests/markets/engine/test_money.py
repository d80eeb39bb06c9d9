"""A price must mean what the person who typed it meant, or be asked back; never be guessed."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markets.engine import money
from markets.engine.money import AmountCode, ReadingKind

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


# A price in talk

OFFERS = [
    ("how about 120?", 12000),
    ("120 ok?", 12000),
    ("120?", 12000),
    ("Would you take $120?", 12000),
    ("I can do $ 120", 12000),
    ("ok 120$ then", 12000),
    ("120 dollars and it is yours", 12000),
    ("twenty? no, make it 25 bucks", 2500),
    ("USD 120", 12000),
    ("us$120 is my offer", 12000),
    ("I could pay 1,250 today", 125000),
    ("$1,234.50 final", 123450),
    ("let's say 99.99", 9999),
    ("I'd go to 1.2k", 120000),
    ("$220k", 22000000),
    ("how about 3 grand?", 300000),
    ("I offer $1.5M for the house", 150000000),
    ("2 pairs from $349", 34900),
    ("I'll give you 120 for the iphone 12", 12000),
    ("the 2014 model for $8,000?", 800000),
    ("Sounds good, $120 it is. See you at 6pm", 12000),
    ("Call me at 555-3838, I can do 120", 12000),
    ("It has 106k miles, so $4,000", 400000),
    ("$150? I mean $150.", 15000),
    ("why not 120?", 12000),
    ("can't you do 120?", 12000),
    ("That's not a problem, 120 works", 12000),
    ("I'll take another $50 off and sell at $1750", 175000),
    ("I can go as low as $50 each if you take 4 or more", 5000),
    ("I would be willing to do 2100", 210000),
    ("How about $1800. I can sign 1 year lease.", 180000),
    ("120ish?", 12000),
    ("ok,120?", 12000),
    ("$120/month", 12000),
    ("~120 for it?", 12000),
]


@pytest.mark.parametrize(("text", "cents"), OFFERS)
def test_the_one_price_in_a_line_is_proposed(text, cents):
    reading = money.find_prices(text, currency="USD")
    assert (reading.kind, reading.cents) == (ReadingKind.OFFER, cents)


NO_OFFERS = [
    ("hello there", ReadingKind.NONE),
    ("", ReadingKind.NONE),
    ("١٢٠", ReadingKind.NONE),
    # two prices
    ("120 or 130?", ReadingKind.SEVERAL),
    ("I asked $320, I could do $280", ReadingKind.SEVERAL),
    # ranges
    ("565-575K", ReadingKind.RANGE),
    ("$1M - $1.1M", ReadingKind.RANGE),
    ("something between 100 and 120", ReadingKind.RANGE),
    ("$50 to $60", ReadingKind.RANGE),
    ("around 100–120", ReadingKind.RANGE),
    ("$100+", ReadingKind.RANGE),
    # ruled out
    ("not more than 120", ReadingKind.NEGATED),
    ("anything less than $120", ReadingKind.NEGATED),
    ("I can't do 120", ReadingKind.NEGATED),
    ("I won't pay $120 for that", ReadingKind.NEGATED),
    ("120 is too low", ReadingKind.NEGATED),
    ("$120 is a bit high for me", ReadingKind.NEGATED),
    ("at least 300", ReadingKind.NEGATED),
    ("under $100 please", ReadingKind.NEGATED),
    # dates, times, years
    ("built in 2005", ReadingKind.NON_PRICE),
    ("it's a 2016", ReadingKind.NON_PRICE),
    ("since 1998", ReadingKind.NON_PRICE),
    ("until January 2018", ReadingKind.NON_PRICE),
    ("on 5/17", ReadingKind.NON_PRICE),
    ("2018-01-02", ReadingKind.NON_PRICE),
    ("at 10:30", ReadingKind.NON_PRICE),
    ("tomorrow at 2PM", ReadingKind.NON_PRICE),
    ("I'll be there about 5 to pick it up", ReadingKind.NON_PRICE),
    ("the 5th", ReadingKind.NON_PRICE),
    ("24/7", ReadingKind.NON_PRICE),
    # phone numbers and references
    ("call 345-7878", ReadingKind.NON_PRICE),
    ("(510) 555-0199", ReadingKind.NON_PRICE),
    ("+1 510 555 0199", ReadingKind.NON_PRICE),
    ("5105550199", ReadingKind.NON_PRICE),
    # quantities, measures, models
    ("2 pairs", ReadingKind.NON_PRICE),
    ("I have 7 of them", ReadingKind.NON_PRICE),
    ("106k miles", ReadingKind.NON_PRICE),
    ("it is 30 km away", ReadingKind.NON_PRICE),
    ("a 64gb card", ReadingKind.NON_PRICE),
    ('a 20" screen', ReadingKind.NON_PRICE),
    ("20x30", ReadingKind.NON_PRICE),
    ("iphone 12", ReadingKind.NON_PRICE),
    ("iPhone12 pro", ReadingKind.NON_PRICE),
    ("4K TV", ReadingKind.NON_PRICE),
    ("20-25 hours a week", ReadingKind.NON_PRICE),
    ("4 or 5 times", ReadingKind.NON_PRICE),
    ("10% off", ReadingKind.NON_PRICE),
    ("15 percent", ReadingKind.NON_PRICE),
    ("item #120", ReadingKind.NON_PRICE),
    # money, but not this price
    ("I can take $5 off", ReadingKind.NON_PRICE),
    ("an extra $2", ReadingKind.NON_PRICE),
    ("it's worth over $80", ReadingKind.NON_PRICE),
    ("I paid $500", ReadingKind.NON_PRICE),
    ("€120", ReadingKind.NON_PRICE),
    ("120 euros", ReadingKind.NON_PRICE),
    # no amount that a price field would take
    ("-5", ReadingKind.NON_PRICE),
    ("$0", ReadingKind.NON_PRICE),
    ("$999999999999", ReadingKind.NON_PRICE),
    ("3.350", ReadingKind.NON_PRICE),
    ("12,50", ReadingKind.NON_PRICE),
    ("45.000,00", ReadingKind.NON_PRICE),
    ("495.000,00", ReadingKind.NON_PRICE),
    (",89", ReadingKind.NON_PRICE),
    ("1.234,50", ReadingKind.NON_PRICE),
    ("1e99", ReadingKind.NON_PRICE),
]


@pytest.mark.parametrize(("text", "kind"), NO_OFFERS)
def test_what_is_no_single_price_proposes_nothing(text, kind):
    reading = money.find_prices(text, currency="USD")
    assert (reading.kind, reading.cents, reading.span) == (kind, None, None)


@pytest.mark.parametrize("text", ["EUR 45.000,00", "€ 45,00", "€45.000"])
def test_continental_amounts_are_not_read_as_a_hundredth_or_a_thousandfold(text):
    assert money.find_prices(text, currency="EUR").cents is None


def test_the_same_words_are_read_in_the_currency_of_the_market():
    assert money.find_prices("how about €120?", currency="EUR").cents == 12000
    assert money.find_prices("90 quid?", currency="GBP").cents == 9000
    assert money.find_prices("how about $120?", currency="EUR").cents is None


def test_the_span_shows_the_words_that_were_read():
    text = "Fine, I could do $1,250.50 today."
    start, end = money.find_prices(text, currency="USD").span
    assert text[start:end] == "$1,250.50"
    start, end = money.find_prices("ok 2k dollars", currency="USD").span
    assert (start, end) == (3, 13)


def test_the_last_price_talked_of_is_known_even_when_nothing_is_proposed():
    assert money.find_prices("I asked $320, I could do $280", currency="USD").last_cents == 28000
    assert money.find_prices("I can't go lower than 250", currency="USD").last_cents == 25000
    assert money.find_prices("I can't do 250", currency="USD").last_cents is None


@given(cents=amounts, currency=currencies)
def test_a_printed_amount_in_a_plain_question_is_always_proposed(cents, currency):
    text = f"How about {money.format_amount(cents, currency)}?"
    assert money.find_prices(text, currency=currency).cents == cents


@given(text=st.text(max_size=200), currency=currencies)
def test_any_talk_is_read_without_failing_and_within_bounds(text, currency):
    reading = money.find_prices(text, currency=currency)
    assert (reading.cents is None) == (reading.kind is not ReadingKind.OFFER)
    if reading.cents is not None:
        assert 1 <= reading.cents <= money.MAX_PRICE_CENTS
        assert 0 <= reading.span[0] < reading.span[1] <= len(text)


@pytest.mark.parametrize("piece", ["1 ", "1,", "1-", "$1 to ", "a", "1234567890", "(555) ", "can't 1 "])
def test_twenty_thousand_characters_of_talk_are_read_at_once(piece):
    before = time.process_time()
    money.find_prices((piece * 20_000)[:20_000], currency="USD")
    assert time.process_time() - before < 0.5
