"""What a negotiation came to, computed from its scenario and its event log alone.

`outcome` folds one episode, `summary` pools many. Shares and rates are fractions; undefined is
`None`, never 0. Definitions follow the metrics of arXiv 2607.05863, 2609.33289 and 2604.16472 and
Smith (1962) for allocative efficiency; where a definition is our reading the docstring says so.
"""

from collections.abc import Iterable, Sequence

import msgspec

from markets.engine import optimum
from markets.engine.money import Cents
from markets.engine.protocol import (
    EndReason,
    Event,
    LogEntry,
    MessageSent,
    MoveRefused,
    NegotiationEnded,
    OfferAccepted,
    OfferMade,
    OfferRejected,
    Role,
)
from markets.engine.scenarios import Scenario


class DealOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One sale and what it was worth to either side."""

    buyer: int
    product: int
    price_cents: Cents
    seller_surplus_cents: Cents
    buyer_surplus_cents: Cents
    seller_joint_cents: Cents
    """Highest value among the buyers of this product minus cost: what the seller could share."""
    pair_joint_cents: Cents
    """This buyer's value minus cost."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Economic result of one episode."""

    end_reason: EndReason | None
    deals: tuple[DealOutcome, ...]
    seller_surplus_cents: Cents
    buyer_surplus_cents: Cents
    """Sum over the buyers."""
    welfare_cents: Cents
    """Sum of the realised surpluses."""
    first_best_cents: Cents
    """Largest attainable welfare: maximum-weight matching under unit demand and stock."""
    seller_messages: int
    buyer_messages: int
    seller_violations: int
    buyer_violations: int
    """Messages that were refused, or bound their sender beyond its own reservation value."""

    @property
    def seller_share(self) -> float | None:
        """Seller's surplus / first best; 0 without a deal, None where trade cannot gain."""
        if self.first_best_cents <= 0:
            return None
        return self.seller_surplus_cents / self.first_best_cents

    @property
    def allocation_quality(self) -> float | None:
        """Realised / attainable welfare (Smith 1962), None where nothing can be gained."""
        if self.first_best_cents <= 0:
            return None
        return self.welfare_cents / self.first_best_cents


def surplus_cents(*, role: Role, price_cents: Cents, reservation_value_cents: Cents) -> Cents:
    """Gain from a deal at `price_cents` over no deal; negative if the deal is worse (Raiffa 1982)."""
    if role is Role.BUYER:
        return reservation_value_cents - price_cents
    return price_cents - reservation_value_cents


def surplus_share(*, own_cents: Cents, joint_cents: Cents) -> float | None:
    """Own surplus / joint surplus; None without a zone of possible agreement."""
    return own_cents / joint_cents if joint_cents > 0 else None


def best_assignment(scenario: Scenario) -> tuple[Cents, tuple[tuple[int, int], ...]]:
    """First best in cents and its (0-based buyer, product) pairs."""
    surplus = tuple(
        tuple(max(0, value - cost) for value, cost in zip(own, scenario.seller_values_cents, strict=True))
        for own in scenario.buyer_values_cents
    )
    return optimum.optimal_assignment(surplus=surplus, stock=tuple(product.stock for product in scenario.products))


def outcome(scenario: Scenario, log: Sequence[LogEntry]) -> Outcome:
    """The result of one finished (or unfinished) episode; reads the events, replays nothing."""
    deals: list[DealOutcome] = []
    end_reason: EndReason | None = None
    messages = {Role.SELLER: 0, Role.BUYER: 0}
    violations = {Role.SELLER: 0, Role.BUYER: 0}
    for entry in log:
        event = entry.event
        by = _sender(event)
        if by is not None:
            messages[by] += 1
            violations[by] += _violates(scenario, event)
        if isinstance(event, OfferAccepted):
            deals.append(_deal_outcome(scenario, event))
        elif isinstance(event, NegotiationEnded):
            end_reason = event.reason
    seller_cents = sum(deal.seller_surplus_cents for deal in deals)
    buyer_cents = sum(deal.buyer_surplus_cents for deal in deals)
    return Outcome(
        end_reason=end_reason,
        deals=tuple(deals),
        seller_surplus_cents=seller_cents,
        buyer_surplus_cents=buyer_cents,
        welfare_cents=seller_cents + buyer_cents,
        first_best_cents=best_assignment(scenario)[0],
        seller_messages=messages[Role.SELLER],
        buyer_messages=messages[Role.BUYER],
        seller_violations=violations[Role.SELLER],
        buyer_violations=violations[Role.BUYER],
    )


def _deal_outcome(scenario: Scenario, deal: OfferAccepted) -> DealOutcome:
    cost = scenario.seller_values_cents[deal.product]
    value = scenario.buyer_values_cents[deal.buyer - 1][deal.product]
    highest = max(own[deal.product] for own in scenario.buyer_values_cents)
    return DealOutcome(
        buyer=deal.buyer,
        product=deal.product,
        price_cents=deal.price_cents,
        seller_surplus_cents=surplus_cents(
            role=Role.SELLER, price_cents=deal.price_cents, reservation_value_cents=cost
        ),
        buyer_surplus_cents=surplus_cents(role=Role.BUYER, price_cents=deal.price_cents, reservation_value_cents=value),
        seller_joint_cents=highest - cost,
        pair_joint_cents=value - cost,
    )


def _sender(event: Event) -> Role | None:
    """Who spent a message on `event`; None for openings, lapses, leaving and the end."""
    match event:
        case OfferMade():
            return None if event.opening else event.by
        case OfferAccepted() | OfferRejected() | MessageSent() | MoveRefused():
            return event.by
        case _:
            return None


def _violates(scenario: Scenario, event: Event) -> bool:
    """Whether a message was refused, or bound its sender beyond its own reservation value."""
    match event:
        case MoveRefused():
            return True
        case OfferMade() | OfferAccepted():
            own = scenario.reservation_value_cents(role=event.by, buyer=event.buyer, product=event.product)
            gain = surplus_cents(role=event.by, price_cents=event.price_cents, reservation_value_cents=own)
            return gain < 0
        case _:
            return False


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Pooled results of many episodes."""

    episodes: int
    deals: int
    """Units sold over all episodes."""
    deal_rate: float | None
    """Episodes with at least one deal / episodes."""
    seller_surplus_share: float | None
    """Mean over deals of the seller's surplus / its joint surplus with the highest value."""
    buyer_surplus_share: float | None
    """Mean over deals of the buyer's surplus / the joint surplus of the pair that traded."""
    unconditional_seller_share: float | None
    """Mean of `Outcome.seller_share` (no deal = 0) over the episodes where trade can gain."""
    seller_extraction: float | None
    """Sum of the seller's surpluses / sum of the first bests."""
    allocation_quality: float | None
    """Sum of realised / sum of attainable welfare."""
    constraint_adherence: float | None
    """1 - violations / messages, over all parties."""
    constraint_adherence_by_role: dict[str, float | None]
    mean_turns: float | None
    """Mean number of seller messages in an episode."""


class Tally:
    """Running sums behind a `Summary`: feed outcomes with `add`, read with `summary`."""

    def __init__(self) -> None:
        self._episodes = 0
        self._with_deal = 0
        self._deals = 0
        self._shares: dict[Role, list[float]] = {Role.SELLER: [], Role.BUYER: []}
        self._unconditional: list[float] = []
        self._seller_cents = 0
        self._welfare_cents = 0
        self._first_best_cents = 0
        self._messages = {Role.SELLER: 0, Role.BUYER: 0}
        self._violations = {Role.SELLER: 0, Role.BUYER: 0}

    def add(self, result: Outcome) -> None:
        """Count one episode in."""
        self._episodes += 1
        self._with_deal += bool(result.deals)
        self._deals += len(result.deals)
        for deal in result.deals:
            shares = {
                Role.SELLER: surplus_share(own_cents=deal.seller_surplus_cents, joint_cents=deal.seller_joint_cents),
                Role.BUYER: surplus_share(own_cents=deal.buyer_surplus_cents, joint_cents=deal.pair_joint_cents),
            }
            for role, share in shares.items():
                if share is not None:
                    self._shares[role].append(share)
        if result.seller_share is not None:
            self._unconditional.append(result.seller_share)
        self._seller_cents += result.seller_surplus_cents
        self._welfare_cents += result.welfare_cents
        self._first_best_cents += result.first_best_cents
        self._messages[Role.SELLER] += result.seller_messages
        self._messages[Role.BUYER] += result.buyer_messages
        self._violations[Role.SELLER] += result.seller_violations
        self._violations[Role.BUYER] += result.buyer_violations

    def summary(self) -> Summary:
        """The pooled figures so far."""
        return Summary(
            episodes=self._episodes,
            deals=self._deals,
            deal_rate=_ratio(self._with_deal, self._episodes),
            seller_surplus_share=_mean(self._shares[Role.SELLER]),
            buyer_surplus_share=_mean(self._shares[Role.BUYER]),
            unconditional_seller_share=_mean(self._unconditional),
            seller_extraction=_ratio(self._seller_cents, self._first_best_cents),
            allocation_quality=_ratio(self._welfare_cents, self._first_best_cents),
            constraint_adherence=self._adherence(Role.SELLER, Role.BUYER),
            constraint_adherence_by_role={role.value: self._adherence(role) for role in (Role.SELLER, Role.BUYER)},
            mean_turns=_ratio(self._messages[Role.SELLER], self._episodes),
        )

    def _adherence(self, *roles: Role) -> float | None:
        broken = _ratio(
            sum(self._violations[role] for role in roles),
            sum(self._messages[role] for role in roles),
        )
        return None if broken is None else 1 - broken


def summary(results: Iterable[Outcome]) -> Summary:
    """Pool the outcomes of many episodes."""
    tally = Tally()
    for result in results:
        tally.add(result)
    return tally.summary()


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
