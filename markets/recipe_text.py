"""A market's recipe in words: what a list, a version history and a summary say of it.

Here: phrases about shape, length, goods and what makes two versions different. Not here: the pages
that show them (`market_page`, the builder) and distributions in words (`priors_text`). Public facts
alone, no drawn value.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from msgspec import UnsetType

from markets import priors_text
from markets.engine import priors
from markets.engine.money import format_amount
from markets.engine.protocol import Role
from markets.engine.scenarios import Alternating, Gains, Recipe, SellerTurns, Split, decode_recipe
from markets.illustrations import category_name
from markets.models import Catalogue, Market


def length_text(recipe: Recipe) -> str:
    """How long a negotiation is."""
    mechanism = recipe.mechanism
    if isinstance(mechanism, SellerTurns):
        return ngettext("%(count)d message to spend", "%(count)d messages to spend", mechanism.turns) % {
            "count": mechanism.turns
        }
    count = {"count": mechanism.rounds}
    if isinstance(mechanism, Alternating):
        return ngettext("%(count)d round", "%(count)d rounds", mechanism.rounds) % count
    return ngettext("about %(count)d round, no turns", "about %(count)d rounds, no turns", mechanism.rounds) % count


def goods(catalogue: Catalogue | None, category: str) -> str:
    """Where the products come from; empty where they have no name."""
    if catalogue is None:
        return ""
    if category:
        return _("%(category)s of %(catalogue)s") % {
            "category": category_name(category),
            "catalogue": catalogue.name,
        }
    return catalogue.name


def summary(recipe: Recipe, *, goods: str) -> str:
    """One sentence for a market whose author wrote none."""
    who = ngettext("One seller and one buyer", "One seller and %(count)d buyers", recipe.buyers) % {
        "count": recipe.buyers
    }
    what = ngettext("one product", "%(count)d products", recipe.products) % {"count": recipe.products}
    if recipe.stock > 1:
        what = _("%(what)s (%(stock)d of each)") % {"what": what, "stock": recipe.stock}
    if goods:
        what = _("%(what)s from %(goods)s") % {"what": what, "goods": goods[:180]}
    return _("%(who)s over %(what)s; %(length)s.") % {"who": who, "what": what, "length": length_text(recipe)}


def is_composed(market: Market) -> bool:
    """Whether a market's summary is the one that its recipe makes."""
    return market.summary == summary(decode_recipe(market.recipe), goods=goods(market.catalogue, market.category))


# --- Versions ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fact:
    """One thing that a version says of itself."""

    label: str
    value: str
    written: str = ""
    """How it is written on the command line, where that tells more than the words."""


def facts(market: Market, *, named: Callable[[str], str] = str) -> tuple[Fact, ...]:
    """Everything that a version fixes, in the order of the builder's form; `named` says what an agent is called."""
    recipe = decode_recipe(market.recipe)
    mechanisms = {
        "alternating": _("alternating rounds"),
        "seller_turns": _("the seller's messages"),
        "event_driven": _("event-driven"),
    }
    families = {
        "bilateral": _("one buyer, one product"),
        "multi_buyer": _("several buyers, one product"),
        "catalogue": _("several buyers, several products"),
    }
    opener = getattr(recipe.mechanism, "opener", None)
    rows: list[tuple[str, str] | tuple[str, str, str]] = [
        (_("Name"), market.name),
        (_("Summary"), market.summary),
        (_("Family"), families[market.family]),
        (_("Mechanism"), mechanisms.get(market.mechanism, market.mechanism)),
        (_("Length"), length_text(recipe)),
        (_("Who opens"), "" if opener is None else _("the seller") if opener is Role.SELLER else _("the buyer")),
        (_("Products from"), goods(market.catalogue, market.category) or _("no catalogue")),
        (_("List prices drawn"), price_range_text(market, recipe.currency)),
        (_("Part of the catalogue"), "" if isinstance(recipe.split, UnsetType) else split_text(recipe.split)),
        (_("Products on the table"), str(recipe.products)),
        (_("Stock of each"), str(recipe.stock)),
        (_("Buyers"), str(recipe.buyers)),
        (_("Buyers' values"), priors_text.describe_rule(recipe.value_spec, recipe), spec_text(recipe.value_spec)),
        (_("Seller's cost"), priors_text.describe_rule(recipe.cost_spec, recipe), spec_text(recipe.cost_spec)),
        (_("Told about the values"), _told(recipe.public_values, recipe.value_spec, recipe)),
        (_("Told about the cost"), _told(recipe.cost_prior, recipe.cost_spec, recipe)),
        (_("Values and costs are"), _("amounts of money") if recipe.unit_is_money else _("shares of the list price")),
        (_("Correlation"), f"{recipe.rho:g}"),
        (_("Draws"), "" if isinstance(recipe.gains, UnsetType) else gains_text(recipe.gains)),
        (_("Currency"), recipe.currency),
        (_("Opening bids"), _openings_text(recipe)),
        (_("Kept from losing money"), ", ".join(_role_text(role) for role in recipe.regulated) or _("nobody")),
        (_("An unreadable message"), _("ends the game") if recipe.malformed_ends else _("costs the turn")),
        (_("Seller's agent"), named(market.seller_agent)),
        (_("Buyers' agents"), ", ".join(map(named, market.buyer_agents.split(",")))),
        (_("Listed"), _("in the market list") if market.is_listed else _("by its address only")),
        (
            _("After the game"),
            _("all values are shown") if market.reveals_values else _("each side's values stay its own"),
        ),
        (_("Time for a move"), seconds_text(market.move_deadline_s)),
        (_("Wait for a person"), seconds_text(market.fill_wait_s)),
    ]
    return tuple(Fact(*row) for row in rows if row[1])


def changes(before: Market, after: Market) -> tuple[str, ...]:
    """What is different in a later version, one phrase a fact."""
    old = {fact.label: fact for fact in facts(before)}
    new = {fact.label: fact for fact in facts(after)}
    if is_composed(before) and is_composed(after):
        del old[_("Summary")], new[_("Summary")]  # It follows from the rest.
    return tuple(
        _("%(label)s: %(old)s → %(new)s") % ({"label": label} | _difference(old.get(label), new.get(label)))
        for label in dict.fromkeys((*old, *new))
        if old.get(label) != new.get(label)
    )


def _difference(old: Fact | None, new: Fact | None) -> dict[str, str]:
    """Both sides of a change in words; as they are written where the words round the difference away."""
    if old and new and old.value == new.value:
        return {"old": old.written, "new": new.written}
    return {"old": old.value if old else _("none"), "new": new.value if new else _("none")}


def _told(public: priors.ValueSpec, rule: Any, recipe: Recipe) -> str:
    """What players are told of a law."""
    return _("just that") if public == rule else priors_text.describe(public, recipe)


def split_text(split: Split) -> str:
    """A part of a catalogue."""
    return {
        Split.TRAINING: _("products that agents train on"),
        Split.HELD_OUT: _("products held out from training"),
        Split.HELD_OUT_DECADE: _("products of the price decade held out from training"),
    }[split]


def gains_text(gains: Gains) -> str:
    """What is drawn again."""
    return {
        Gains.FORCED: _("again until trade can gain"),
        Gains.NONE: _("again until trade cannot gain"),
    }[gains]


def spec_text(spec: Any) -> str:
    """A spec as it is written in a form or on the command line."""
    return priors.format_spec(spec)


def price_range_text(market: Market, currency: str) -> str:
    """The filter on list prices; empty where there is none."""
    low, high = market.price_from_cents, market.price_to_cents
    if low is not None and high is not None:
        return _("%(low)s to %(high)s") % {
            "low": format_amount(low, currency),
            "high": format_amount(high, currency),
        }
    if low is not None:
        return _("%(low)s and more") % {"low": format_amount(low, currency)}
    if high is not None:
        return _("up to %(high)s") % {"high": format_amount(high, currency)}
    return ""


def seconds_text(seconds: int) -> str:
    """A wait in the largest unit that fits it."""
    for size, one, many in (
        (86_400, "%(count)d day", "%(count)d days"),
        (3_600, "%(count)d hour", "%(count)d hours"),
        (60, "%(count)d minute", "%(count)d minutes"),
    ):
        if seconds % size == 0:
            return ngettext(one, many, seconds // size) % {"count": seconds // size}
    return ngettext("%(count)d second", "%(count)d seconds", seconds) % {"count": seconds}


def _openings_text(recipe: Recipe) -> str:
    if recipe.opening_bid_share is None:
        return _("none")
    low, high = recipe.opening_bid_share
    return _("%(low)d to %(high)d\u00a0%% of the list price") % {"low": round(low * 100), "high": round(high * 100)}


def _role_text(role: Role) -> str:
    return _("the seller") if role is Role.SELLER else _("the buyer")
