"""What is said about a market before anybody sits down: list, detail, share link.

Only what is public of a market is here: its rule for drawing, never a drawn value. Who can sit
opposite is known to the site, which passes it in.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from markets import presentation, priors_text, recipe_text, room_page, selectors, services
from markets.engine.money import format_amount
from markets.engine.protocol import Role
from markets.engine.scenarios import (
    Alternating,
    EventDriven,
    Family,
    ProductFacts,
    Recipe,
    SellerTurns,
    decode_recipe,
    decode_scenario,
)
from markets.illustrations import DEFAULT, category_image, category_name
from markets.models import Market, Seat
from markets.result import played_text

MAX_SHOWN_PRODUCTS = 6
MAX_TEXT = 220


def family_text(family: Family) -> str:
    """A family in words."""
    return {
        Family.BILATERAL: _("One buyer, one product"),
        Family.MULTI_BUYER: _("Several buyers, one product"),
        Family.CATALOGUE: _("Several buyers, several products"),
    }[family]


# --- List -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Listed:
    market: Market
    card: presentation.MarketCard
    played: int


SORTS = ("", "played", "name", "newest")


def list_page(query: Mapping[str, str]) -> presentation.MarketListPage:
    """The list for the filters of a query string; an unknown value of a filter filters nothing."""
    text = query.get("q", "").strip()[:100]
    family = query.get("family", "")
    role = query.get("role", "")
    sort = query.get("sort", "")
    records = selectors.market_records()
    listed = []
    for market in selectors.current_markets():
        played = records.get(market.slug)
        listed.append(
            _Listed(
                market,
                market_card(
                    market,
                    played="" if played is None else played_text(played.episodes, played.with_deal),
                ),
                0 if played is None else played.episodes,
            )
        )
    listed = [entry for entry in listed if entry.market.is_listed]
    shown = [
        entry
        for entry in listed
        if (family not in {f.value for f in Family} or entry.market.family == family)
        and (role not in ("seller", "buyer") or role in entry.card.roles)
        and _matches(entry, text)
    ]
    if sort == "played":
        shown.sort(key=lambda entry: -entry.played)
    elif sort == "name":
        shown.sort(key=lambda entry: entry.card.name.casefold())
    elif sort == "newest":
        shown.sort(key=lambda entry: -entry.market.pk)
    total = len(listed)
    if len(shown) == total:
        count_text = ngettext("%(count)d market", "%(count)d markets", total) % {"count": total}
    else:
        count_text = ngettext("%(shown)d of %(count)d market", "%(shown)d of %(count)d markets", total) % {
            "shown": len(shown),
            "count": total,
        }
    return presentation.MarketListPage(
        cards=tuple(entry.card for entry in shown),
        families=(
            presentation.Choice(value="", label=_("any"), selected=not family),
            *(
                presentation.Choice(value=choice.value, label=family_text(choice), selected=family == choice.value)
                for choice in Family
            ),
        ),
        roles=tuple(
            presentation.Choice(value=value, label=label, selected=role == value)
            for value, label in (("", _("either")), ("buyer", _("buyer")), ("seller", _("seller")))
        ),
        sorts=tuple(
            presentation.Choice(value=value, label=label, selected=sort == value)
            for value, label in zip(SORTS, (_("suggested"), _("most played"), _("name"), _("newest")), strict=True)
        ),
        query=text,
        count_text=count_text,
        filtered=len(shown) != total or bool(text or family or role),
        url=reverse("market-list"),
    )


def _matches(entry: _Listed, text: str) -> bool:
    haystack = " ".join((entry.card.name, entry.card.summary, entry.card.family_text, entry.market.category)).casefold()
    return all(word in haystack for word in text.casefold().split())


def market_card(market: Market, *, played: str = "") -> presentation.MarketCard:
    """One market in a list."""
    recipe = decode_recipe(market.recipe)
    return presentation.MarketCard(
        slug=market.slug,
        name=market.name,
        family=recipe.family.value,
        family_text=family_text(recipe.family),
        summary=market.summary
        or recipe_text.summary(recipe, goods=recipe_text.goods(market.catalogue, market.category)),
        url=reverse("market", args=[market.slug]),
        products_text=ngettext("%(count)d product", "%(count)d products", recipe.products) % {"count": recipe.products},
        buyers_text=ngettext("%(count)d buyer", "%(count)d buyers", recipe.buyers) % {"count": recipe.buyers},
        length_text=_length_text(recipe),
        image=category_image(market.category) if market.category else DEFAULT,
        played_text=played,
    )


def _length_text(recipe: Recipe) -> str:
    if isinstance(recipe.mechanism, SellerTurns):
        turns = recipe.mechanism.turns
        return ngettext("%(count)d message to spend", "%(count)d messages to spend", turns) % {"count": turns}
    rounds = recipe.mechanism.rounds
    if isinstance(recipe.mechanism, EventDriven):
        return ngettext("about %(count)d round, no turns", "about %(count)d rounds, no turns", rounds) % {
            "count": rounds
        }
    return ngettext("%(count)d round", "%(count)d rounds", rounds) % {"count": rounds}


# --- Detail -----------------------------------------------------------------------------------------


def detail_page(
    market: Market, *, seats: tuple[presentation.SeatChoice, ...], error: str = ""
) -> presentation.MarketPage:
    """Everything public about a market, and the seats to take."""
    recipe = decode_recipe(market.recipe)
    pool = services.market_pool(market)
    shown = pool[:: max(1, len(pool) // MAX_SHOWN_PRODUCTS)][:MAX_SHOWN_PRODUCTS]
    record = selectors.market_records().get(market.slug)
    minutes = max(1, round(market.fill_wait_s / 60))
    return presentation.MarketPage(
        card=market_card(market, played="" if record is None else played_text(record.episodes, record.with_deal)),
        products=tuple(_product(index, facts, recipe.currency) for index, facts in enumerate(shown)),
        products_note=_products_note(market, recipe, len(pool), len(shown)),
        rules=rules(recipe),
        public=public_facts(recipe),
        private=private_facts(recipe),
        seats=seats,
        play_url=reverse("play", args=[market.slug]),
        after_text="" if market.reveals_values else _("After the game, each side's values stay its own."),
        retired_text=""
        if market.retired_at is None
        else _("Retired on %(day)s: games in it go on, new ones do not begin.")
        % {"day": date_format(market.retired_at)},
        person_wait_text=ngettext(
            "If nobody comes within %(count)d minute, an agent takes the seat.",
            "If nobody comes within %(count)d minutes, an agent takes the seat.",
            minutes,
        )
        % {"count": minutes},
        error=error,
    )


def _product(index: int, facts: ProductFacts, currency: str) -> presentation.ProductFact:
    text = facts.text
    return presentation.ProductFact(
        index=index,
        name=facts.title,
        category=facts.category,
        text=text if len(text) <= MAX_TEXT else text[:MAX_TEXT].rstrip() + "…",
        list_price=format_amount(facts.list_price_cents, currency),
        image=category_image(facts.category),
    )


def _products_note(market: Market, recipe: Recipe, available: int, shown: int) -> str:
    if available == 0:
        return _("An item without a name: only values and prices matter here.")
    if available <= shown:
        return ""
    drawn = ngettext("One is drawn for each game", "%(count)d are drawn for each game", recipe.products) % {
        "count": recipe.products
    }
    place = (
        _("out of %(count)d in %(category)s") % {"count": available, "category": category_name(market.category)}
        if market.category
        else _("out of %(count)d in the catalogue") % {"count": available}
    )
    return f"{drawn}, {place}."


def rules(recipe: Recipe) -> tuple[str, ...]:
    """How it is played, in the order a player needs it."""
    mechanism = recipe.mechanism
    lines = []
    if isinstance(mechanism, Alternating):
        lines.append(
            _("Seller and buyer write in turn, one message each a round, for up to %(rounds)d rounds.")
            % {"rounds": mechanism.rounds}
        )
        lines.append(_first(mechanism.opener))
    elif isinstance(mechanism, EventDriven):
        lines.append(_first(mechanism.opener))
        lines.append(_("From then on there are no turns: either side may write, offer or answer at any time."))
        lines.append(
            ngettext(
                "Plan for about %(rounds)d message each; after %(events)d moves of both together it ends without a deal.",
                "Plan for about %(rounds)d messages each; after %(events)d moves of both together it ends without a deal.",
                mechanism.rounds,
            )
            % {"rounds": mechanism.rounds, "events": mechanism.events}
        )
        if recipe.regulated == ():
            lines.append(_("Nothing stops you from a deal that costs you money: look at your own value."))
    else:
        lines.append(
            ngettext(
                "The seller has %(turns)d messages to spend on one buyer, who answers each.",
                "The seller has %(turns)d messages to spend over %(buyers)d buyers; whoever is written to answers.",
                recipe.buyers,
            )
            % {"turns": mechanism.turns, "buyers": recipe.buyers}
        )
        lines.append(_("The seller sees every conversation; a buyer sees only its own."))
    lines.append(_("Only an offer and its acceptance bind. A price in a message binds nobody."))
    lines.append(_("An offer stands until it is accepted, turned down, or replaced by a new one of the same side."))
    if recipe.buyers > 1:
        lines.append(_("Every buyer wants one unit. When the goods are gone, open offers lapse."))
    lines.append(_("Anybody may leave at any time; without a deal nobody gains or loses."))
    if recipe.regulated:
        lines.append(_("Prices that would cost the one who names them money are refused."))
    return tuple(lines)


def _first(opener: Role) -> str:
    return _("The seller writes first.") if opener is Role.SELLER else _("The buyer writes first.")


def public_facts(recipe: Recipe) -> tuple[str, ...]:
    """What everybody at the table knows."""
    facts = [
        _("The product, its text and its list price.")
        if recipe.products == 1
        else _("The products, their texts and list prices."),
        _("What buyers' values are like: %(prior)s.") % {"prior": priors_text.describe(recipe.public_values, recipe)},
        _("What sellers' costs are like: %(prior)s.") % {"prior": priors_text.describe(recipe.cost_prior, recipe)},
    ]
    if isinstance(recipe.mechanism, EventDriven):
        facts.append(_("The range of list prices of products of its kind; agents may look it up."))
    if recipe.rho > 0:
        facts.append(_("Values go together: their correlation is %(rho)s.") % {"rho": f"{recipe.rho:g}"})
    if recipe.buyers > 1:
        facts.append(
            _("There are %(count)d buyers, and each product has a stock of %(stock)d.")
            % {"count": recipe.buyers, "stock": recipe.stock}
        )
    return tuple(facts)


def private_facts(recipe: Recipe) -> tuple[str, ...]:
    """What one side alone knows."""
    if recipe.products > 1:
        return (
            _("Each buyer alone knows what each product is worth to that buyer."),
            _("The seller alone knows what each product costs the seller."),
        )
    return (
        _("The buyer alone knows what the product is worth to the buyer.")
        if recipe.buyers == 1
        else _("Each buyer alone knows what the product is worth to that buyer."),
        _("The seller alone knows what it costs the seller."),
    )


# --- Share link -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JoinPage:
    """Context `page` of `markets/join.html`."""

    market_name: str
    product: str
    role: str
    role_text: str
    summary: str
    error: str
    market_url: str


def join_page(seat: Seat, market: Market, *, error: str) -> JoinPage:
    """What somebody with a share link is told before sitting down. Nothing private."""
    scenario = decode_scenario(seat.room.scenario)
    titles = [product.title for product in scenario.products]
    product = titles[0]
    if len(titles) > 1:
        product = room_page.shape_text(products=len(titles), buyers=scenario.buyers)
    return JoinPage(
        market_name=market.name,
        product=product,
        role=seat.role,
        role_text=room_page.role_text(Role(seat.role)),
        summary=market.summary,
        error=error,
        market_url=reverse("market", args=[market.slug]),
    )
