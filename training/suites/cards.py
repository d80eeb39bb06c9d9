"""What each suite is: a card in `<name>.json`, frozen with its version.

Here: the card, its reading, and the hash of a suite's scenarios. Not here: drawing or playing them
(`games`). Pure.

Contract: a suite's version never changes what it plays. `sha256` is the hash of what is economic in its
scenarios (`scenarios_sha256`); where they come out otherwise the suite is not played. Whoever changes a
suite gives it the next version. The figures of reference agents were measured when the version was frozen.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from markets.engine import priors
from markets.engine.protocol import Role, encode
from markets.engine.scenarios import Alternating, EventDriven, Family, Mechanism, Recipe, Scenario, SellerTurns

FOLDER = Path(__file__).parent
NAMES = ("p1", "p2", "p3")
LICENCE = "Apache-2.0, as the products and the code are Parley's own"


class SuiteError(ValueError):
    """A suite that cannot be played so; the sentence says why."""


class Reference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent as it was measured when the suite was frozen; the names and meanings of `measure.report`."""

    agent: str
    version: str
    role: Role
    share: float | None
    share_low: float | None
    share_high: float | None
    deal_rate: float | None
    deal_rate_low: float | None
    deal_rate_high: float | None
    allocation_quality: float | None = None
    """This and what follows are None in a suite of two, where there is nobody to choose between."""
    allocation_quality_low: float | None = None
    allocation_quality_high: float | None = None
    allocation_quality_rescaled: float | None = None
    allocation_quality_rescaled_low: float | None = None
    allocation_quality_rescaled_high: float | None = None
    extraction: float | None = None
    extraction_low: float | None = None
    extraction_high: float | None = None


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a suite is."""

    name: str
    version: int
    title: str
    what: str
    """What is played, in a sentence or two."""
    why: str
    """What it shows about an agent, and what not."""
    source: str
    """The setting it follows, and what in it is our reading."""
    metric: str
    recipe: Recipe
    products: int
    """Products of the pool that are drawn from, by the rank of their hash; 0 takes them all."""
    listings: int
    """Clusters: negotiations of one listing are drawn again together."""
    rollouts: int
    """Negotiations of each listing (against each opponent, where they are met one after the other)."""
    roles: tuple[Role, ...]
    """Roles that are measured unless one is asked for."""
    sellers: dict[str, str]
    """Agents met as sellers, with the version that was frozen."""
    buyers: dict[str, str]
    each_opponent: bool
    """Whether every opponent is met in every listing; otherwise each other seat is dealt one of them."""
    seed: int
    licence: str
    sha256: str
    references: tuple[Reference, ...]

    @property
    def family(self) -> Family:
        """Kind of market."""
        return self.recipe.family

    def opponents(self, role: Role) -> dict[str, str]:
        """Who is met by an agent in `role`, with versions."""
        return self.buyers if role is Role.SELLER else self.sellers

    def episodes(self, role: Role) -> int:
        """Negotiations of an agent in `role`."""
        return self.listings * self.rollouts * (len(self.opponents(role)) if self.each_opponent else 1)


_decoder = msgspec.json.Decoder(Card, strict=True)


def card(name: str) -> Card:
    """The card of a suite. Raises `SuiteError`."""
    if name not in NAMES:
        raise SuiteError(f"There is no suite {name!r}; there is: {', '.join(NAMES)}.")
    return _decoder.decode((FOLDER / f"{name}.json").read_bytes())


def cards() -> tuple[Card, ...]:
    """Every suite."""
    return tuple(card(name) for name in NAMES)


def write(changed: Card) -> None:
    """Freeze a card. For whoever makes a new version of a suite."""
    text = msgspec.json.format(encode(changed), indent=1)
    (FOLDER / f"{changed.name}.json").write_bytes(text + b"\n")


def scenarios_sha256(scenarios: Iterable[Scenario]) -> str:
    """Hash of who may trade what at which values under which rules; words about products are left out.

    Written field by field, so that a field that is added to a scenario later changes no hash.
    """
    digest = hashlib.sha256()
    for scenario in scenarios:
        digest.update(
            encode(
                (
                    scenario.family,
                    _rules(scenario.mechanism),
                    scenario.currency,
                    [(product.sku, product.list_price_cents, product.stock) for product in scenario.products],
                    scenario.seller_values_cents,
                    scenario.buyer_values_cents,
                    [(bid.buyer, bid.product, bid.price_cents) for bid in scenario.opening_bids],
                    scenario.regulated,
                    priors.format_spec(scenario.prior.value_spec),
                    priors.format_spec(scenario.prior.cost_spec),
                    scenario.prior.rho,
                    scenario.prior.scales_cents,
                    str(scenario.seed),
                )
            )
        )
        digest.update(b"\n")
    return digest.hexdigest()


def _rules(mechanism: Mechanism) -> tuple[object, ...]:
    match mechanism:
        case Alternating():
            return "alternating", mechanism.rounds, mechanism.opener
        case SellerTurns():
            return "seller_turns", mechanism.turns
        case EventDriven():
            return "event_driven", mechanism.rounds, mechanism.events, mechanism.opener, mechanism.latency_ms
