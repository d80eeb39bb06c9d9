"""How each seat negotiated, read off one event log in one pass.

Here: `SeatFigures`, what is kept with every seat of an episode, and `of_seats`, which computes it.
Not here: what an episode came to (`metrics.outcome`), and pooling over many episodes (`metrics`).

Contract: a function of scenario and log alone, so anything stored can be computed again. Undefined
is None. Names and definitions follow the glossary; where a paper leaves a choice open the field
says which reading is ours. The sources are arXiv 2607.05863 (several buyers: coverage, fixation),
2609.33289 (catalogue: matches), 2604.16472 (openings) and Faratin, Sierra and Jennings (1998)
(concession).
"""

import math
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from markets.engine import optimum
from markets.engine.metrics import Outcome
from markets.engine.money import Cents
from markets.engine.protocol import (
    SELLER,
    LogEntry,
    MessageSent,
    MoveRefused,
    OfferAccepted,
    OfferMade,
    OfferRejected,
    Party,
    PartyLeft,
    RefusalCode,
    Role,
    buyer_party,
)
from markets.engine.scenarios import Mechanism, Scenario, SellerTurns

MAX_PATH = 12
"""Own offers of which the concession path is kept."""


class ViolationType(StrEnum):
    """What a message did wrong."""

    FORMAT = "format"
    """It could not be read as a move, or carried a price or a text that none may carry."""
    RESERVATION = "reservation"
    """It bound its sender beyond its own reservation value, or tried to (below cost, above value)."""
    SOLD_OUT = "sold_out"
    """It was about a product of which no unit is left."""
    BUYER = "buyer"
    """It was for a buyer that does not exist, has left, or has bought."""
    ACCEPT = "accept"
    """It answered an offer that does not stand, or its own."""
    BUDGET = "budget"
    """It came after the last turn."""
    ORDER = "order"
    """Anything else: out of turn, an unknown product, a wait where there is no clock."""


_TYPE_OF_CODE: dict[str, ViolationType] = {
    RefusalCode.MALFORMED.value: ViolationType.FORMAT,
    RefusalCode.EMPTY_MESSAGE.value: ViolationType.FORMAT,
    RefusalCode.TALK_TOO_LONG.value: ViolationType.FORMAT,
    RefusalCode.TALK_NOT_TEXT.value: ViolationType.FORMAT,
    RefusalCode.PRICE_OUT_OF_RANGE.value: ViolationType.FORMAT,
    RefusalCode.BEYOND_RESERVATION.value: ViolationType.RESERVATION,
    RefusalCode.SOLD_OUT.value: ViolationType.SOLD_OUT,
    RefusalCode.UNKNOWN_THREAD.value: ViolationType.BUYER,
    RefusalCode.THREAD_CLOSED.value: ViolationType.BUYER,
    RefusalCode.ALREADY_SERVED.value: ViolationType.BUYER,
    RefusalCode.UNKNOWN_OFFER.value: ViolationType.ACCEPT,
    RefusalCode.OFFER_GONE.value: ViolationType.ACCEPT,
    RefusalCode.OWN_OFFER.value: ViolationType.ACCEPT,
    RefusalCode.TURNS_USED.value: ViolationType.BUDGET,
}


def violation_type(code: str) -> ViolationType:
    """The type of a refused move, by its refusal code; a code of a later protocol is `ORDER`."""
    return _TYPE_OF_CODE.get(code, ViolationType.ORDER)


class SeatFigures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One seat of one episode. Amounts in cents, ratios and rates as fractions, counts of messages."""

    own_value_cents: Cents
    """Own reservation value: of the product of the own first deal, else of the most promising one."""
    other_value_cents: Cents
    """The counterpart's for the same product: of the first deal's partner, else of the one with most to gain."""
    list_price_cents: Cents
    """List price of that product: the public scale of both."""
    joint_cents: Cents
    """What the surplus share is out of: first best for the seller, the pair's value - cost for a buyer."""

    messages: int = 0
    """Messages sent, refused ones included; openings made by the market are nobody's."""
    offers: int = 0
    """Binding offers made."""
    distinct_offers: int = 0
    """Different prices among them (arXiv 2604.16472: price discrimination)."""
    opening_cents: Cents | None = None
    """Price of the own first offer."""
    opening_ratio: float | None = None
    """That price / own reservation value of the product; a seller's 1 asks exactly its cost."""
    path: tuple[float, ...] = ()
    """Part of the way from the first offer to the own limit given up after own offer 1, 2, … (first 0).

    Offers on one product in one thread make a series; the mean over the series that got so far.
    """
    concession_rate: float | None = None
    """Mean own move towards the other side / (opening - reservation), moves within one series.

    None without two offers in a series that opened inside the own limit.
    """
    patience: float | None = None
    """Part of the turn budget used when the own first deal was made; None without one.

    The seller's turns where it has a number of them, else rounds; above 1 where rounds bind nobody.
    """
    left: bool = False
    """Whether it walked away."""

    deals: int = 0
    price_cents: Cents | None = None
    """Of the own first deal."""
    loss_offers: int = 0
    """Own offers that would lose money: an episode with one of them overshoots."""
    loss_deals: int = 0
    """Own deals that lost money."""
    induced_loss_deals: int = 0
    """Own deals in which the other side lost money."""

    format_violations: int = 0
    reservation_violations: int = 0
    sold_out_violations: int = 0
    buyer_violations: int = 0
    accept_violations: int = 0
    budget_violations: int = 0
    order_violations: int = 0

    coverage: float | None = None
    """Buyers written to up to the first deal / buyers. Seller with several buyers; arXiv 2607.05863."""
    probe_entropy: float | None = None
    """Entropy of the seller's messages over its buyers / log of their number: 1 is even, 0 is one buyer."""
    fixation_rate: float | None = None
    """Seller's turns sent to the currently highest bidder / its turns after the first.

    The highest bidder is the one still there whose latest bid is the largest part of the list price;
    a tie counts. INFERRED for several products.
    """
    top_deals: int = 0
    """Deals with a buyer of the highest value for the product, ties included."""
    matched_pairs: int | None = None
    """Pairs made that are in an optimal matching; among equals the one with the most of them."""
    best_pairs: int | None = None
    """Pairs of an optimal matching."""
    random_welfare_cents: float | None = None
    """Expected welfare of a matching drawn by lot in which no pair trades at a loss."""

    @property
    def violations(self) -> int:
        """Of all types."""
        return (
            self.format_violations
            + self.reservation_violations
            + self.sold_out_violations
            + self.buyer_violations
            + self.accept_violations
            + self.budget_violations
            + self.order_violations
        )

    def violations_of(self, kind: ViolationType) -> int:
        """Of one type."""
        return int(getattr(self, f"{kind.value}_violations"))


_decoder = msgspec.json.Decoder(SeatFigures, strict=True)


def decode(data: bytes | str) -> SeatFigures:
    """Read stored figures back. Raises `msgspec.ValidationError` when they are none."""
    return _decoder.decode(data)


def turn_budget(mechanism: Mechanism) -> int:
    """Messages of one side where there are rounds; the seller's for all buyers in seller turns."""
    return mechanism.turns if isinstance(mechanism, SellerTurns) else mechanism.rounds


class _Series:
    """Own offers on one product in one thread."""

    __slots__ = ("distance", "first", "given", "last", "moved", "moves")

    def __init__(self, price: int, limit: int, *, seller: bool) -> None:
        self.first = self.last = price
        self.distance = price - limit if seller else limit - price
        """From the opening to the own limit; not positive where the opening was at it or beyond."""
        self.moves = 0
        self.moved = 0
        self.given = [0.0]


class _Seat:
    """Running sums of one seat."""

    __slots__ = (
        "deals",
        "induced",
        "left",
        "loss_deals",
        "loss_offers",
        "messages",
        "opening",
        "patience",
        "prices",
        "refused",
        "reservation",
        "series",
    )

    def __init__(self) -> None:
        self.messages = 0
        self.prices: list[int] = []
        self.opening: tuple[int, int] | None = None
        self.series: dict[tuple[int, int], _Series] = {}
        self.deals: list[OfferAccepted] = []
        self.patience: float | None = None
        self.left = False
        self.loss_offers = self.loss_deals = self.induced = 0
        self.reservation = 0
        self.refused: dict[ViolationType, int] = {}


class _Probes:
    """Whom a seller with several buyers wrote to."""

    __slots__ = ("after_first", "before_deal", "bids", "counts", "gone", "to_highest")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.before_deal: int | None = None
        self.bids: dict[int, float] = {}
        self.gone: set[int] = set()
        self.after_first = self.to_highest = 0

    def message(self, buyer: int) -> None:
        """The seller spends a turn on `buyer`."""
        if self.counts:
            self.after_first += 1
            bids = [bid for other, bid in self.bids.items() if other not in self.gone]
            if bids and buyer not in self.gone and self.bids.get(buyer, -1.0) >= max(bids):
                self.to_highest += 1
        self.counts[buyer] = self.counts.get(buyer, 0) + 1

    def deal(self, buyer: int) -> None:
        if self.before_deal is None:
            self.before_deal = len(self.counts)
        self.gone.add(buyer)


def of_seats(scenario: Scenario, log: Sequence[LogEntry], outcome: Outcome) -> dict[Party, SeatFigures]:
    """The figures of every seat. `outcome` is `metrics.outcome(scenario, log)`, which callers have."""
    costs, values = scenario.seller_values_cents, scenario.buyer_values_cents
    buyers = len(values)
    seats = [_Seat() for _ in range(buyers + 1)]
    seller = seats[0]
    seller_turns = isinstance(scenario.mechanism, SellerTurns)
    budget = turn_budget(scenario.mechanism)
    probes = _Probes() if buyers > 1 else None
    for entry in log:
        event = entry.event
        if isinstance(event, OfferMade):
            by_seller = event.by is Role.SELLER
            if not event.opening:
                seat = seller if by_seller else seats[event.buyer]
                seat.messages += 1
                limit = costs[event.product] if by_seller else values[event.buyer - 1][event.product]
                _offer(seat, event, limit, seller=by_seller)
                if by_seller and probes is not None:
                    probes.message(event.buyer)
            if not by_seller and probes is not None:
                probes.bids[event.buyer] = event.price_cents / scenario.products[event.product].list_price_cents
        elif isinstance(event, OfferAccepted):
            by_seller = event.by is Role.SELLER
            buyer = seats[event.buyer]
            (seller if by_seller else buyer).messages += 1
            if by_seller and probes is not None:
                probes.message(event.buyer)
            if probes is not None:
                probes.deal(event.buyer)
            used = seller.messages if seller_turns else max(seller.messages, buyer.messages)
            _deal(seller, buyer, event, costs[event.product], values[event.buyer - 1][event.product], used / budget)
        elif isinstance(event, MessageSent | OfferRejected):
            if event.by is Role.SELLER:
                seller.messages += 1
                if probes is not None:
                    probes.message(event.buyer)
            else:
                seats[event.buyer].messages += 1
        elif isinstance(event, MoveRefused):
            seat = seller if event.by is Role.SELLER else seats[event.buyer]
            seat.messages += 1
            kind_of = violation_type(event.code)
            seat.refused[kind_of] = seat.refused.get(kind_of, 0) + 1
        elif isinstance(event, PartyLeft):
            if event.by is Role.SELLER:
                seller.left = True
            else:
                seats[event.buyer].left = True
                if probes is not None:
                    probes.gone.add(event.buyer)
    figures = {SELLER: _seller_figures(scenario, seller, outcome, probes)}
    for number in range(1, buyers + 1):
        figures[buyer_party(number)] = _buyer_figures(scenario, number, seats[number])
    return figures


def _offer(seat: _Seat, event: OfferMade, limit: int, *, seller: bool) -> None:
    price = event.price_cents
    if seat.opening is None:
        seat.opening = (price, limit)
    seat.prices.append(price)
    if price < limit if seller else price > limit:
        seat.loss_offers += 1
        seat.reservation += 1
    key = (event.buyer, event.product)
    series = seat.series.get(key)
    if series is None:
        seat.series[key] = _Series(price, limit, seller=seller)
        return
    series.moves += 1
    step, way = (series.last - price, series.first - price) if seller else (price - series.last, price - series.first)
    series.moved += step
    series.last = price
    if series.distance > 0:
        series.given.append(way / series.distance)


def _deal(seller: _Seat, buyer: _Seat, event: OfferAccepted, cost: int, value: int, used: float) -> None:
    price = event.price_cents
    for seat in (seller, buyer):
        if not seat.deals:
            seat.patience = used
        seat.deals.append(event)
    if price < cost:
        seller.loss_deals += 1
        buyer.induced += 1
        seller.reservation += event.by is Role.SELLER
    if price > value:
        buyer.loss_deals += 1
        seller.induced += 1
        buyer.reservation += event.by is Role.BUYER


def _figures(
    seat: _Seat,
    *,
    own_value_cents: int,
    other_value_cents: int,
    list_price_cents: int,
    joint_cents: int,
    probing: tuple[float | None, float | None, float | None] = (None, None, None),
    top_deals: int = 0,
    matches: tuple[int | None, int | None] = (None, None),
    random_welfare: float | None = None,
) -> SeatFigures:
    opening_cents, opening_ratio = None, None
    if seat.opening is not None:
        opening_cents, limit = seat.opening
        opening_ratio = opening_cents / limit if limit > 0 else None
    inside = [series for series in seat.series.values() if series.distance > 0]
    moves = sum([series.moves for series in inside])
    moved = sum([series.moved / series.distance for series in inside])
    refused = seat.refused
    return SeatFigures(
        own_value_cents=own_value_cents,
        other_value_cents=other_value_cents,
        list_price_cents=list_price_cents,
        joint_cents=joint_cents,
        messages=seat.messages,
        offers=len(seat.prices),
        distinct_offers=len(set(seat.prices)),
        opening_cents=opening_cents,
        opening_ratio=opening_ratio,
        path=_path(inside),
        concession_rate=moved / moves if moves else None,
        patience=seat.patience,
        left=seat.left,
        deals=len(seat.deals),
        price_cents=seat.deals[0].price_cents if seat.deals else None,
        loss_offers=seat.loss_offers,
        loss_deals=seat.loss_deals,
        induced_loss_deals=seat.induced,
        format_violations=refused.get(ViolationType.FORMAT, 0),
        reservation_violations=refused.get(ViolationType.RESERVATION, 0) + seat.reservation,
        sold_out_violations=refused.get(ViolationType.SOLD_OUT, 0),
        buyer_violations=refused.get(ViolationType.BUYER, 0),
        accept_violations=refused.get(ViolationType.ACCEPT, 0),
        budget_violations=refused.get(ViolationType.BUDGET, 0),
        order_violations=refused.get(ViolationType.ORDER, 0),
        coverage=probing[0],
        probe_entropy=probing[1],
        fixation_rate=probing[2],
        top_deals=top_deals,
        matched_pairs=matches[0],
        best_pairs=matches[1],
        random_welfare_cents=random_welfare,
    )


def _path(inside: list[_Series]) -> tuple[float, ...]:
    if len(inside) == 1:
        return tuple([round(part, 4) for part in inside[0].given[:MAX_PATH]])
    longest = max((len(series.given) for series in inside), default=0)
    path = []
    for place in range(min(longest, MAX_PATH)):
        reached = [series.given[place] for series in inside if len(series.given) > place]
        path.append(round(sum(reached) / len(reached), 4))
    return tuple(path)


def _seller_figures(scenario: Scenario, seat: _Seat, outcome: Outcome, probes: _Probes | None) -> SeatFigures:
    costs, values = scenario.seller_values_cents, scenario.buyer_values_cents
    if outcome.deals:
        buyer, product = outcome.deals[0].buyer - 1, outcome.deals[0].product
    elif probes is None and len(costs) == 1:
        buyer, product = 0, 0
    else:
        buyer, product = max(
            ((b, p) for b in range(len(values)) for p in range(len(costs))),
            key=lambda pair: values[pair[0]][pair[1]] - costs[pair[1]],
        )
    own, other = costs[product], values[buyer][product]
    listed = scenario.products[product].list_price_cents
    if probes is None:
        return _figures(
            seat,
            own_value_cents=own,
            other_value_cents=other,
            list_price_cents=listed,
            joint_cents=outcome.first_best_cents,
        )
    return _figures(
        seat,
        own_value_cents=own,
        other_value_cents=other,
        list_price_cents=listed,
        joint_cents=outcome.first_best_cents,
        probing=_probing(probes, len(values)),
        top_deals=sum(deal.pair_joint_cents == deal.seller_joint_cents for deal in outcome.deals),
        matches=_matches(scenario, outcome),
        random_welfare=random_welfare_cents(scenario),
    )


def _buyer_figures(scenario: Scenario, number: int, seat: _Seat) -> SeatFigures:
    costs, own = scenario.seller_values_cents, scenario.buyer_values_cents[number - 1]
    if seat.deals:
        product = seat.deals[0].product
    elif len(costs) == 1:
        product = 0
    else:
        product = max(range(len(costs)), key=lambda p: own[p] - costs[p])
    return _figures(
        seat,
        own_value_cents=own[product],
        other_value_cents=costs[product],
        list_price_cents=scenario.products[product].list_price_cents,
        joint_cents=own[product] - costs[product],
    )


def _probing(probes: _Probes, buyers: int) -> tuple[float | None, float | None, float | None]:
    """Coverage, entropy and fixation."""
    counts = probes.counts.values()
    total = sum(counts)
    if not total:
        return None, None, None
    reached = probes.before_deal if probes.before_deal is not None else len(counts)
    entropy = abs(sum(count / total * math.log(count / total) for count in counts))
    fixation = probes.to_highest / probes.after_first if probes.after_first else None
    return reached / buyers, entropy / math.log(buyers), fixation


def _matches(scenario: Scenario, outcome: Outcome) -> tuple[int, int]:
    """(made pairs that are in an optimal matching, pairs in it).

    Of several optimal matchings the one that holds most of the made pairs: gains are scaled up so
    that a made pair can break ties and nothing else.
    """
    costs, values = scenario.seller_values_cents, scenario.buyer_values_cents
    made = {(deal.buyer - 1, deal.product) for deal in outcome.deals}
    scale = len(values) + 1
    surplus = tuple(
        tuple(
            (value - cost) * scale + ((b, p) in made) if value > cost else 0
            for p, (value, cost) in enumerate(zip(own, costs, strict=True))
        )
        for b, own in enumerate(values)
    )
    _, pairs = optimum.optimal_assignment(surplus=surplus, stock=tuple(product.stock for product in scenario.products))
    return len(made.intersection(pairs)), len(pairs)


def random_welfare_cents(scenario: Scenario) -> float:
    """Expected welfare when buyers and units are paired by lot and pairs that would lose do not trade.

    Sum over buyers i and products j of stock_j * max(0, V_ij - C_j) * min(N, U) / (N * U), N buyers,
    U units: every buyer and unit is as likely to meet as any other. In cents.
    """
    costs, values = scenario.seller_values_cents, scenario.buyer_values_cents
    stock = [product.stock for product in scenario.products]
    units, buyers = sum(stock), len(values)
    gains = sum(
        held * (value - cost)
        for own in values
        for value, cost, held in zip(own, costs, stock, strict=True)
        if value > cost
    )
    return gains * min(buyers, units) / (buyers * units)
