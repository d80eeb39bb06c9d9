"""A line of talk must never be taken for an offer that nobody made."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markets.engine import money
from markets.engine.talk_prices import NumberFormat, ReadingKind, find_prices

amounts = st.integers(min_value=1, max_value=money.MAX_PRICE_CENTS)
currencies = st.sampled_from(sorted(money.CURRENCIES))

OFFERS = [
    ("how about 120?", 12000),
    ("120 ok?", 12000),
    ("120?", 12000),
    ("Would you take $120?", 12000),
    ("I can do $ 120", 12000),
    ("ok 120$ then", 12000),
    ("120 dollars and it is yours", 12000),
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
    reading = find_prices(text, currency="USD")
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
    ("twenty? no, make it 25 bucks", ReadingKind.SEVERAL),
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
    ("3.350", ReadingKind.AMBIGUOUS),
    ("12,50", ReadingKind.AMBIGUOUS),
    (",89", ReadingKind.AMBIGUOUS),
    ("1e99", ReadingKind.NON_PRICE),
]


@pytest.mark.parametrize(("text", "kind"), NO_OFFERS)
def test_what_is_no_single_price_proposes_nothing(text, kind):
    reading = find_prices(text, currency="USD")
    assert (reading.kind, reading.cents, reading.span) == (kind, None, None)


@pytest.mark.parametrize(
    ("text", "cents"),
    [
        ("EUR 45.000,00", 4500000),
        ("€ 45,00", 4500),
        ("45.000,00 €", 4500000),
        ("1.234,50", 123450),
        ("1.234.567", 123456700),
    ],
)
def test_continental_amounts_are_read_where_only_one_meaning_is_left(text, cents):
    assert find_prices(text, currency="EUR").cents == cents


@pytest.mark.parametrize(
    ("text", "cents"),
    [
        ("how about 1.299?", 129900),
        ("1 299,00 €".replace(" ", "\N{NO-BREAK SPACE}", 1), 129900),
        ("12,50?", 1250),
        ("I can pay 45.000", 4500000),
        ("1.5k?", None),
    ],
)
def test_where_cents_follow_a_comma_a_point_parts_thousands(text, cents):
    assert find_prices(text, currency="EUR", number_format=NumberFormat.COMMA).cents == cents


def test_a_point_before_three_digits_is_asked_back_and_not_guessed():
    reading = find_prices("€45.000", currency="EUR")
    assert (reading.kind, reading.cents) == (ReadingKind.AMBIGUOUS, None)


SPOKEN = [
    ("how about two hundred?", 20000),
    ("two hundred and fifty dollars", 25000),
    ("I'd pay a hundred bucks", 10000),
    ("twenty-five dollars", 2500),
    ("fifteen hundred?", 150000),
    ("five grand", 500000),
    ("I can do three thousand two hundred", 320000),
    ("ten dollars is my offer", 1000),
    ("1.5 million for the house", 150000000),
    ("how about 5 hundred?", 50000),
    ("one hundred and five", 10500),
]


@pytest.mark.parametrize(("text", "cents"), SPOKEN)
def test_a_price_in_words_is_read(text, cents):
    reading = find_prices(text, currency="USD")
    assert (reading.kind, reading.cents) == (ReadingKind.OFFER, cents)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I like this one", ReadingKind.NONE),
        ("it has two bedrooms", ReadingKind.NONE),
        ("one fifty?", ReadingKind.AMBIGUOUS),
        ("a grand piano", ReadingKind.NON_PRICE),
        ("twenty miles away", ReadingKind.NON_PRICE),
        ("not more than two hundred", ReadingKind.NEGATED),
        ("between two hundred and three hundred", ReadingKind.RANGE),
    ],
)
def test_number_words_that_propose_no_price_propose_nothing(text, kind):
    assert find_prices(text, currency="USD").kind is kind


@pytest.mark.parametrize("text", ["I can do 9k today", "if you can do it for 9k imin"])
def test_thousands_with_a_k_are_paid_whatever_word_comes_next(text):
    assert find_prices(text, currency="USD").cents == 900000


def test_amounts_far_from_the_list_price_are_about_something_else():
    text = "I'll take $6100 but that is firm. I'll throw in a gas card for $50."
    assert find_prices(text, currency="USD").kind is ReadingKind.SEVERAL
    assert find_prices(text, currency="USD", list_price_cents=850000).cents == 610000


def test_a_reduction_is_told_apart_from_a_price():
    reading = find_prices("If you pick it up I can take $5 off.", currency="USD")
    assert (reading.cents, reading.off_cents) == (None, 500)
    assert find_prices("thanks for dropping 900 off of it", currency="USD").off_cents is None


def test_the_same_words_are_read_in_the_currency_of_the_market():
    assert find_prices("how about €120?", currency="EUR").cents == 12000
    assert find_prices("90 quid?", currency="GBP").cents == 9000
    assert find_prices("how about $120?", currency="EUR").cents is None


def test_the_span_shows_the_words_that_were_read():
    text = "Fine, I could do $1,250.50 today."
    start, end = find_prices(text, currency="USD").span
    assert text[start:end] == "$1,250.50"
    start, end = find_prices("ok 2k dollars", currency="USD").span
    assert (start, end) == (3, 13)


def test_the_last_price_talked_of_is_known_even_when_nothing_is_proposed():
    assert find_prices("I asked $320, I could do $280", currency="USD").last_cents == 28000
    assert find_prices("I can't go lower than 250", currency="USD").last_cents == 25000
    assert find_prices("I can't do 250", currency="USD").last_cents is None


@given(cents=amounts, currency=currencies)
def test_a_printed_amount_in_a_plain_question_is_always_proposed(cents, currency):
    text = f"How about {money.format_amount(cents, currency)}?"
    assert find_prices(text, currency=currency).cents == cents


@given(text=st.text(max_size=200), currency=currencies)
def test_any_talk_is_read_without_failing_and_within_bounds(text, currency):
    reading = find_prices(text, currency=currency)
    assert (reading.cents is None) == (reading.kind is not ReadingKind.OFFER)
    if reading.cents is not None:
        assert 1 <= reading.cents <= money.MAX_PRICE_CENTS
        assert 0 <= reading.span[0] < reading.span[1] <= len(text)


@pytest.mark.parametrize("piece", ["1 ", "1,", "1-", "$1 to ", "a", "1234567890", "(555) ", "can't 1 "])
def test_twenty_thousand_characters_of_talk_are_read_at_once(piece):
    before = time.process_time()
    find_prices((piece * 20_000)[:20_000], currency="USD")
    assert time.process_time() - before < 0.5
