"""Amounts of money: the one place that reads and prints them.

Here: cents, the currencies of a market, printing an amount, the strict reader of a typed price
(`parse_amount`), and the careful reader of prices in talk (`find_prices`), whose answer is only
ever a proposal to confirm. Not here: whether a price is allowed at the table (`rules`).

Contract: an amount is an integer number of cents from reading to storing to printing; no float
touches it. A text is read in the market's one currency and in one format (1,234.50); what could
mean two things is refused with a sentence that says what to write. Standard library only.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

Cents: TypeAlias = int

MAX_PRICE_CENTS: Cents = 10**10
"""No price, and no sampled value, is larger: 100 million units of money."""

MAX_AMOUNT_CHARS = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Currency:
    """How amounts of one currency are written; all have two decimals, `.` and `,`."""

    code: str
    symbol: str
    words: tuple[str, ...]
    """What people call it in talk, lower case."""
    decimals: int = 2
    decimal_mark: str = "."
    thousands_mark: str = ","


CURRENCIES: dict[str, Currency] = {
    currency.code: currency
    for currency in (
        Currency(code="USD", symbol="$", words=("dollar", "dollars", "buck", "bucks", "bux")),
        Currency(code="EUR", symbol="€", words=("euro", "euros")),
        Currency(code="GBP", symbol="£", words=("pound", "pounds", "quid")),
    )
}


# Printing --------------------------------------------------------------------------------------


def format_amount(cents: Cents, currency: str) -> str:
    """`$1,234.50`; always two decimals, a loss with a real minus sign before the symbol."""
    sign = "\N{MINUS SIGN}" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{CURRENCIES[currency].symbol}{whole:,}.{rest:02d}"


def format_plain(cents: Cents) -> str:
    """`1234.50`, for input fields and files; negative amounts with a hyphen."""
    whole, rest = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}{whole}.{rest:02d}"


# A typed price ---------------------------------------------------------------------------------


class AmountCode(StrEnum):
    """Why a typed price was refused."""

    EMPTY = "empty"
    TOO_LONG = "too_long"
    NEGATIVE = "negative"
    ZERO = "zero"
    NOT_FINITE = "not_finite"
    EXPONENT = "exponent"
    TOO_MANY_DECIMALS = "too_many_decimals"
    AMBIGUOUS_COMMA = "ambiguous_comma"
    COMMA_DECIMALS = "comma_decimals"
    FOREIGN_DIGITS = "foreign_digits"
    OTHER_CURRENCY = "other_currency"
    NOT_A_NUMBER = "not_a_number"
    TOO_LARGE = "too_large"


class AmountError(ValueError):
    """A typed price that cannot be read; `sentence` is for the person who typed it."""

    def __init__(self, code: AmountCode, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


_PLAIN_NUMBER = re.compile(r"(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+|(?=\.[0-9]))(?:\.(?P<rest>[0-9]{0,2}))?")
_DECIMAL_COMMA = re.compile(r"[0-9]{1,3}(\.[0-9]{3})+,[0-9]*|[0-9]{1,3}(\.[0-9]{3}){2,}")
_MINUS_SIGNS = "-\N{MINUS SIGN}\N{EN DASH}\N{EM DASH}"


def parse_amount(text: str, *, currency: str) -> Cents:
    """Read a price that a person typed into a price field; 1 to `MAX_PRICE_CENTS` cents.

    Reads `120`, `120.5`, `120.50`, `$120`, `1,234.50`, ` 120 USD `. Everything else raises
    `AmountError` with its own code and a sentence; nothing is guessed or rounded.
    """
    if len(text) > MAX_AMOUNT_CHARS:
        raise AmountError(AmountCode.TOO_LONG, f"A price has at most {MAX_AMOUNT_CHARS} characters.")
    body = _strip_currency(text.strip(), currency)
    _refuse_what_is_no_number(body)
    match = _PLAIN_NUMBER.fullmatch(body)
    if match is None:
        raise _unreadable(body)
    cents = _to_cents(match["whole"], match["rest"])
    if cents == 0:
        raise AmountError(AmountCode.ZERO, "A price must be at least 0.01.")
    if cents > MAX_PRICE_CENTS:
        limit = format_amount(MAX_PRICE_CENTS, currency)
        raise AmountError(AmountCode.TOO_LARGE, f"A price can be at most {limit}.")
    return cents


def _to_cents(whole: str, rest: str | None) -> Cents:
    return int(whole.replace(",", "") or "0") * 100 + int((rest or "").ljust(2, "0"))


def _strip_currency(body: str, currency: str) -> str:
    """`body` without one mark of the market's own currency before or after the number."""
    marks = {mark.casefold(): known.code for known in CURRENCIES.values() for mark in (known.symbol, known.code)}
    folded = body.casefold()
    for mark, code in marks.items():
        for found, rest in (
            (folded.startswith(mark), body[len(mark) :]),
            (folded.endswith(mark), body[: -len(mark)]),
        ):
            if found and code != currency:
                raise AmountError(AmountCode.OTHER_CURRENCY, f"Prices here are in {currency}, not in {code}.")
            if found:
                return rest.strip()
    return body


def _refuse_what_is_no_number(body: str) -> None:
    if not body:
        raise AmountError(AmountCode.EMPTY, "Type a price, such as 120 or 120.50.")
    if body[0] in _MINUS_SIGNS:
        raise AmountError(AmountCode.NEGATIVE, "A price cannot be negative.")
    if body.lstrip("+").casefold() in {"nan", "inf", "infinity", "∞"}:
        raise AmountError(AmountCode.NOT_FINITE, "A price must be a number such as 120.50.")
    if re.fullmatch(r"[0-9.,]+[eE][+-]?[0-9]+", body):
        raise AmountError(AmountCode.EXPONENT, "Write the price out, such as 1200 and not 1.2e3.")
    if any(char.isdigit() and not char.isascii() for char in body):
        raise AmountError(AmountCode.FOREIGN_DIGITS, "Write the price with the digits 0 to 9.")
    if not re.fullmatch(r"[0-9.,]+", body):
        raise AmountError(AmountCode.NOT_A_NUMBER, "Type only a number, such as 120 or 120.50.")


def _unreadable(body: str) -> AmountError:
    if _DECIMAL_COMMA.fullmatch(body):
        return AmountError(
            AmountCode.COMMA_DECIMALS,
            "Write thousands with commas and cents with a point: 1,234.50.",
        )
    if re.fullmatch(r"[0-9,]+\.[0-9]{3,}", body):
        return AmountError(
            AmountCode.TOO_MANY_DECIMALS,
            "A price has two decimals at most: write 3.35, or 3,350 for thousands.",
        )
    if "," in body and re.search("[0-9]", body):
        return AmountError(AmountCode.AMBIGUOUS_COMMA, "That comma could mean two things: write 12.50 or 1,250.")
    return AmountError(AmountCode.NOT_A_NUMBER, "Type only a number, such as 120 or 120.50.")


# Prices in talk --------------------------------------------------------------------------------


class ReadingKind(StrEnum):
    """What a text says about prices."""

    OFFER = "offer"
    NONE = "none"
    SEVERAL = "several"
    RANGE = "range"
    NEGATED = "negated"
    NON_PRICE = "non_price"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mention:
    """One number in a text."""

    cents: Cents | None
    """Its amount if it were a price; None if it cannot be read as one."""
    kind: ReadingKind
    """`OFFER`: a price somebody means; `RANGE`, `NEGATED`: a price, but not one that is proposed;
    `NON_PRICE`: a year, a time, a quantity, a discount, a value of something else…"""
    span: tuple[int, int]
    """Where it stands in the text, currency marks included."""
    marked: bool = False
    """A currency mark or word stands at it."""
    bound: bool = False
    """Ruled out only on one side: "not below 120"."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What was read in a text; a proposal at most, it never binds."""

    kind: ReadingKind
    cents: Cents | None = None
    """The one price that is meant; None unless `kind` is `OFFER`."""
    span: tuple[int, int] | None = None
    """Where that price stands."""
    mentions: tuple[Mention, ...] = ()

    @property
    def last_cents(self) -> Cents | None:
        """The last price that is talked of as one's own, several or bounds or not: for scoring."""
        meant = [mention.cents for mention in self.mentions if mention.kind is ReadingKind.OFFER or mention.bound]
        return meant[-1] if meant else None


MAX_READ_CHARS = 2_000
"""Talk beyond this is not read; no room takes a longer message."""

_MAX_DIGITS = 14


def find_prices(text: str, *, currency: str) -> Reading:
    """The price that a line of talk proposes, if there is exactly one.

    Reads marks and words of the market's currency, thousands, `1.2k` and `3 grand`, and a bare
    number where its neighbours are those of a price ("how about 120?", "120 ok?"). Years, times,
    dates, phone numbers, measures, quantities, model numbers, percentages, discounts and values of
    something else are no price. Two different prices, a range, or a price that is ruled out ("not
    more than 120", "120 is too low") are no proposal. When in doubt, the answer is none.
    """
    line = _Line(text[:MAX_READ_CHARS], CURRENCIES[currency])
    mentions = _without_quantities([line.mention(index) for index in line.numbers()])
    prices = [mention for mention in mentions if mention.kind is not ReadingKind.NON_PRICE]
    if not prices:
        kind = ReadingKind.NON_PRICE if mentions else ReadingKind.NONE
        return Reading(kind=kind, mentions=mentions)
    for kind in (ReadingKind.RANGE, ReadingKind.SEVERAL, ReadingKind.NEGATED):
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


_TOKEN = re.compile(
    r"(?P<number>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
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


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


class _Line:
    """The tokens of a line of talk, and what its numbers are."""

    def __init__(self, text: str, currency: Currency) -> None:
        self._currency = currency
        self._tokens = [
            _Token(match.lastgroup or "", match[0].replace("’", "'"), match.start(), match.end())
            for match in _TOKEN.finditer(text)
        ]
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
        cents = self._cents(index, factor)
        span = (self._tokens[first].start, self._tokens[last].end)
        kind = ReadingKind.NON_PRICE
        if cents is not None and self._is_price(index, first, last, marked=marked, cents=cents):
            kind = self._stance(first, last)
        bound = kind is ReadingKind.NEGATED and self._is_bound(first)
        return Mention(cents=cents, kind=kind, span=span, marked=marked, bound=bound)

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
        """(1, 1000 or a million by a suffix, last token of the amount)."""
        factor = 1
        if self._touch(index) and self._word(index + 1) in {"k", "m"}:
            factor = 1000 if self._word(index + 1) == "k" else 1_000_000
        elif self._word(index + 1) in {"k", "grand"}:
            factor = 1000
        if factor > 1:
            last = index + 1
            if self._word(index + 2) in {self._code, *self._currency.words}:
                last = index + 2
        return factor, last

    def _cents(self, index: int, factor: int) -> Cents | None:
        whole, _, rest = self._tokens[index].text.partition(".")
        if len(rest) > (2 if factor == 1 else 3) or len(whole) > _MAX_DIGITS:
            return None
        cents = int(whole.replace(",", "") or "0") * 100 * factor
        cents += int(rest.ljust(3, "0")) * factor // 10
        return cents if 0 < cents <= MAX_PRICE_CENTS else None

    # Whether it is a price at all

    def _is_price(self, index: int, first: int, last: int, *, marked: bool, cents: Cents) -> bool:
        token = self._tokens[index]
        if token.start in self._elsewhere or token.end - 1 in self._elsewhere:
            return False
        if self._is_fragment(first, last) or self._is_foreign(first, last):
            return False
        if self._is_change(first, last) or self._is_other_value(first, last):
            return False
        if marked:
            return True
        return self._stands_like_a_price(first, last) and not self._is_year_or_time(index, cents)

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
            if before.text in _MINUS_SIGNS and not apart:
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
            if word in _NEGATORS and not asked:
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
