"""Draws the scenarios of a suite and plays an agent through them. Pure.

Contract: everything follows from the card and the pool of products, so two machines play the same; the
agent under test changes no scenario and no opponent. With several buyers a seller under test meets one
of the suite's buyers on each chair, dealt by lot for that negotiation, and a buyer under test sits on the
first chair (values are dealt over the chairs by lot as well).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agents import registry
from agents.base import AgentSpec
from agents.play import Played, Seat, play, seat
from markets.engine.protocol import SELLER, Party, Role, buyer_party
from markets.engine.scenarios import ProductFacts, Scenario, sample
from markets.engine.seeds import derive_seed
from training.suites.cards import Card, SuiteError, scenarios_sha256


class Listing(NamedTuple):
    """One scenario of a suite, and the cluster it belongs to."""

    number: int
    scenario: Scenario


class Tested(NamedTuple):
    """One negotiation of the agent under test."""

    listing: int
    role: Role
    opponent: str
    """The one on the other side; empty where several of them are."""
    scenario: Scenario
    played: Played


def listings(card: Card, pool: Sequence[ProductFacts]) -> tuple[Listing, ...]:
    """The scenarios of a suite, in order. Raises `SuiteError` where they are not those that were frozen."""
    drawn = draw(card, pool)
    found = scenarios_sha256(listing.scenario for listing in drawn)
    if found != card.sha256:
        raise SuiteError(
            f"The scenarios of suite {card.name!r} come out otherwise than version {card.version} froze them "
            f"({found[:12]} instead of {card.sha256[:12]}): products or the way of drawing changed, and results would "
            "not compare. Give the suite a new version."
        )
    return drawn


def draw(card: Card, pool: Sequence[ProductFacts]) -> tuple[Listing, ...]:
    """The scenarios as they come out, whatever was frozen."""
    if len(pool) < max(card.products, card.recipe.products):
        raise SuiteError(f"Suite {card.name!r} needs {card.products} products, and there are {len(pool)}.")
    if not card.products:
        return tuple(
            Listing(number, sample(card.recipe, pool, derive_seed("suite", card.name, card.seed, number, rollout)))
            for number in range(card.listings)
            for rollout in range(card.rollouts)
        )
    chosen = sorted(pool, key=lambda facts: (derive_seed("suite product", card.name, facts.sku), facts.sku))
    chosen = chosen[: card.products]
    return tuple(
        Listing(
            number,
            sample(
                card.recipe,
                _on_the_table(card, chosen, number, rollout),
                derive_seed("suite", card.name, card.seed, number, rollout),
            ),
        )
        for number in range(card.listings)
        for rollout in range(card.rollouts)
    )


def _on_the_table(card: Card, chosen: Sequence[ProductFacts], number: int, rollout: int) -> list[ProductFacts]:
    """Listing `number`'s own product, and others of the suite beside it where there are several."""
    own = chosen[number % len(chosen)]
    others = sorted(
        (facts for facts in chosen if facts is not own),
        key=lambda facts: derive_seed("suite beside", card.name, card.seed, number, rollout, facts.sku),
    )
    return [own, *others[: card.recipe.products - 1]]


def check_plays(spec: AgentSpec, role: Role, card: Card) -> None:
    """Raise `SuiteError` unless the agent plays that role in the suite's kind of market."""
    if not spec.can_play(role=role, family=card.family):
        raise SuiteError(
            f"{spec.slug!r} does not play {role.value} in a {card.family.value} market, which suite {card.name!r} is."
        )


def play_suite(card: Card, drawn: Sequence[Listing], *, spec: AgentSpec, role: Role) -> Iterator[Tested]:
    """All negotiations of the agent in one role. Raises `SuiteError` at once where it cannot play it."""
    check_plays(spec, role, card)
    met = {slug: seat(registry.get(slug)) for slug in (*card.sellers, *card.buyers)}
    return _games(card, drawn, seat(spec), role, met)


def _games(card: Card, drawn: Sequence[Listing], own: Seat, role: Role, met: dict[str, Seat]) -> Iterator[Tested]:
    for listing in drawn:
        for opponent in card.opponents(role) if card.each_opponent else ("",):
            seats = _seats(card, listing.scenario, own, role, met, opponent)
            yield Tested(listing.number, role, opponent, listing.scenario, play(listing.scenario, seats))


def _seats(
    card: Card, scenario: Scenario, own: Seat, role: Role, met: dict[str, Seat], opponent: str
) -> dict[Party, Seat]:
    def dealt(party: Party) -> Seat:
        if opponent:
            return met[opponent]
        slugs = sorted(card.sellers if party == SELLER else card.buyers)
        return met[slugs[derive_seed("suite opponent", card.name, scenario.seed, party) % len(slugs)]]

    tested = SELLER if role is Role.SELLER else buyer_party(1)
    parties = (SELLER, *(buyer_party(number) for number in range(1, scenario.buyers + 1)))
    return {party: own if party == tested else dealt(party) for party in parties}


def default_roles(card: Card, spec: AgentSpec) -> tuple[Role, ...]:
    """The suite's roles that the agent plays. Raises `SuiteError` where it plays none."""
    roles = tuple(role for role in card.roles if spec.can_play(role=role, family=card.family))
    if not roles:
        wanted = " or ".join(role.value for role in card.roles)
        raise SuiteError(
            f"{spec.slug!r} does not play {wanted} in a {card.family.value} market, which suite {card.name!r} is."
        )
    return roles
