"""Pages of the market builder, for the staff and whoever has the permission `markets.build_market`.

A view reads the form (`markets.builder_form`), makes one call into `markets.builder`, and renders. The
preview draws example games and writes nothing: their seeds are small numbers, a live room's are not, so
nobody's private value is shown.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any

from csp.decorators import csp_update
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents import registry
from agents.registry import UnknownAgent
from agents.scripted.personas import Persona
from markets import (
    builder,
    builder_form,
    market_page,
    recipe_text,
    room_page,
    services,
    setup,
    supply_demand,
)
from markets.builder import BuilderError
from markets.builder_form import FORMS, NUMBERS, PERSONA_MARK, FormError, Side, Typed
from markets.engine import metrics, splits
from markets.engine.money import CURRENCIES, format_amount
from markets.engine.priors import SpecError
from markets.engine.protocol import Role
from markets.engine.scenarios import MAX_BUYERS, Family, Gains, Recipe, RecipeError, Scenario, Split, decode_recipe
from markets.illustrations import category_name
from markets.models import Catalogue, Episode, Market, Product, Room, RoomStatus
from markets.presentation import Choice, Figure
from markets.result import percent
from markets.setup import MarketSpec, SetupError
from negotiation_site import dashboards, market_charts, seating
from negotiation_site.tournament_charts import title

REFUSED = (SetupError, SpecError, RecipeError, BuilderError, UnknownAgent)
"""Errors whose text is a sentence for whoever builds."""
SHOWN_DRAWS = 5
SHOWN_LINES = 12
"""Most lines of the table of draws: a catalogue has one for each product of a game."""


# --- What the templates read ------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberField:
    """A number of a spec's form."""

    name: str
    label: str
    value: str


@dataclass(frozen=True)
class SpecKind:
    """One way of saying values or costs."""

    value: str
    label: str
    explanation: str
    selected: bool
    numbers: tuple[NumberField, ...]


@dataclass(frozen=True)
class SpecFields:
    """The choice of a side's spec."""

    side: Side
    kinds: tuple[SpecKind, ...]
    text: str
    as_text: bool
    written: str
    """The chosen one as it is written on the command line."""
    error: str


@dataclass(frozen=True)
class BuyerSeat:
    """The agent of one buyer's seat."""

    name: str
    choices: tuple[Choice, ...]
    voice_name: str
    voices: tuple[Choice, ...]
    """Ways of talking."""


@dataclass(frozen=True)
class DrawLine:
    """One product of one drawn game."""

    game: str
    """Number of the game, on its first line."""
    product: str
    list_price: str
    cost: str
    values: tuple[tuple[str, bool], ...]
    """Per buyer: the value, and whether it is above the cost."""
    gain: str
    """What the game can gain at best, on its first line."""


@dataclass(frozen=True)
class Preview:
    """What a recipe makes: context `preview` of `builder/_preview.html`."""

    problem: str = ""
    summary: str = ""
    rules: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    buyers: tuple[str, ...] = ()
    lines: tuple[DrawLine, ...] = ()
    chart: dashboards.Chart | None = None
    pool_text: str = ""


@dataclass(frozen=True)
class FormPage:
    """Context `page` of `builder/form.html`."""

    heading: str
    lead: str
    action: str
    back: tuple[str, str]
    """Address and words of the way back."""
    words: Mapping[str, str]
    slug: str
    """The address, where it is fixed."""
    based_on: int
    problem: str
    errors: Mapping[str, str]
    families: tuple[Choice, ...]
    mechanisms: tuple[Choice, ...]
    catalogues: tuple[Choice, ...]
    categories: tuple[Choice, ...]
    prices: tuple[Choice, ...]
    parts: tuple[Choice, ...]
    gains: tuple[Choice, ...]
    currencies: tuple[Choice, ...]
    values: SpecFields
    costs: SpecFields
    sellers: tuple[Choice, ...]
    seller_voices: tuple[Choice, ...]
    buyers: tuple[BuyerSeat, ...]
    regulated: tuple[Choice, ...]
    preview: Preview
    max_buyers: int = MAX_BUYERS


@dataclass(frozen=True)
class MarketRow:
    """A market in the builder's list."""

    name: str
    slug: str
    url: str
    family_text: str
    version_text: str
    games_text: str
    author: str
    retired: bool
    listed: bool


@dataclass(frozen=True)
class VersionRow:
    """A version in a market's history."""

    number: int
    url: str
    when_text: str
    author: str
    note: str
    changes: tuple[str, ...]
    games_text: str
    state: str
    retired: bool
    current: bool


@dataclass(frozen=True)
class HistoryPage:
    """Context `page` of `builder/versions.html`."""

    name: str
    slug: str
    rows: tuple[VersionRow, ...]
    all_retired: bool


@dataclass(frozen=True)
class VersionPage:
    """Context `page` of `builder/version.html`."""

    name: str
    slug: str
    row: VersionRow
    facts: tuple[recipe_text.Fact, ...]
    preview: Preview
    command: str
    """What makes the same market on the command line."""


# --- Who may ----------------------------------------------------------------------------------------


def may_build(request: HttpRequest) -> bool:
    """Whether whoever asks may build markets."""
    user = request.user
    return isinstance(user, User) and user.is_active and (user.is_staff or user.has_perm("markets.build_market"))


def for_builders(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Asks strangers to sign in and turns everybody else away who may not build."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path() if request.method == "GET" else reverse("builder"))
        if not may_build(request):
            return render(request, "builder/refused.html", status=403)
        return never_cache(view)(request, *args, **kwargs)

    return guarded


plotly_page: Any = csp_update({"style-src": ["'unsafe-inline'"]})
"""Plotly writes style attributes."""


# --- Lists ------------------------------------------------------------------------------------------


@require_GET
@for_builders
def market_list(request: HttpRequest) -> HttpResponse:
    """Every market, retired ones too."""
    games = {row["market__slug"]: row["count"] for row in _games().values("market__slug").annotate(count=Count("id"))}
    versions: dict[str, list[Market]] = {}
    for market in Market.objects.select_related("created_by", "catalogue").order_by("slug", "-version"):
        versions.setdefault(market.slug, []).append(market)
    rows = tuple(_market_row(found, games.get(slug, 0)) for slug, found in versions.items())
    return render(request, "builder/list.html", {"rows": rows})


def _games() -> Any:
    return Episode.objects.order_by()


def _market_row(versions: list[Market], games: int) -> MarketRow:
    """`versions` of one market, newest first."""
    current = next((version for version in versions if version.retired_at is None), None)
    shown = current or versions[0]
    return MarketRow(
        name=shown.name,
        slug=shown.slug,
        url=reverse("builder-versions", args=[shown.slug]),
        family_text=market_page.family_text(Family(shown.family)),
        version_text=_("version %(version)d of %(count)d") % {"version": shown.version, "count": len(versions)}
        if len(versions) > 1
        else _("version %(version)d") % {"version": shown.version},
        games_text=_games_text(games),
        author=_author(shown),
        retired=current is None,
        listed=shown.is_listed,
    )


def _games_text(count: int) -> str:
    return ngettext("%(count)d game", "%(count)d games", count) % {"count": count} if count else _("not played")


def _author(market: Market) -> str:
    return market.created_by.get_username() if market.created_by else _("the command line")


@require_GET
@for_builders
def versions(request: HttpRequest, slug: str) -> HttpResponse:
    """What became of a market, version by version."""
    found = _versions(slug)
    rows = _version_rows(found)
    page = HistoryPage(name=found[0].name, slug=slug, rows=rows, all_retired=all(row.retired for row in rows))
    return render(request, "builder/versions.html", {"page": page})


def _versions(slug: str) -> list[Market]:
    """Newest first. Raises `Http404` for an address that no market has."""
    found = list(Market.objects.filter(slug=slug).select_related("catalogue", "created_by").order_by("-version"))
    if not found:
        raise Http404(_("There is no market called %(slug)s.") % {"slug": slug})
    return found


def _version_rows(found: list[Market]) -> tuple[VersionRow, ...]:
    games = {row["market"]: row["count"] for row in _games().values("market").annotate(count=Count("id"))}
    live = {
        row["market"]: row["count"]
        for row in Room.objects.exclude(status=RoomStatus.ENDED).order_by().values("market").annotate(count=Count("id"))
    }
    current = next((market.pk for market in found if market.retired_at is None), None)
    before = dict(zip((market.pk for market in found), [*found[1:], None], strict=True))
    return tuple(
        _version_row(
            market, before[market.pk], games=games.get(market.pk, 0), live=live.get(market.pk, 0), current=current
        )
        for market in found
    )


def _version_row(market: Market, before: Market | None, *, games: int, live: int, current: int | None) -> VersionRow:
    if market.retired_at is not None:
        state = _("retired on %(day)s") % {"day": date_format(market.retired_at)}
    elif market.pk == current:
        state = _("played now")
    else:
        state = _("replaced by a newer one")
    text = _games_text(games)
    if live:
        text += ", " + ngettext("%(count)d going on", "%(count)d going on", live) % {"count": live}
    return VersionRow(
        number=market.version,
        url=reverse("builder-version", args=[market.slug, market.version]),
        when_text=date_format(market.created_at, "DATETIME_FORMAT"),
        author=_author(market),
        note=market.note,
        changes=() if before is None else recipe_text.changes(before, market),
        games_text=text,
        state=state,
        retired=market.retired_at is not None,
        current=market.pk == current,
    )


@require_GET
@for_builders
@plotly_page
def version(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """One version in full, with what it draws."""
    found = _versions(slug)
    market = next((market for market in found if market.version == number), None)
    if market is None:
        raise Http404(_("This market has no such version."))
    row = next(row for row in _version_rows(found) if row.number == number)
    page = VersionPage(
        name=market.name,
        slug=slug,
        row=row,
        facts=recipe_text.facts(market, named=title),
        preview=preview_of(market),
        command=_command(market),
    )
    return render(request, "builder/version.html", {"page": page})


def _command(market: Market) -> str:
    return f"manage.py simulate --market {market.slug} --seller {market.seller_agent} --buyers {market.buyer_agents} --episodes 100 --seed 1 --json"


# --- Preview ----------------------------------------------------------------------------------------


def preview_of(market: Market) -> Preview:
    """What a market draws, stored or not. Raises `RecipeError` where it cannot be drawn."""
    recipe = decode_recipe(market.recipe)
    pool = services.market_pool(market)
    scenarios = supply_demand.draw(recipe, pool)
    picture = supply_demand.picture(scenarios)
    return Preview(
        summary=market.summary,
        rules=market_page.rules(recipe),
        public=market_page.public_facts(recipe),
        private=market_page.private_facts(recipe),
        figures=_figures(picture, recipe),
        buyers=tuple(room_page.letter(buyer) for buyer in range(1, recipe.buyers + 1)),
        lines=_lines(scenarios),
        chart=market_charts.supply_and_demand(picture, recipe),
        pool_text=ngettext("Drawn from %(count)d product.", "Drawn from %(count)d products.", len(pool))
        % {"count": len(pool)}
        if pool
        else "",
    )


def _figures(picture: supply_demand.Picture, recipe: Recipe) -> tuple[Figure, ...]:
    units = min(recipe.buyers, recipe.products * recipe.stock)
    return (
        Figure(
            label=_("Games with a gain in them"),
            value=percent(picture.gain_rate),
            out_of=_("of %(draws)d drawn") % {"draws": picture.draws},
            fraction=picture.gain_rate,
        ),
        Figure(
            label=_("First best"),
            value=format_amount(round(picture.first_best_cents), recipe.currency),
            out_of=_("a game on average, for all parties together"),
        ),
        Figure(
            label=_("Units sold at best"),
            value=f"{picture.traded:.2f}",
            out_of=ngettext("of %(count)d that could be", "of %(count)d that could be", units) % {"count": units},
            fraction=picture.traded / units,
        ),
    )


def _lines(scenarios: tuple[Scenario, ...]) -> tuple[DrawLine, ...]:
    lines: list[DrawLine] = []
    for number, scenario in enumerate(scenarios[:SHOWN_DRAWS], start=1):
        if lines and len(lines) + len(scenario.products) > SHOWN_LINES:
            break
        gain, _pairs = metrics.best_assignment(scenario)
        for index, product in enumerate(scenario.products):
            cost = scenario.seller_values_cents[index]
            lines.append(
                DrawLine(
                    game=str(number) if index == 0 else "",
                    product=product.title,
                    list_price=format_amount(product.list_price_cents, scenario.currency),
                    cost=format_amount(cost, scenario.currency),
                    values=tuple(
                        (format_amount(own[index], scenario.currency), own[index] > cost)
                        for own in scenario.buyer_values_cents
                    ),
                    gain=format_amount(gain, scenario.currency) if index == 0 else "",
                )
            )
    return tuple(lines)


def _drawn(typed: Typed, *, slug: str) -> tuple[Preview, Mapping[str, str]]:
    """The preview of a form as it stands, or what is wrong with it. A name is not needed yet."""
    try:
        spec = builder_form.spec_of(typed, slug=slug or "draft")
        seating.check_spec_agents(spec)
        return preview_of(setup.new_market(spec)), {}
    except FormError as error:
        return Preview(problem=next(iter(error.errors.values()))), error.errors
    except REFUSED as error:
        return Preview(problem=str(error)), {}


@require_POST
@for_builders
def preview(request: HttpRequest) -> HttpResponse:
    """The preview of what is typed, with the fields that follow from it. Writes nothing."""
    typed = builder_form.posted(request.POST)
    drawn, errors = _drawn(typed, slug="")
    page = _form_page(typed, preview=drawn, errors=errors)
    follows = {
        "seats": typed["shown_seats"] != shown_seats(typed),
        "goods": typed["shown_goods"] != typed["catalogue"],
    }
    return render(request, "builder/_previewed.html", {"page": page, "preview": drawn, "follows": follows})


def shown_seats(typed: Typed) -> str:
    """What the choice of agents depends on."""
    return f"{typed['family']}:{typed['buyers'].strip()}"


# --- Form -------------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
@for_builders
@plotly_page
def new(request: HttpRequest) -> HttpResponse:
    """A new market, from nothing or from a copy."""
    if request.method != "POST":
        return _render_form(request, _starting_point(request))
    typed = builder_form.posted(request.POST)
    return _save(request, typed, slug="", save=lambda spec: builder.save_market(spec, author=_author_of(request)))


def _starting_point(request: HttpRequest) -> Typed:
    """An empty form, or a copy of `?from=slug` (`&version=n`)."""
    slug, number = request.GET.get("from", "").replace("\x00", ""), request.GET.get("version", "")
    if not slug:
        catalogue = Catalogue.objects.order_by("pk").first()
        return builder_form.blank(catalogue="" if catalogue is None else catalogue.slug)
    found = _versions(slug)
    source = next((market for market in found if str(market.version) == number), found[0])
    typed = builder_form.typed_of(source)
    words = {**typed.words, "slug": "", "name": _("Copy of %(name)s") % {"name": source.name}}
    return Typed(words=words, buyers=typed.buyers, regulated=typed.regulated)


@require_http_methods(["GET", "HEAD", "POST"])
@for_builders
@plotly_page
def change(request: HttpRequest, slug: str) -> HttpResponse:
    """The next version of a market, starting from its newest."""
    newest = _versions(slug)[0]
    if request.method != "POST":
        return _render_form(request, builder_form.typed_of(newest), slug=slug, based_on=newest.version)
    typed = builder_form.posted(request.POST)
    stated = typed["based_on"]
    based_on = int(stated) if stated.isdecimal() and len(stated) < 9 else 0
    return _save(
        request,
        typed,
        slug=slug,
        based_on=based_on,
        save=lambda spec: builder.save_version(spec, based_on=based_on, note=typed["note"], author=_author_of(request)),
    )


def _author_of(request: HttpRequest) -> User | None:
    return request.user if isinstance(request.user, User) else None


def _save(
    request: HttpRequest, typed: Typed, *, slug: str, save: Callable[[MarketSpec], Market], based_on: int = 0
) -> HttpResponse:
    """Save and show, or show again what was typed with what is wrong."""
    if "look" in typed.words:  # The button of browsers without scripts.
        return _render_form(request, typed, slug=slug, based_on=based_on)
    try:
        spec = builder_form.spec_of(typed, slug=slug)
        seating.check_spec_agents(spec)
        market = save(spec)
    except FormError as error:
        return _render_form(request, typed, slug=slug, based_on=based_on, errors=error.errors, status=400)
    except REFUSED as error:
        return _render_form(request, typed, slug=slug, based_on=based_on, problem=str(error), status=400)
    messages.success(request, _("Version %(version)d is saved.") % {"version": market.version})
    return redirect("builder-version", slug=market.slug, number=market.version)


def _render_form(
    request: HttpRequest,
    typed: Typed,
    *,
    slug: str = "",
    based_on: int = 0,
    problem: str = "",
    errors: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    drawn, wrong = _drawn(typed, slug=slug)
    if status != 200 and errors is None and not problem:
        errors = wrong
    page = _form_page(typed, preview=drawn, errors=errors or {}, problem=problem, slug=slug, based_on=based_on)
    return render(request, "builder/form.html", {"page": page, "preview": drawn}, status=status)


def _form_page(
    typed: Typed,
    *,
    preview: Preview,
    errors: Mapping[str, str],
    problem: str = "",
    slug: str = "",
    based_on: int = 0,
) -> FormPage:
    family = typed["family"]
    return FormPage(
        heading=_("Version %(version)d of %(name)s") % {"version": based_on + 1, "name": typed["name"] or slug}
        if slug
        else _("A new market"),
        lead=_("Games under earlier versions keep their rules; new ones follow this version.")
        if slug
        else _(
            "Say what is traded, who comes and what it is worth to them. What you see drawn is what will be played."
        ),
        action=reverse("builder-change", args=[slug]) if slug else reverse("builder-new"),
        back=(reverse("builder-versions", args=[slug]), _("Versions")) if slug else (reverse("builder"), _("Markets")),
        words={**typed.words, "shown_seats": shown_seats(typed), "shown_goods": typed["catalogue"]},
        slug=slug,
        based_on=based_on,
        problem=problem,
        errors=errors,
        families=_choices([(each.value, market_page.family_text(each)) for each in Family], family),
        mechanisms=_choices(_mechanisms(), typed["mechanism"]),
        catalogues=_choices(
            [
                *((each.slug, each.name) for each in Catalogue.objects.order_by("pk")),
                ("", _("none: goods without a name")),
            ],
            typed["catalogue"],
        ),
        categories=_choices([("", _("all")), *_categories(typed["catalogue"])], typed["category"]),
        prices=_choices(_prices(), typed["prices"]),
        parts=_choices(
            [("", _("the whole catalogue")), *((part.value, recipe_text.split_text(part)) for part in Split)],
            typed["split"],
        ),
        gains=_choices(
            [("", _("as they come")), *((each.value, recipe_text.gains_text(each)) for each in Gains)], typed["gains"]
        ),
        currencies=_choices([(code, code) for code in CURRENCIES], typed["currency"]),
        values=_spec_fields(typed, "values", errors),
        costs=_spec_fields(typed, "costs", errors),
        sellers=_agents(typed["seller_agent"], role=Role.SELLER, family=family),
        seller_voices=_voices(typed["seller_agent"]),
        buyers=_buyer_seats(typed, family),
        regulated=tuple(
            Choice(value=role.value, label=room_page.role_text(role), selected=role.value in typed.regulated)
            for role in Role
        ),
        preview=preview,
    )


def _choices(pairs: Sequence[tuple[str, str]], chosen: str) -> tuple[Choice, ...]:
    """The options of a select; what was sent and is none of them stays visible."""
    if chosen not in {value for value, _label in pairs}:
        pairs = [*pairs, (chosen, _("%(value)s (not known)") % {"value": chosen})]
    return tuple(Choice(value=value, label=label, selected=value == chosen) for value, label in pairs)


def _mechanisms() -> list[tuple[str, str]]:
    names = {
        "alternating": _("alternating rounds"),
        "seller_turns": _("the seller's messages"),
        "event_driven": _("event-driven, no turns"),
    }
    return [("", _("the family's usual one")), *((tag, names.get(tag, tag)) for tag in setup.MECHANISMS)]


def _categories(catalogue: str) -> list[tuple[str, str]]:
    found = (
        Product.objects.filter(catalogue__slug=catalogue)
        .exclude(category="")
        .order_by("category")
        .values_list("category")
        .annotate(count=Count("id"))
    )
    return [(category, f"{category_name(category)} ({count})") for category, count in found]


def _prices() -> list[tuple[str, str]]:
    middle = [(str(tier), _("fifth number %(tier)d") % {"tier": tier}) for tier in range(2, splits.TIERS)]
    return [
        ("", _("all")),
        ("1", _("the cheapest fifth")),
        *middle,
        (str(splits.TIERS), _("the dearest fifth")),
        (builder_form.OWN_RANGE, _("a range of my own")),
    ]


def _agents(chosen: str, *, role: Role, family: str) -> tuple[Choice, ...]:
    known = family if family in set(Family) else Family.BILATERAL.value
    pairs = [(spec.slug, spec.title) for spec in seating.opponents(role=role, family=Family(known))]
    chosen = chosen.partition(PERSONA_MARK)[0]
    if chosen and chosen not in dict(pairs):
        with suppress(UnknownAgent):  # One that cannot sit here, or talks in its own way: the preview says which.
            pairs.append((chosen, registry.get(chosen).title))
    return _choices(pairs, chosen or "linear")


def ways_of_talking() -> tuple[tuple[str, str], ...]:
    """Every way that an agent may be made to talk in, in words; the first is its own."""
    words = {
        Persona.BEGGING: _("begs"),
        Persona.INSULTING: _("insults"),
        Persona.UNYIELDING: _("says it will not move"),
        Persona.CHATTY: _("chats"),
        Persona.TERSE: _("is brief"),
        Persona.INJECTING: _("gives orders to its reader"),
    }
    return ("", _("its own way")), *((each.value, word) for each, word in words.items())


def _voices(chosen: str) -> tuple[Choice, ...]:
    """The ways of talking, with the one that a slug names."""
    return _choices(ways_of_talking(), chosen.partition(PERSONA_MARK)[2])


def _buyer_seats(typed: Typed, family: str) -> tuple[BuyerSeat, ...]:
    """One choice a buyer; seats without one follow the ones that have."""
    count = int(typed["buyers"]) if typed["buyers"].strip().isdecimal() and len(typed["buyers"]) < 4 else 1
    agents = typed.buyers or ("linear",)
    return tuple(
        BuyerSeat(
            name=_("Buyer %(letter)s") % {"letter": room_page.letter(buyer + 1)} if count > 1 else _("Buyer"),
            choices=_agents(agents[buyer % len(agents)], role=Role.BUYER, family=family),
            voice_name=_("How buyer %(letter)s talks") % {"letter": room_page.letter(buyer + 1)}
            if count > 1
            else _("How the buyer talks"),
            voices=_voices(agents[buyer % len(agents)]),
        )
        for buyer in range(min(max(count, 1), MAX_BUYERS))
    )


def _spec_fields(typed: Typed, side: Side, errors: Mapping[str, str]) -> SpecFields:
    chosen = typed[f"{side}_kind"]
    return SpecFields(
        side=side,
        kinds=tuple(
            SpecKind(
                value=form,
                label=_spec_words(form)[0],
                explanation=_spec_words(form)[1],
                selected=form == chosen,
                numbers=tuple(
                    NumberField(
                        name=builder_form.number_name(side, form, place),
                        label=_number_label(capitals),
                        value=typed[builder_form.number_name(side, form, place)],
                    )
                    for place, capitals in enumerate(NUMBERS.findall(form))
                ),
            )
            for form in FORMS[side]
        ),
        text=typed[f"{side}_text"] or builder_form.written(typed, side),
        as_text=chosen not in FORMS[side],
        written=builder_form.written(typed, side),
        error=errors.get(side, ""),
    )


def _spec_words(form: str) -> tuple[str, str]:
    """Name and explanation of a form; one that is new here is called by what is written."""
    words = {
        "bands": (
            _("Three bands"),
            _("Buyers are dealt over 0.40–0.55, 0.65–0.80 and 1.00–1.15; of three, one is in each."),
        ),
        "uniform:LO:HI": (_("Anywhere in a range"), _("All numbers from low to high are equally likely.")),
        "lognormal:MEDIAN:SIGMA": (
            _("Around a middle, with a long tail"),
            _("Half lie below the median; sigma is the standard deviation of the logarithm."),
        ),
        "constant:X": (_("Always the same"), _("Nothing is drawn.")),
        "bands*uniform:LO:HI": (
            _("Bands under a hidden factor"),
            _("The three bands times one factor that is drawn for each game and known to nobody."),
        ),
        "highest:SHARE": (
            _("From the product's highest price"),
            _("That share of its highest price, or of its list price where that is higher."),
        ),
        "range:LO:HI": (
            _("From the product's price range"),
            _("From that share of its lowest price up to its highest price plus that share of the range between."),
        ),
        "lowest": (_("The product's lowest price"), _("Looked up in the catalogue.")),
        "lowest:LO:HI": (
            _("Near the product's lowest price"),
            _("All numbers between the two shares of its lowest price are equally likely."),
        ),
    }
    return words.get(form, (form, ""))


def _number_label(capitals: str) -> str:
    labels = {
        "LO": _("from"),
        "HI": _("to"),
        "MEDIAN": _("median"),
        "SIGMA": _("sigma"),
        "X": _("value"),
        "SHARE": _("share"),
    }
    return labels.get(capitals, capitals.lower())


# --- Retiring ---------------------------------------------------------------------------------------


@require_POST
@for_builders
def retire(request: HttpRequest, slug: str) -> HttpResponse:
    """Takes one version (`version`) off the shelf, or all of them."""
    found = _versions(slug)
    number = request.POST.get("version", "")
    if not number:
        builder.retire_all(slug)
        messages.success(request, _("The market is retired. Games that are going on go on."))
        return redirect("builder-versions", slug=slug)
    builder.retire(_numbered(found, number))
    messages.success(request, _("Version %(version)s is retired. Games that are going on go on.") % {"version": number})
    return redirect("builder-versions", slug=slug)


@require_POST
@for_builders
def restore(request: HttpRequest, slug: str) -> HttpResponse:
    """Puts a retired version back."""
    market = _numbered(_versions(slug), request.POST.get("version", ""))
    builder.restore(market)
    messages.success(request, _("Version %(version)d can be played again.") % {"version": market.version})
    return redirect("builder-versions", slug=slug)


def _numbered(found: list[Market], number: str) -> Market:
    market = next((market for market in found if str(market.version) == number), None)
    if market is None:
        raise Http404(_("This market has no such version."))
    return market
