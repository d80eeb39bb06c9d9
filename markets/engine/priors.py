"""What is publicly known about private values: distributions, samples and joint priors.

Here: the specs a market is written in (`bands`, `uniform:LO:HI`, `lognormal:MEDIAN:SIGMA`,
`constant:X`, a hidden common factor as in `bands*uniform:0.6:1.6`, and `lowest` for costs), the
rules that read a product's own price history (`highest:0.8`, `range:0.4:0.1`, `lowest:0.6:0.9`),
their text form, their distribution functions, the sampler that turns a spec into cents, and the
joint prior of several buyers as a mixture.
Not here: what a seller should do about it (`optimum`), or which spec a market uses (`scenarios`).

Contract: every number in a spec is a multiple of a *scale in cents*: a product's list price, or
100 cents for one unit of money. Specs are frozen, hashable and validated on construction, so a
spec that exists can be sampled. The same random generator state gives the same sample, in any
process. Standard library and msgspec only.
"""

import math
import random
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import msgspec

from markets.engine.money import MAX_PRICE_CENTS

MAX_MULTIPLE = 100_000_000.0
"""Largest number a spec may hold: 10**8 units of money are the largest price, 10**10 cents."""

MAX_SIGMA = 2.0
"""A larger one would spread values over more decades than prices have."""

MAX_BANDS = 4
"""With more, the ways of dealing them to a dozen buyers are too many to average over."""

_NORMAL = NormalDist()
_EXTREME_SCORE = 8.2
"""Normal scores are kept within this distance of 0: beyond it Phi rounds to 0 or 1."""


class SpecError(ValueError):
    """A value or cost spec that cannot be used; the message is a sentence for its author."""


class BandsSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="bands"):
    """Buyers are dealt over bands, uniformly distributed inside each (the bands of a market).

    The buyers of one product are ranked at random and the bands dealt by rank, see
    `bands_by_rank`; with as many buyers as bands each band has exactly one buyer.
    """

    bands: tuple[tuple[float, float], ...] = ((0.40, 0.55), (0.65, 0.80), (1.00, 1.15))
    """(low, high) of each band, rising and not overlapping."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.bands) <= MAX_BANDS:
            raise SpecError(f"Bands need 1 to {MAX_BANDS} bands, not {len(self.bands)}.")
        edges = [edge for band in self.bands for edge in band]
        for edge in edges:
            _check_multiple(edge)
        if any(low > high for low, high in self.bands) or edges != sorted(edges):
            raise SpecError(f"Bands must rise and must not overlap: {self.bands!r}.")


class UniformSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="uniform"):
    """Uniform between `low` and `high`."""

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_multiple(self.low)
        _check_multiple(self.high)
        if self.low >= self.high:
            raise SpecError(f"The low end {self.low!r} must be below the high end {self.high!r}.")


class LogNormalSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="lognormal"):
    """exp of a normal variable: half of the values lie below `median`."""

    median: float
    sigma: float
    """Standard deviation of the logarithm."""

    def __post_init__(self) -> None:
        _check_multiple(self.median)
        if self.median <= 0:
            raise SpecError(f"The median must be positive, not {self.median!r}.")
        if not 0 < self.sigma <= MAX_SIGMA:
            raise SpecError(f"Sigma must be above 0 and at most {MAX_SIGMA}, not {self.sigma!r}.")


class ConstantSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="constant"):
    """Always `value`."""

    value: float

    def __post_init__(self) -> None:
        _check_multiple(self.value)


class FactorSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="factor"):
    """`base` times a number that is drawn once a negotiation, the same for every buyer and product.

    The factor is hidden: everybody knows its distribution and nobody its value, so that the buyers'
    replies tell about one another and no fixed sequence of prices fits. Bands under a factor of
    U[.6, 1.6] are the variant of the multi-buyer game that a constant price does not solve.
    """

    base: BandsSpec | UniformSpec
    factor: UniformSpec

    def __post_init__(self) -> None:
        if self.factor.low <= 0:
            raise SpecError(f"The common factor must be above 0, not from {self.factor.low!r} up.")
        if min(end for _, end in _pieces(self.base)) <= 0:
            raise SpecError("A band that is 0 stays 0 under every factor.")
        _check_multiple(_pieces(self.base)[-1][1] * self.factor.high)


class EmpiricalSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="empirical"):
    """A distribution counted on data, such as lowest price / list price over a catalogue."""

    quantiles: tuple[float, ...]
    """Quantiles at 0, 1/k, …, 1; the distribution function is linear between two of them."""

    def __post_init__(self) -> None:
        if len(self.quantiles) < 2:
            raise SpecError(f"An empirical prior needs two quantiles or more: {self.quantiles!r}.")
        for quantile_value in self.quantiles:
            _check_multiple(quantile_value)
        if list(self.quantiles) != sorted(self.quantiles):
            raise SpecError(f"Quantiles must not fall: {self.quantiles!r}.")


class LowestSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="lowest"):
    """A cost equal to the product's own lowest price; it has no distribution of its own.

    What a buyer may believe about it is an `EmpiricalSpec` over the catalogue.
    """


class HighestSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="highest"):
    """A value of `share` x max(highest price, list price) of the product itself (arXiv 2604.09855: 0.8).

    It is looked up and has no distribution of its own; what a seller may believe about it is an
    `EmpiricalSpec` over the catalogue.
    """

    share: float

    def __post_init__(self) -> None:
        _check_share(self.share)


class RangeSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="range"):
    """Values uniform on [`low` x L, H + `high` x (H - L)], L and H the product's lowest and highest price.

    arXiv 2604.16472 draws with `low` .4 and `high` .1. With one product on the table the interval
    itself is public; with several only the spread over the catalogue is.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_share(self.low)
        if not 0 <= self.high <= MAX_SHARE or self.low >= 1:
            raise SpecError(
                f"A range goes from below the lowest price (a share below 1) to above the highest, not {self!r}."
            )


class LowestRangeSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="lowest_range"):
    """Costs uniform on [`low` x L, `high` x L], L the product's own lowest price.

    arXiv 2604.16472 draws with .6 and .9. Public as for `RangeSpec`.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_share(self.low)
        _check_share(self.high)
        if self.low >= self.high:
            raise SpecError(f"The low end {self.low!r} must be below the high end {self.high!r}.")


ValueSpec = BandsSpec | UniformSpec | LogNormalSpec | ConstantSpec | EmpiricalSpec | FactorSpec
"""Anything with a distribution: buyers' values, and the public prior of a cost."""

ValueRule = ValueSpec | HighestSpec | RangeSpec
"""What a market draws buyers' values by: a distribution, or a rule that reads the product's prices."""

PiecewiseSpec = BandsSpec | UniformSpec | ConstantSpec | EmpiricalSpec
"""Those whose distribution function is linear between breakpoints, jumps allowed."""

CostSpec = LowestSpec | LowestRangeSpec | UniformSpec | ConstantSpec | EmpiricalSpec

MAX_SHARE = 10.0
"""Largest multiple of a product's own prices that a rule may hold."""


def _check_multiple(number: float) -> None:
    if not (math.isfinite(number) and 0 <= number <= MAX_MULTIPLE):
        raise SpecError(f"Numbers must lie between 0 and {MAX_MULTIPLE:.0f}, not {number!r}.")


def _check_share(number: float) -> None:
    if not (math.isfinite(number) and 0 < number <= MAX_SHARE):
        raise SpecError(f"A share of a price lies above 0 and at most at {MAX_SHARE:.0f}, not {number!r}.")


# Text form -------------------------------------------------------------------------------------

_VALUE_FORMS = "bands, uniform:LO:HI, lognormal:MEDIAN:SIGMA, constant:X or bands*uniform:LO:HI"
_RULE_FORMS = f"{_VALUE_FORMS}, highest:SHARE or range:LO:HI"
_COST_FORMS = "lowest, lowest:LO:HI, uniform:LO:HI or constant:X"
VALUE_FORMS = tuple(re.split(", | or ", _RULE_FORMS))
"""What `parse_value_rule` reads, as templates whose capitals are numbers; a form to fill in is made of these."""
COST_FORMS = tuple(re.split(", | or ", _COST_FORMS))
"""What `parse_cost_spec` reads, likewise."""
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{0,20})?|\.[0-9]{1,20}")
_MAX_SPEC_CHARS = 2_000


def parse_value_spec(text: str) -> ValueSpec:
    """Read a value spec: `bands`, `uniform:LO:HI`, `lognormal:MEDIAN:SIGMA`, `constant:X`.

    Also read: `BASE*uniform:LO:HI` for a hidden common factor on bands or a uniform spec,
    `bands:LO:HI:LO:HI…` for other than the usual bands and `empirical:Q:Q…`. Raises `SpecError`
    with a sentence for anything else.
    """
    if "*" in text:
        return _parse_factor(text)
    name, numbers = _split(text, forms=_VALUE_FORMS)
    try:
        match name, numbers:
            case "bands", []:
                return BandsSpec()
            case "bands", [_, *_] if len(numbers) % 2 == 0:
                return BandsSpec(bands=tuple(zip(numbers[::2], numbers[1::2], strict=True)))
            case "lognormal", [median, sigma]:
                return LogNormalSpec(median=median, sigma=sigma)
            case _:
                spec = _parse_shared(name, numbers)
    except SpecError as error:
        raise SpecError(f"{_shown(text)} is not a value spec. {error}") from None
    if spec is None:
        raise SpecError(f"{_shown(text)} is not a value spec; write {_VALUE_FORMS}.")
    return spec


def parse_value_rule(text: str) -> ValueRule:
    """Read what a market draws values by: a value spec, or `highest:SHARE` or `range:LO:HI`.

    Raises `SpecError` with a sentence for anything else.
    """
    name = text.strip().partition(":")[0].strip()
    if name not in ("highest", "range"):
        return parse_value_spec(text)
    _, numbers = _split(text, forms=_RULE_FORMS)
    try:
        match name, numbers:
            case "highest", [share]:
                return HighestSpec(share=share)
            case "range", [low, high]:
                return RangeSpec(low=low, high=high)
    except SpecError as error:
        raise SpecError(f"{_shown(text)} is not a rule for values. {error}") from None
    raise SpecError(f"{_shown(text)} is not a rule for values; write {_RULE_FORMS}.")


def parse_cost_spec(text: str) -> CostSpec:
    """Read a cost spec: `lowest`, `lowest:LO:HI`, `uniform:LO:HI`, `constant:X` (and `empirical:Q:Q…`).

    Raises `SpecError` with a sentence for anything else.
    """
    name, numbers = _split(text, forms=_COST_FORMS)
    try:
        match name, numbers:
            case "lowest", []:
                return LowestSpec()
            case "lowest", [low, high]:
                return LowestRangeSpec(low=low, high=high)
        spec = _parse_shared(name, numbers)
    except SpecError as error:
        raise SpecError(f"{_shown(text)} is not a cost spec. {error}") from None
    if spec is None:
        raise SpecError(f"{_shown(text)} is not a cost spec; write {_COST_FORMS}.")
    return spec


def format_spec(spec: ValueRule | CostSpec) -> str:
    """The text that `parse_value_rule` or `parse_cost_spec` reads back as an equal spec."""
    match spec:
        case BandsSpec():
            if spec == BandsSpec():
                return "bands"
            return ":".join(["bands", *(_plain(edge) for band in spec.bands for edge in band)])
        case UniformSpec():
            return f"uniform:{_plain(spec.low)}:{_plain(spec.high)}"
        case LogNormalSpec():
            return f"lognormal:{_plain(spec.median)}:{_plain(spec.sigma)}"
        case ConstantSpec():
            return f"constant:{_plain(spec.value)}"
        case EmpiricalSpec():
            return ":".join(["empirical", *(_plain(value) for value in spec.quantiles)])
        case FactorSpec():
            return f"{format_spec(spec.base)}*{format_spec(spec.factor)}"
        case HighestSpec():
            return f"highest:{_plain(spec.share)}"
        case RangeSpec():
            return f"range:{_plain(spec.low)}:{_plain(spec.high)}"
        case LowestSpec():
            return "lowest"
        case LowestRangeSpec():
            return f"lowest:{_plain(spec.low)}:{_plain(spec.high)}"


def _parse_factor(text: str) -> FactorSpec:
    base, _, factor = text.partition("*")
    try:
        match parse_value_spec(base), parse_value_spec(factor):
            case (BandsSpec() | UniformSpec() as inner, UniformSpec() as outer):
                return FactorSpec(base=inner, factor=outer)
    except SpecError as error:
        raise SpecError(f"{_shown(text)} is not a value spec. {error}") from None
    raise SpecError(
        f"{_shown(text)} is not a value spec: a common factor is uniform and stands behind bands or a uniform "
        "spec, as in bands*uniform:0.6:1.6."
    )


def _parse_shared(name: str, numbers: list[float]) -> UniformSpec | ConstantSpec | EmpiricalSpec | None:
    match name, numbers:
        case "uniform", [low, high]:
            return UniformSpec(low=low, high=high)
        case "constant", [value]:
            return ConstantSpec(value=value)
        case "empirical", [_, _, *_]:
            return EmpiricalSpec(quantiles=tuple(numbers))
        case _:
            return None


def _split(text: str, *, forms: str) -> tuple[str, list[float]]:
    name, *parts = text.strip().split(":")
    if len(text) > _MAX_SPEC_CHARS:
        raise SpecError(f"{_shown(text)} is longer than {_MAX_SPEC_CHARS} characters; write {forms}.")
    for part in parts:
        if not _NUMBER.fullmatch(part.strip()):
            raise SpecError(f"{_shown(text)} has {_shown(part)} where a number such as 0.8 belongs; write {forms}.")
    return name.strip(), [float(part) for part in parts]


def _plain(number: float) -> str:
    text = format(Decimal(repr(float(number))), "f")
    return text[:-2] if text.endswith(".0") else text


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")


# Distribution functions ------------------------------------------------------------------------


class Knots(msgspec.Struct, frozen=True):
    """A piecewise-linear distribution function by its breakpoints, jumps allowed."""

    at: tuple[float, ...]
    """Breakpoints, rising."""
    below: tuple[float, ...]
    """P(V < x) at each breakpoint."""
    upto: tuple[float, ...]
    """P(V <= x) at each breakpoint."""


@lru_cache(maxsize=512)
def knots(spec: PiecewiseSpec) -> Knots:
    """Breakpoints of a piecewise-linear distribution function."""
    pieces = _pieces(spec)
    at = sorted({edge for low, high in pieces for edge in (low, high)})
    below = [_mean(_piece_share(piece, x, inclusive=False) for piece in pieces) for x in at]
    upto = [_mean(_piece_share(piece, x, inclusive=True) for piece in pieces) for x in at]
    below[0], upto[-1] = 0.0, 1.0
    return Knots(tuple(at), tuple(below), tuple(upto))


def cdf(spec: ValueSpec, x: float) -> float:
    """P(V <= x); `x` in multiples of the scale."""
    return _distribution(spec, x, inclusive=True)


def below(spec: ValueSpec, x: float) -> float:
    """P(V < x): the chance that a threshold buyer refuses a price of `x`."""
    return _distribution(spec, x, inclusive=False)


def quantile(spec: ValueSpec, u: float) -> float:
    """The smallest x with P(V <= x) >= u, for u in [0, 1]; `low` at 0, `high` at 1."""
    if not 0 <= u <= 1:
        raise ValueError(f"A probability lies in [0, 1], not {u!r}.")
    if isinstance(spec, LogNormalSpec):
        if u == 0:
            return 0.0
        return math.inf if u == 1 else spec.median * math.exp(spec.sigma * _NORMAL.inv_cdf(u))
    if isinstance(spec, FactorSpec):
        return _factor_quantile(spec, u)
    table = knots(spec)
    index = bisect_left(table.upto, u)
    if index == 0 or u > table.below[index]:
        return table.at[index]
    start, end = table.upto[index - 1], table.below[index]
    left, right = table.at[index - 1], table.at[index]
    return min(right, left + (right - left) * (u - start) / (end - start))


def low(spec: ValueSpec) -> float:
    """Lower end of the support."""
    return quantile(spec, 0.0)


def high(spec: ValueSpec) -> float:
    """Upper end of the support; infinite for a lognormal."""
    return quantile(spec, 1.0)


def ladder_top(spec: ValueSpec) -> float:
    """Where a linear ladder starts: the highest value, or two sigma up for a lognormal."""
    if isinstance(spec, LogNormalSpec):
        return spec.median * math.exp(2 * spec.sigma)
    return high(spec)


def _distribution(spec: ValueSpec, x: float, *, inclusive: bool) -> float:
    if isinstance(spec, LogNormalSpec):
        return _NORMAL.cdf((math.log(x) - math.log(spec.median)) / spec.sigma) if x > 0 else 0.0
    if isinstance(spec, FactorSpec):
        return _mean(_factor_share(piece, spec.factor, x) for piece in _pieces(spec.base))
    table = knots(spec)
    index = bisect_right(table.at, x) - 1
    if index < 0:
        return 0.0
    if x == table.at[index]:
        return table.upto[index] if inclusive else table.below[index]
    if index == len(table.at) - 1:
        return 1.0
    left, right = table.at[index], table.at[index + 1]
    start, end = table.upto[index], table.below[index + 1]
    return start + (end - start) * (x - left) / (right - left)


def _pieces(spec: PiecewiseSpec) -> list[tuple[float, float]]:
    match spec:
        case BandsSpec():
            return list(spec.bands)
        case UniformSpec():
            return [(spec.low, spec.high)]
        case ConstantSpec():
            return [(spec.value, spec.value)]
        case EmpiricalSpec():
            return list(zip(spec.quantiles[:-1], spec.quantiles[1:], strict=True))


def _piece_share(piece: tuple[float, float], x: float, *, inclusive: bool) -> float:
    start, end = piece
    if x <= start:
        return 1.0 if inclusive and x == start == end else 0.0
    return 1.0 if x >= end else (x - start) / (end - start)


def _factor_share(piece: tuple[float, float], factor: UniformSpec, x: float) -> float:
    """P(F Y <= x) for Y uniform on `piece` and F uniform: the mean over F of P(Y <= x / F), in closed form."""
    start, end = piece
    if x <= start * factor.low:
        return 0.0
    if x >= end * factor.high:
        return 1.0
    from_, to = factor.low, factor.high
    covered = min(max(x / end, from_), to)
    reached = to if start == 0 else min(max(x / start, from_), to)
    partly = (
        (x * math.log(reached / covered) - start * (reached - covered)) / (end - start) if reached > covered else 0.0
    )
    return min(max((covered - from_ + partly) / (to - from_), 0.0), 1.0)


@lru_cache(maxsize=4096)
def _factor_quantile(spec: FactorSpec, u: float) -> float:
    """By bisection, to the last digit: the distribution function has no inverse in closed form."""
    pieces = _pieces(spec.base)
    left, right = pieces[0][0] * spec.factor.low, pieces[-1][1] * spec.factor.high
    if u in (0, 1):
        return right if u else left
    while (middle := (left + right) / 2) not in (left, right):
        left, right = (left, middle) if cdf(spec, middle) >= u else (middle, right)
    return right


def _mean(shares: Iterable[float]) -> float:
    listed = list(shares)
    return math.fsum(listed) / len(listed)


# Samples ---------------------------------------------------------------------------------------


def bands_by_rank(*, bands: int, buyers: int) -> tuple[int, ...]:
    """Band index of each buyer by rank, lowest first, when `buyers` are dealt over `bands`.

    The bands get as equal numbers of buyers as possible and what is left over goes to the top
    ones, so two buyers or more always include the top band: 3 bands give 2 buyers (1, 2),
    3 buyers (0, 1, 2), 4 buyers (0, 1, 2, 2). A single buyer gets any band, equally likely, and
    has no entry here.
    """
    if buyers < 2:
        raise ValueError("A single buyer's band is drawn, not dealt by rank.")
    return tuple(bands - 1 - (buyers - 1 - rank) * bands // buyers for rank in range(buyers))


def drawn_spec(
    rule: ValueRule | CostSpec, *, list_price: float, lowest_price: float, highest_price: float
) -> ValueSpec:
    """The distribution that `rule` draws from for one product; prices in multiples of the scale."""
    match rule:
        case HighestSpec():
            return ConstantSpec(value=rule.share * max(highest_price, list_price))
        case RangeSpec():
            return UniformSpec(
                low=rule.low * lowest_price, high=highest_price + rule.high * (highest_price - lowest_price)
            )
        case LowestSpec():
            return ConstantSpec(value=lowest_price)
        case LowestRangeSpec():
            return UniformSpec(low=rule.low * lowest_price, high=rule.high * lowest_price)
        case _:
            return rule


def share_cents(share: float, *, of_cents: int) -> int:
    """`share` of an amount, rounded up to the next cent, exactly.

    Rounded up, it exceeds a cost in whole cents if and only if the unrounded share does: of the 930
    products of AmazonHistoryPrice six would lose their gains from trade to the nearest cent.
    """
    return min(math.ceil(Decimal(repr(share)) * of_cents), MAX_PRICE_CENTS)


def sample_values(
    *,
    spec: ValueSpec | tuple[ValueSpec, ...],
    rho: float,
    buyers: int,
    scales_cents: tuple[int, ...],
    within: Literal["buyers", "products"],
    rng: random.Random,
) -> tuple[tuple[int, ...], ...]:
    """Draw values in cents, one row per buyer and one column per product.

    `spec` may be a spec per product, none of them bands or with a common factor.
    Normal scores have correlation `rho` in [0, 1] (a one-factor Gaussian copula) across the
    buyers of one product (`within="buyers"`), or across the products of one buyer
    (`within="products"`). Bands are dealt per product by the rank of the scores and the place
    inside the band is drawn independently: a factor common to the buyers of one product cannot
    change their ranks and so changes nothing, a factor of one buyer makes it rank alike on every
    product. Values are rounded to the nearest cent and kept between 1 and `MAX_PRICE_CENTS`, so
    that a party with any value can name a price it would pay. All chance comes from `rng`.
    """
    if not 0 <= rho <= 1:
        raise SpecError(f"The correlation rho must lie between 0 and 1, not {rho!r}.")
    products = len(scales_cents)
    common = [_score(rng) for _ in range(products if within == "buyers" else buyers)]
    scores = [
        [
            math.sqrt(rho) * common[product if within == "buyers" else buyer] + math.sqrt(1 - rho) * _score(rng)
            for product in range(products)
        ]
        for buyer in range(buyers)
    ]
    base, factor = spec, 1.0
    if isinstance(spec, FactorSpec):
        base, factor = spec.base, spec.factor.low + (spec.factor.high - spec.factor.low) * rng.random()
    if isinstance(base, BandsSpec):
        multiples = _deal_bands(base, scores, rng)
    else:
        specs = base if isinstance(base, tuple) else (base,) * products
        multiples = [[_at_score(each, score) for each, score in zip(specs, row, strict=True)] for row in scores]
    if factor != 1.0:
        multiples = [[factor * multiple for multiple in row] for row in multiples]
    return tuple(
        tuple(_cents(multiple, scale) for multiple, scale in zip(row, scales_cents, strict=True)) for row in multiples
    )


def _deal_bands(spec: BandsSpec, scores: list[list[float]], rng: random.Random) -> list[list[float]]:
    multiples = [[0.0] * len(row) for row in scores]
    for product in range(len(scores[0])):
        ranked = sorted(range(len(scores)), key=lambda buyer: (scores[buyer][product], buyer))
        if len(scores) == 1:
            score = max(scores[0][product], -_EXTREME_SCORE)
            dealt: tuple[int, ...] = (math.ceil(_NORMAL.cdf(score) * len(spec.bands)) - 1,)
        else:
            dealt = bands_by_rank(bands=len(spec.bands), buyers=len(scores))
        for buyer, band in zip(ranked, dealt, strict=True):
            start, end = spec.bands[band]
            multiples[buyer][product] = start + (end - start) * rng.random()
    return multiples


def _score(rng: random.Random) -> float:
    return _NORMAL.inv_cdf(rng.random() or 2.0**-54)


def _at_score(spec: ValueSpec, score: float) -> float:
    if isinstance(spec, LogNormalSpec):
        return spec.median * math.exp(spec.sigma * score)
    return quantile(spec, _NORMAL.cdf(score))


def _cents(multiple: float, scale_cents: int) -> int:
    return max(1, min(int(multiple * scale_cents + 0.5), MAX_PRICE_CENTS))


# Joint priors ----------------------------------------------------------------------------------


class Marginal(msgspec.Struct, frozen=True, kw_only=True):
    """One buyer's value given what a component fixes: its band, or the common factor."""

    spec: ValueSpec
    factor: float = 0.0
    """Normal score of the common factor."""
    rho: float = 0.0
    """Correlation of the buyer's score with another's; 0 where the factor says nothing."""

    def below(self, x: float) -> float:
        """P(V < x) given the component."""
        return _given_factor(below(self.spec, x), self)

    def cdf(self, x: float) -> float:
        """P(V <= x) given the component."""
        return _given_factor(cdf(self.spec, x), self)


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a joint prior, inside which the buyers' values are independent."""

    weight: float
    """Probability of the case; the weights of a prior sum to 1."""
    marginals: tuple[Marginal, ...]
    """Per buyer."""


def components(*, spec: ValueSpec, rho: float, buyers: int) -> tuple[Component, ...]:
    """The joint prior of the buyers' values for one product, as a mixture.

    Independent values are one component, correlated ones a component per node of the common
    factor (`factor_nodes`), bands one per distinct way of dealing them: 6 for three buyers, 560
    for eight, 34,650 for twelve; under a hidden common factor as many for each of
    `common_factors`. It matches `sample_values(within="buyers")`, and for `within="products"`
    each product's column at rho 0.
    """
    if isinstance(spec, FactorSpec):
        return tuple(
            msgspec.structs.replace(part, weight=part.weight / FACTOR_CELLS)
            for factor in common_factors(spec)
            for part in components(spec=_scaled(spec.base, factor), rho=0.0, buyers=buyers)
        )
    if isinstance(spec, BandsSpec):
        return _dealings(spec, buyers)
    if rho == 0 or buyers == 1:
        return (Component(weight=1.0, marginals=(Marginal(spec=spec),) * buyers),)
    return tuple(
        Component(weight=weight, marginals=(Marginal(spec=spec, factor=node, rho=rho),) * buyers)
        for node, weight in factor_nodes(rho)
    )


FACTOR_CELLS = 48
"""Equal parts that the interval of a hidden common factor is cut into where it is averaged over."""


def common_factors(spec: FactorSpec) -> tuple[float, ...]:
    """Equally likely values that stand for the hidden factor: the middles of `FACTOR_CELLS` equal parts."""
    low, width = spec.factor.low, spec.factor.high - spec.factor.low
    return tuple(low + width * (cell + 0.5) / FACTOR_CELLS for cell in range(FACTOR_CELLS))


def _scaled(base: BandsSpec | UniformSpec, factor: float) -> BandsSpec | UniformSpec:
    if isinstance(base, UniformSpec):
        return UniformSpec(low=base.low * factor, high=base.high * factor)
    return BandsSpec(bands=tuple((start * factor, end * factor) for start, end in base.bands))


@lru_cache(maxsize=64)
def factor_nodes(rho: float) -> tuple[tuple[float, float], ...]:
    """(normal score, weight) pairs that average over a common factor of correlation `rho`.

    The trapezoidal rule, which converges geometrically on Gaussian integrands (Trefethen and
    Weideman 2014) and whose step can follow the width sqrt((1 - rho) / rho) of the conditional
    distribution functions, where Gauss-Hermite nodes thin out. Weights sum to 1.
    """
    if not 0 <= rho < 1:
        raise SpecError(f"The correlation rho must lie in [0, 1), not {rho!r}.")
    reach = 6.5
    width = math.sqrt((1 - rho) / rho) if rho > 0 else math.inf
    half = min(math.ceil(reach / min(0.25, 0.8 * width)), 512)
    nodes = [reach * index / half for index in range(-half, half + 1)]
    densities = [math.exp(-node * node / 2) for node in nodes]
    total = math.fsum(densities)
    return tuple((node, density / total) for node, density in zip(nodes, densities, strict=True))


def _dealings(spec: BandsSpec, buyers: int) -> tuple[Component, ...]:
    inside = [
        Marginal(spec=UniformSpec(low=start, high=end) if start < end else ConstantSpec(value=start))
        for start, end in spec.bands
    ]
    if buyers == 1:
        dealt: list[tuple[int, ...]] = [(band,) for band in range(len(inside))]
    else:
        dealt = list(_arrangements(bands_by_rank(bands=len(inside), buyers=buyers)))
    return tuple(Component(weight=1 / len(dealt), marginals=tuple(inside[band] for band in bands)) for bands in dealt)


def _arrangements(items: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Distinct orders of `items`, in lexicographic order."""
    if not items:
        yield ()
    for first in sorted(set(items)):
        index = items.index(first)
        for rest in _arrangements(items[:index] + items[index + 1 :]):
            yield (first, *rest)


def _given_factor(share: float, marginal: Marginal) -> float:
    if marginal.rho == 0 or share in (0.0, 1.0):
        return share
    score = _NORMAL.inv_cdf(share) - math.sqrt(marginal.rho) * marginal.factor
    return _NORMAL.cdf(score / math.sqrt(1 - marginal.rho))
