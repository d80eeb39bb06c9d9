"""Prices in talk: what a line of free text proposes, if it proposes exactly one price.

Here: `find_prices`, whose answer is only ever a proposal to confirm; it binds nobody. Not here: the
strict reader of a price field and the printing of amounts (`money`).

Contract: never an exception, whatever the text; when in doubt the answer is no offer, and a number
that can be read in two ways is said to be ambiguous rather than guessed. Amounts are whole cents,
no float touches them. Standard library only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from markets.engine.money import CURRENCIES, MAX_PRICE_CENTS, Cents, Currency

_DASH_MARKS = "-\N{MINUS SIGN}\N{EN DASH}\N{EM DASH}"


class ReadingKind(StrEnum):
    """What a text says about prices."""

    OFFER = "offer"
    NONE = "none"
    SEVERAL = "several"
    RANGE = "range"
    NEGATED = "negated"
    AMBIGUOUS = "ambiguous"
    NON_PRICE = "non_price"


class NumberFormat(StrEnum):
    """Which mark stands before the cents."""

    POINT = "point"
    """1,234.50"""
    COMMA = "comma"
    """1.234,50 or 1 234,50"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mention:
    """One number in a text."""

    cents: Cents | None
    """Its amount if it were a price; None if it cannot be read as one."""
    kind: ReadingKind
    """`OFFER`: a price somebody means; `RANGE`, `NEGATED`: a price, but not one that is proposed;
    `AMBIGUOUS`: a price that can be read in two ways; `NON_PRICE`: a year, a time, a quantity, a
    discount, a value of something else…"""
    span: tuple[int, int]
    """Where it stands in the text, currency marks included."""
    marked: bool = False
    """A currency mark or word stands at it."""
    bound: bool = False
    """Ruled out only on one side: "not below 120"."""
    comes_off: bool = False
    """A reduction of a price that stands somewhere else: "$5 off"."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What was read in a text; a proposal at most, it never binds."""

    kind: ReadingKind
    cents: Cents | None = None
    """The one price that is meant; None unless `kind` is `OFFER`."""
    span: tuple[int, int] | None = None
    """Where that price stands."""
    mentions: tuple[Mention, ...] = ()

    off_cents: Cents | None = None
    """What is said to come off the price that was talked of before ("I can take $5 off"); None where
    the text names a price of its own, or more than one reduction."""

    @property
    def last_cents(self) -> Cents | None:
        """The last price that is talked of as one's own, else the last bound: for scoring."""
        meant = [mention.cents for mention in self.mentions if mention.kind is ReadingKind.OFFER]
        bounds = [mention.cents for mention in self.mentions if mention.bound]
        return (meant or bounds or [None])[-1]


MAX_READ_CHARS = 2_000
"""Talk beyond this is not read; no room takes a longer message."""

_MAX_DIGITS = 14


_NEAR = (0.1, 2.0)
"""Talk of less or more than this many times the list price is hardly about the price of the thing."""


def find_prices(
    text: str,
    *,
    currency: str,
    list_price_cents: Cents | None = None,
    number_format: NumberFormat = NumberFormat.POINT,
) -> Reading:
    """The price that a line of talk proposes, if there is exactly one.

    Reads marks and words of the market's currency, thousands, `1.2k`, `2m` and `3 grand`, number
    words ("two hundred and fifty"), and a bare number where its neighbours are those of a price
    ("how about 120?", "120 ok?"). Years, times, dates, phone numbers, measures, quantities, model
    numbers, percentages, discounts and values of something else are no price. Two different prices,
    a range, or a price that is ruled out ("not more than 120", "120 is too low") are no proposal.

    `number_format` says what a single mark before three digits is; the other way of writing is
    read where only one meaning is left (`45.000,00`), and is ambiguous where two are (`3.350`).

    Where the list price of what is talked about is given, amounts far from it are no price of it
    ("and a gas card for $50" about a car).
    """
    line = _Line(text[:MAX_READ_CHARS], CURRENCIES[currency], number_format)
    mentions = _without_quantities([line.mention(index) for index in line.numbers()])
    if list_price_cents:
        mentions = _near(mentions, list_price_cents)
    prices = [mention for mention in mentions if mention.kind is not ReadingKind.NON_PRICE]
    if not prices:
        kind = ReadingKind.NON_PRICE if mentions else ReadingKind.NONE
        off = [mention.cents for mention in mentions if mention.comes_off]
        return Reading(kind=kind, mentions=mentions, off_cents=off[0] if len(off) == 1 else None)
    for kind in (ReadingKind.RANGE, ReadingKind.AMBIGUOUS, ReadingKind.NEGATED):
        if any(mention.kind is kind for mention in prices):
            return Reading(kind=kind, mentions=mentions)
    if len({mention.cents for mention in prices}) > 1:
        return Reading(kind=ReadingKind.SEVERAL, mentions=mentions)
    return Reading(kind=ReadingKind.OFFER, cents=prices[-1].cents, span=prices[-1].span, mentions=mentions)


def _without_quantities(mentions: list[Mention]) -> tuple[Mention, ...]:
    """Beside a marked price, a much smaller bare number is a quantity: "$50 each if you take 4"."""
    marked = [mention.cents for mention in mentions if mention.marked and mention.cents]
    return tuple(
        replace(mention, kind=ReadingKind.NON_PRICE, bound=False)
        if marked and mention.cents and not mention.marked and mention.cents * 4 < min(marked)
        else mention
        for mention in mentions
    )


def _near(mentions: tuple[Mention, ...], list_price_cents: Cents) -> tuple[Mention, ...]:
    low, high = (share * list_price_cents for share in _NEAR)
    return tuple(
        mention
        if mention.cents is None or low <= mention.cents <= high
        else replace(mention, kind=ReadingKind.NON_PRICE, bound=False)
        for mention in mentions
    )


_TOKEN = re.compile(
    r"(?P<number>[0-9]{1,3}(?:(?P<group>[,.'\u00a0\u202f])[0-9]{3})(?:(?P=group)[0-9]{3})*(?![0-9])(?:[.,][0-9]+)?"
    r"|[0-9]+(?:[.,][0-9]+)?|(?<![^\s$€£])[.,][0-9]+)"
    r"|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*)"
    r"|(?P<mark>\S)"
)

_NUMBERS_OF_OTHER_KINDS = re.compile(
    r"(?<![\w$€£])\+?(?:[0-9]{1,2}[ .-]?)?\(?[0-9]{3}\)?[ .-]?[0-9]{3}[ .-]?[0-9]{4}(?![0-9])"  # phone
    r"|(?<![\w$€£.,])[0-9]{3}-[0-9]{4}(?![0-9])"  # local phone
    r"|(?<![\w$€£.,])[0-9]{7,}(?![0-9])"  # some other reference
    r"|(?<![0-9])[0-9]{1,4}(?P<sep>[/-])[0-9]{1,2}(?P=sep)[0-9]{1,4}(?![0-9])"  # date
    r"|(?<![0-9])[0-9]{1,2}:[0-9]{2}(?![0-9])"  # time
    r"|(?<![\w$€£])[0-9]{1,2}/[0-9]{1,2}(?![0-9])"  # date, 24/7, 1/2, 8/10
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CLAUSE_ENDS = frozenset(".,;!?()…") | _words("and because but however if plus since so then though unless when")
_DASHES = frozenset("-–—~")

_LEADERS = _words(
    "about above accept accepting afford alright and approx approximately around as ask asking at be"
    " below best bid budget but cash charge come consider considering counter counteroffer deal do"
    " does doing done down drop even final fine firm for full get getting give giving go going good"
    " got highest hmm hoping how how's id is it it's its just least let's lets like low lower lowest"
    " make max maybe me meet no not offer offered offering offers ok okay on only or over pay paying"
    " perhaps please price reach rent say sell selling settle so sold spend still sure take taking"
    " than that's thats then think thinking to under up us want wanted was well what with would yeah"
    " yep yes you"
)
"""Words right before a bare number that may be a price."""

_FOLLOWERS = _words(
    "a again all also altogether am an and and/or are as at because buck bucks but by can cash could"
    " deal delivered did do does done each even every fair final fine firm flat for from good great"
    " hmm how however i i'd i'll i'm id if ill im in instead is isn't it it's its just last lol max"
    " maximum may maybe might minimum monthly my no not now obo offer ok okay on only or per pickup"
    " please plus price reasonable right seems shipped since sir so sorry sound sounds thank thanks"
    " that that's thats the then there this tho though to today together tomorrow tonight too tops"
    " total unless upfront was we what when where which while will with without won't work works"
    " would wouldn't yes you your"
)
"""Words right after a bare number that may be a price; any other word makes it a quantity."""

_PAYING = _words("accept asking at do for offer pay sell take want")
_COUNTED_IN_THOUSANDS = _words("actual km kms mi mile mileage miles of on original tv worth")
"""Words after "15k" that make it no price: distances, and what something else would cost."""


_YEAR_LEADERS = _words("around from in is it it's its since that's thats was")
_VALUE_WORDS = _words(
    "bought cost costed costs deposit mileage msrp odometer originally paid retail retailed retails value valued worth"
)
_CHANGE_BEFORE = _words("additional another by deposit difference discount extra off save saves saving")
_CHANGE_AFTER = _words(
    "apart back cheaper credit deposit difference discount down extra gift higher less lower more off rebate tip"
)
_TIME_LEADERS = _words("about after around at before by till until")
_TIME_WORDS = _words(
    "afternoon come coming evening hour hours meet morning noon pick picking pickup see there today tomorrow tonight"
)
_NEGATORS = _words(
    "ain't can't cannot cant couldn't didn't doesn't don't dont hardly isn't neither never no nor"
    " not refuse unable won't wont wouldn't"
)
_BOUNDS = _words("above below beyond exceed least most over than under")
_JUDGED = _words("be doesn't feels is isn't seems sounds that's was won't would wouldn't")
_TOO = _words("cheap expensive far high insulting little low much ridiculous steep")
_PRICE_WORDS = _words("asking best budget deal firm lowest offer pay price rent sell take")


_UNITS = {
    word: number
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    )
}
_TEENS = {
    word: number
    for number, word in enumerate(
        ["eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"],
        start=11,
    )
}
_TENS = {
    word: 10 * number
    for number, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2
    )
}
_SMALL = _UNITS | _TEENS | _TENS
_LARGE = {"hundred": 100, "thousand": 1_000, "grand": 1_000, "million": 1_000_000}
_FACTORS = {"k": 1_000, "m": 1_000_000, **_LARGE}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """`number`, `word` or `mark`."""
    text: str
    """As written; of a number in words its digits."""
    start: int
    end: int
    spoken: bool = False
    """A number in words."""
    two_ways: bool = False
    """"one fifty": 150 or 1.50."""


def _tokens(text: str) -> list[_Token]:
    """The words, numbers and marks of a line; numbers in words are one token each."""
    written = [
        _Token(match.lastgroup or "", match[0].replace("’", "'"), match.start(), match.end())
        for match in _TOKEN.finditer(text)
    ]
    tokens: list[_Token] = []
    place = 0
    while place < len(written):
        spoken, place_after = _spoken_number(written, place)
        tokens.append(written[place] if spoken is None else spoken)
        place = place + 1 if spoken is None else place_after
    return tokens


def _spoken_number(written: list[_Token], place: int) -> tuple[_Token | None, int]:
    """The number in words that starts at `place`, if one does, and the place after it.

    One to ten alone are words like any other ("this one", "two bedrooms") and no number.
    """
    words: list[str] = []
    end = place
    for word, after in _number_words(written, place):
        words.append(word)
        end = after
    if not words or (len(words) == 1 and words[0] in _UNITS and not _is_money_word(written, end)):
        return None, place
    number, two_ways = _value(words)
    first, last = written[place], written[end - 1]
    return _Token("number", str(number), first.start, last.end, spoken=True, two_ways=two_ways), end


def _number_words(written: list[_Token], place: int) -> Iterator[tuple[str, int]]:
    """The words of a number from `place` on, each with the place after it."""

    def word_at(index: int) -> str:
        token = written[index] if 0 <= index < len(written) else None
        return token.text.casefold() if token and token.kind == "word" else ""

    if word_at(place) in _LARGE and place and written[place - 1].kind == "number":
        return  # "5 hundred": a factor of the digits before it
    begun, beyond_hundred = False, False
    while place < len(written):
        word, following = word_at(place), word_at(place + 1)
        if word in _SMALL or (word in _LARGE and begun) or (word in {"hundred", "thousand"} and not begun):
            yield word, place + 1
            beyond_hundred = beyond_hundred or _LARGE.get(word, 0) > 100
        elif not begun and word in {"a", "an"} and following in _LARGE:
            yield "one", place + 1
        else:
            another = word_at(place + 2) in _LARGE and not beyond_hundred
            joins = written[place].text == "-" or (word == "and" and not another)
            if not (begun and joins and following in _SMALL):
                return
        begun = True
        place += 1


def _value(words: list[str]) -> tuple[int, bool]:
    """The number that the words say, and whether they say it in a way that has two readings."""
    total = current = 0
    two_ways = False
    for word in words:
        if word in _LARGE:
            factor = _LARGE[word]
            if factor == 100:
                current = max(current, 1) * 100
            else:
                total, current = total + max(current, 1) * factor, 0
        elif word in _UNITS and (current == 0 or current % 10 == 0):
            current += _UNITS[word]
        elif current % 100 == 0:
            current += _SMALL[word]
        else:
            current, two_ways = current * 100 + _SMALL[word], True
    return total + current, two_ways


def _is_money_word(written: list[_Token], place: int) -> bool:
    word = written[place].text.casefold() if place < len(written) else ""
    return any(word in currency.words for currency in CURRENCIES.values())


class _Line:
    """The tokens of a line of talk, and what its numbers are."""

    def __init__(self, text: str, currency: Currency, number_format: NumberFormat) -> None:
        self._currency = currency
        self._format = number_format
        self._tokens = _tokens(text)
        self._words = [token.text.casefold() if token.kind == "word" else "" for token in self._tokens]
        self._elsewhere = {place for match in _NUMBERS_OF_OTHER_KINDS.finditer(text) for place in range(*match.span())}
        self._about_time = not _TIME_WORDS.isdisjoint(self._words)
        self._about_price = not _PRICE_WORDS.isdisjoint(self._words)

    def numbers(self) -> list[int]:
        """Indexes of the number tokens."""
        return [index for index, token in enumerate(self._tokens) if token.kind == "number"]

    def mention(self, index: int) -> Mention:
        """What the number token at `index` is."""
        marked, first, last = self._currency_marks(index)
        factor, last = self._factor(index, last)
        cents, two_ways = self._cents(index, factor, marked=marked)
        span = (self._tokens[first].start, self._tokens[last].end)
        kind = ReadingKind.NON_PRICE
        if two_ways and self._is_price(index, first, last, marked=marked, cents=cents or 0):
            kind, cents = ReadingKind.AMBIGUOUS, None
        elif cents is not None and self._is_price(index, first, last, marked=marked, cents=cents):
            kind = self._stance(first, last)
        bound = kind is ReadingKind.NEGATED and self._is_bound(first)
        comes_off = self._word(first - 1) in {"knock", "take"} and self._word(last + 1) == "off"
        return Mention(cents=cents, kind=kind, span=span, marked=marked, bound=bound, comes_off=comes_off)

    # What the number is made of

    def _currency_marks(self, index: int) -> tuple[bool, int, int]:
        """(whether the market's currency stands at the number, first and last token of both)."""
        first = last = index
        before, after = self._token(index - 1), self._token(index + 1)
        if before and (before.text == self._currency.symbol or self._word(index - 1) == self._code):
            first = index - 1
            if self._word(index - 2) in {"us", "usd"} and self._touch(index - 2):
                first = index - 2
        symbol_after = after and after.text == self._currency.symbol and not self._number_touches(index + 1)
        if symbol_after or self._word(index + 1) in {self._code, *self._currency.words}:
            last = index + 1
        return first < index or last > index, first, last

    def _factor(self, index: int, last: int) -> tuple[int, int]:
        """(what a suffix or word multiplies by, last token of the amount)."""
        word = self._word(index + 1)
        factor = 1
        if (word in {"k", "m"} and (self._touch(index) or word == "k")) or word in _LARGE:
            factor = _FACTORS[word]
        if factor > 1:
            last = index + 1
            if self._word(index + 2) in {self._code, *self._currency.words}:
                last = index + 2
        return factor, last

    def _cents(self, index: int, factor: int, *, marked: bool) -> tuple[Cents | None, bool]:
        """The amount, None if there is none, and whether it can be read in two ways."""
        token = self._tokens[index]
        whole, rest, two_ways = self._parts(token.text, factor, marked=marked)
        if whole is None or len(whole) > _MAX_DIGITS or len(rest) > (2 if factor == 1 else 3):
            return None, two_ways
        cents = int(whole or "0") * 100 * factor + int(rest.ljust(3, "0")) * factor // 10
        return (cents if 0 < cents <= MAX_PRICE_CENTS else None), two_ways or token.two_ways

    def _parts(self, text: str, factor: int, *, marked: bool) -> tuple[str | None, str, bool]:
        """(digits before the cents, digits of the cents, whether there are two readings)."""
        text = re.sub(r"['\u00a0\u202f]", "", text)
        marks = re.findall("[.,]", text)
        if not marks:
            return text, "", False
        head, mark, rest = text.rpartition(marks[-1])
        if len(set(marks)) == 2:
            whole = head.replace("." if mark == "," else ",", "")
            return (whole, rest, False) if whole.isdigit() and len(rest) <= 2 else (None, "", False)
        if len(marks) > 1:
            return text.replace(mark, ""), "", False
        decimal = "." if self._format is NumberFormat.POINT else ","
        if mark == decimal:
            return (None, "", True) if len(rest) == 3 and factor == 1 and 0 < len(head) <= 3 else (head, rest, False)
        if len(rest) == 3:
            return head + rest, "", False
        if len(rest) <= 2 and marked and self._currency.comma_decimals:
            return head, rest, False
        return None, "", len(rest) <= 2

    # Whether it is a price at all

    def _is_price(self, index: int, first: int, last: int, *, marked: bool, cents: Cents) -> bool:
        token = self._tokens[index]
        if token.start in self._elsewhere or token.end - 1 in self._elsewhere:
            return False
        if self._is_fragment(first, last) or self._is_foreign(first, last):
            return False
        if self._is_change(first, last) or self._is_other_value(first, last):
            return False
        if marked or self._is_paid_in_thousands(index, first, last):
            return True
        return self._stands_like_a_price(first, last) and not self._is_year_or_time(index, cents)

    def _is_paid_in_thousands(self, index: int, first: int, last: int) -> bool:
        """ "for 9k": whatever word comes next, unless it is a distance."""
        paid = last > index and self._word(last) in _FACTORS and self._word(first - 1) in _PAYING
        return paid and self._word(last + 1) not in _COUNTED_IN_THOUSANDS

    def _is_fragment(self, first: int, last: int) -> bool:
        """Part of a longer number, a model name, a measure, an ordinal, a percentage."""
        if self._touch(first - 1):
            before = self._tokens[first - 1]
            if before.kind == "word" or before.text in "#+_@*'\"%^=" or before.text == "×":
                return True
            apart = self._touch(first - 2)
            number_before = apart and self._tokens[first - 2].kind == "number"
            if before.text in ",.:/" and (number_before or not apart):
                return True
            if before.text in _DASH_MARKS and not apart:
                return True
        after = self._token(last + 1)
        if after is None:
            return False
        if after.text in {"%", "#", "°"} or self._word(last + 1) in {"percent", "pct", "percents"}:
            return True
        if not self._touch(last):
            return False
        if after.kind == "word":
            return self._word(last + 1) != "ish"
        if after.text in {'"', "'", "″", "′", "”"}:
            return self._tokens[first - 1].text not in {'"', "'", "“"} if first else True
        return after.text in ",.:x×" and self._number_touches(last + 1)

    def _is_foreign(self, first: int, last: int) -> bool:
        """In another currency than the market's."""
        near = {self._text(first - 1), self._text(last + 1)}
        words = {self._word(first - 1), self._word(last + 1)}
        return any(
            known.symbol in near or known.code.casefold() in words or words & {*known.words}
            for known in CURRENCIES.values()
            if known.code != self._currency.code
        )

    def _is_change(self, first: int, last: int) -> bool:
        """A discount or an extra, to or from a price that is somewhere else."""
        return self._word(first - 1) in _CHANGE_BEFORE or self._word(last + 1) in _CHANGE_AFTER

    def _is_other_value(self, first: int, last: int) -> bool:
        """What the thing is worth, was bought for, costs elsewhere."""
        return not _VALUE_WORDS.isdisjoint(self._clause_before(first, 4)) or self._word(last + 1) in {
            "retail",
            "value",
        }

    def _stands_like_a_price(self, first: int, last: int) -> bool:
        """A bare number between words that stand around prices, or none."""
        before = self._token(first - 1)
        leads = (
            before is None
            or before.kind == "mark"
            or self._word(first - 1) in _LEADERS
            or (
                self._word(first - 1) in {"have", "of", "the"}
                and self._word(first - 2) in _PRICE_WORDS | {"just", "only"}
            )
            or (self._word(first - 1) in {"my", "the", "your"} and self._word(last + 1) in {"deal", "offer", "price"})
        )
        joined = self._word(last + 1) in {"or", "to"} or self._text(last + 1) in _DASHES
        if joined and self._kind(last + 2) == "number":
            return leads and self._ends_like_a_price(last + 2)
        return leads and self._ends_like_a_price(last)

    def _ends_like_a_price(self, last: int) -> bool:
        after = self._token(last + 1)
        return after is None or after.kind != "word" or self._words[last + 1] in _FOLLOWERS | {"ish"}

    def _is_year_or_time(self, index: int, cents: Cents) -> bool:
        token, leader = self._tokens[index], self._word(index - 1)
        if re.fullmatch("(19|20)[0-9]{2}", token.text) and leader in _YEAR_LEADERS:
            return leader in {"in", "since", "from"} or not self._about_price
        return cents <= 1200 and cents % 100 == 0 and leader in _TIME_LEADERS and self._about_time

    # Whether it is meant

    def _stance(self, first: int, last: int) -> ReadingKind:
        if self._in_range(first, last):
            return ReadingKind.RANGE
        if self._is_bound(first) or self._is_ruled_out(first, last):
            return ReadingKind.NEGATED
        return ReadingKind.OFFER

    def _in_range(self, first: int, last: int) -> bool:
        if self._text(last + 1) == "+" and self._touch(last):
            return True
        return self._joins(last + 1) or self._joins(first - 1)

    def _joins(self, middle: int) -> bool:
        """Whether the token at `middle` makes a range of the numbers around it."""
        after = middle + 2 if self._text(middle + 1) == self._currency.symbol else middle + 1
        before = middle - 2 if self._text(middle - 1) == self._currency.symbol else middle - 1
        if self._word(middle - 1) in {"k", "m"}:
            before = middle - 2
        if not (self._kind(after) == self._kind(before) == "number"):
            return False
        if self._text(middle) in _DASHES or self._word(middle) in {"to", "thru", "through"}:
            return True
        return self._word(middle) in {"and", "&"} and "between" in self._clause_before(before, 5)

    def _is_bound(self, first: int) -> bool:
        """One end of what is possible: "not below 120", "at least 120"."""
        before = self._clause_before(first, 3)
        if not before:
            return False
        return before[-1] in _BOUNDS or (before[-1] == "that" and bool({"lower", "less", "more"} & {*before}))

    def _is_ruled_out(self, first: int, last: int) -> bool:
        """Said to be impossible, or too high or low."""
        before = self._clause_before(first, 7)
        for place, word in enumerate(before):
            following = before[place + 1] if place + 1 < len(before) else ""
            asked = following in {"you", "u", "we"} or "why" in before[:place]
            interjection = word == "no" and following in {"", "no"}
            if word in _NEGATORS and not asked and not interjection:
                return True
        after = self._clause_after(last, 6)
        if after and (after[0] in _JUDGED or after[0] == "too"):
            return any(
                word in _NEGATORS or (word in {"too", "pretty", "kinda", "so", "bit", "little"} and next_word in _TOO)
                for word, next_word in zip(after, [*after[1:], ""], strict=True)
            )
        return False

    # Looking around

    @property
    def _code(self) -> str:
        return self._currency.code.casefold()

    def _token(self, index: int) -> _Token | None:
        return self._tokens[index] if 0 <= index < len(self._tokens) else None

    def _text(self, index: int) -> str:
        token = self._token(index)
        return token.text if token else ""

    def _kind(self, index: int) -> str:
        token = self._token(index)
        return token.kind if token else ""

    def _word(self, index: int) -> str:
        return self._words[index] if 0 <= index < len(self._words) else ""

    def _touch(self, index: int) -> bool:
        """Whether the token at `index` and the next stand without a space between them."""
        here, after = self._token(index), self._token(index + 1)
        return here is not None and after is not None and here.end == after.start

    def _number_touches(self, index: int) -> bool:
        return self._touch(index) and self._tokens[index + 1].kind == "number"

    def _clause_before(self, index: int, words: int) -> list[str]:
        """Up to so many words before the token at `index`, not beyond the clause."""
        return self._clause(range(index - 1, max(index - 1 - 2 * words, -1), -1), words)[::-1]

    def _clause_after(self, index: int, words: int) -> list[str]:
        return self._clause(range(index + 1, min(index + 1 + 2 * words, len(self._tokens))), words)

    def _clause(self, places: range, words: int) -> list[str]:
        found: list[str] = []
        for place in places:
            if self._tokens[place].text.casefold() in _CLAUSE_ENDS or len(found) == words:
                break
            if self._words[place]:
                found.append(self._words[place])
        return found
