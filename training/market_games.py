"""The games that a market draws, as training knows them.

Here: from a market's recipe to `training.config.Game`, and to the games that a language model is taught
(`training.language.config.Market`), with a copy of its products for games over a catalogue. Not here: drawing games
(`training.environment`, `training.language.games`), launching (`training.services`).

Contract: a market that training cannot play as it is gets a sentence. Markets of values in money with
several buyers are played in the compact dialogue, markets over a catalogue in the ledger; a language model is taught one
to one over a catalogue, in turn. Products are copied
into a file named by its content, so that a run goes on with what it was launched with; nothing else is
written. Guardrails may differ: in training the side that is not learned never deals at a loss.
"""

import csv
import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from django.conf import settings

from markets import services
from markets.engine import priors, splits
from markets.engine.protocol import Role
from markets.engine.scenarios import Alternating, EventDriven, Family, ProductFacts, Recipe, SellerTurns, decode_recipe
from markets.importers.csv_catalogue import COLUMNS
from markets.models import Market
from training.config import ConfigError, Game, refuse_held_out
from training.language.config import Market as Haggling

REWARDS = {
    (Family.BILATERAL, Role.SELLER): ("bilateral_share", "bilateral_share_batna", "seller_profit"),
    (Family.BILATERAL, Role.BUYER): ("rlvr_buyer", "bilateral_share", "bilateral_share_batna"),
    (Family.MULTI_BUYER, Role.SELLER): ("rlvr_seller_multi", "seller_profit"),
    (Family.CATALOGUE, Role.SELLER): ("rlvr_seller_catalogue", "seller_profit"),
}
"""Rewards that fit a learner's seat, the usual one over a catalogue first."""


def game_of(market: Market, *, role: Role = Role.SELLER) -> Game:
    """The games of a market for a learner on one side. Raises `ConfigError` where they cannot be learned."""
    game = _game(market, role)
    if not game.catalogue:
        return game
    return msgspec.structs.replace(game, catalogue=_copied(services.market_pool(market)))


def haggling_of(market: Market, *, roles: Sequence[Role] = (Role.SELLER, Role.BUYER)) -> Haggling:
    """The games of a market for a language model on these sides. Raises `ConfigError` where they cannot be learned."""
    return msgspec.structs.replace(_haggling(market, roles), catalogue=_copied(services.market_pool(market)))


def can_be_haggled(market: Market) -> bool:
    """Whether a market has games that a language model can be taught; copies nothing."""
    try:
        _haggling(market, tuple(Role))
    except (ConfigError, ValueError):
        return False
    return True


def _haggling(market: Market, roles: Sequence[Role]) -> Haggling:
    recipe = decode_recipe(market.recipe)
    if recipe.family is not Family.BILATERAL or not isinstance(recipe.mechanism, Alternating):
        raise ConfigError(
            f"A language model is taught one to one, each side writing in turn; {market.slug!r} is another kind of market."
        )
    if recipe.unit_is_money:
        raise ConfigError(
            f"A language model is taught over products of a catalogue; {market.slug!r} has values in money."
        )
    if recipe.gains:
        raise ConfigError(f"{market.slug!r} draws games by whether trade can gain, which no run does.")
    try:
        splits.refuse_held_out(recipe=recipe)
    except splits.HeldOut as error:
        raise ConfigError(str(error)) from error
    others = [market.buyer_agents] if Role.SELLER in roles else []
    others += [market.seller_agent] if Role.BUYER in roles else []
    return Haggling(
        catalogue=market.slug,  # Until its products are copied.
        rounds=(recipe.mechanism.rounds,),
        values=priors.format_spec(recipe.value_spec),
        cost=priors.format_spec(recipe.cost_spec),
        buyer_opens=1.0 if recipe.mechanism.opener is Role.BUYER else 0.0,
        roles=tuple(roles),
        opponents=_unlike(",".join(others).split(",")),
    )


def can_be_learned(market: Market, *, role: Role = Role.SELLER) -> bool:
    """Whether a market has games that training knows; copies nothing."""
    try:
        refuse_held_out(msgspec.structs.replace(_game(market, role), opponents=()))
    except (ConfigError, ValueError):
        return False
    return True


def _game(market: Market, role: Role) -> Game:
    recipe = decode_recipe(market.recipe)
    return _in_money(market, recipe, role) if recipe.unit_is_money else _over_products(market, recipe, role)


def _in_money(market: Market, recipe: Recipe, role: Role) -> Game:
    if recipe.family is not Family.MULTI_BUYER or not isinstance(recipe.mechanism, SellerTurns) or role is Role.BUYER:
        raise ConfigError(
            f"With values in money a run learns to sell one product to several buyers; {market.slug!r} is a "
            f"{recipe.family.value} market, and the learner would be its {role.value}."
        )
    if not isinstance(recipe.cost_spec, priors.ConstantSpec):
        raise ConfigError(
            f"With values in money a run needs a constant cost, not {priors.format_spec(recipe.cost_spec)!r}."
        )
    return Game(
        sizes=((recipe.buyers, recipe.mechanism.turns),),
        costs=(recipe.cost_spec.value,),
        values=priors.format_spec(recipe.value_spec),
        opponents=_unlike(market.buyer_agents.split(",")),
    )


def _over_products(market: Market, recipe: Recipe, role: Role) -> Game:
    if role is Role.BUYER and recipe.family is not Family.BILATERAL:
        raise ConfigError(f"A run learns to buy one to one only; {market.slug!r} is a {recipe.family.value} market.")
    if recipe.stock != 1:
        raise ConfigError(f"A run learns with one unit of each product; {market.slug!r} has {recipe.stock}.")
    if recipe.gains:
        raise ConfigError(f"{market.slug!r} draws games by whether trade can gain, which no run does.")
    try:
        splits.refuse_held_out(recipe=recipe)
    except splits.HeldOut as error:
        raise ConfigError(str(error)) from error
    mechanism, length = _mechanism(recipe)
    others = market.buyer_agents.split(",") if role is Role.SELLER else [market.seller_agent]
    return Game(
        sizes=((recipe.buyers, length),),
        values=priors.format_spec(recipe.value_spec),
        opponents=_unlike(others),
        reward=REWARDS[recipe.family, role][0],
        dialogue="ledger",
        role=role,
        family=recipe.family,
        mechanism=mechanism,
        opener=Role.SELLER if isinstance(recipe.mechanism, SellerTurns) else recipe.mechanism.opener,
        catalogue=market.slug,  # Until its products are copied.
        cost=priors.format_spec(recipe.cost_spec),
        products=recipe.products,
        rho=recipe.rho,
    )


def _mechanism(recipe: Recipe) -> tuple[Literal["turns", "rounds", "clock"], int]:
    match recipe.mechanism:
        case SellerTurns(turns=turns):
            return "turns", turns
        case Alternating(rounds=rounds):
            return "rounds", rounds
        case EventDriven(rounds=rounds):
            return "clock", rounds


def _unlike(slugs: Sequence[str]) -> tuple[str, ...]:
    """Each slug once."""
    return tuple(dict.fromkeys(filter(None, slugs)))


def _copied(pool: Sequence[ProductFacts]) -> str:
    """The file of a market's products, made once."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for facts in pool:
        prices = (facts.list_price_cents, facts.lowest_price_cents, facts.highest_price_cents)
        writer.writerow(
            [facts.title, *(f"{cents / 100:.2f}" for cents in prices), facts.sku, facts.category, facts.text, "", ""]
        )
    content = text.getvalue().encode()
    file = Path(settings.VAR) / "catalogues" / f"{hashlib.sha256(content).hexdigest()[:16]}.csv"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".draft")
        draft.write_bytes(content)
        draft.replace(file)
    return str(file)
