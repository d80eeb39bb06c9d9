"""The offers of a finished negotiation over its turns, and what each would have brought both sides if accepted there.

Here: the arithmetic, from a game's scenario and log or from an imported dialogue, and the plot with its table. Not
here: who may see it; whoever may read a transcript may see everything in it, values included (`access`).

Contract: at a price p a seller with cost c gains p - c and a buyer with value v gains v - p; the seller's part is
(p - c) / (v - c), undefined without gains from trade (v <= c) or where a value is not known. Nothing is clamped: a part
under 0 or over 1 says that somebody would have lost.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from markets import room_page
from markets.engine import metrics
from markets.engine.money import Cents, format_amount
from markets.engine.protocol import LogEntry, OfferAccepted, OfferMade, Role
from markets.engine.scenarios import Scenario
from markets.importers.transcripts.records import Dialogue
from markets.presentation import Choice
from negotiation_site.dashboards import BUYER, GAIN, REFERENCE, SELLER, SERIES, YOU, Chart, axis, plot
from negotiation_site.leaderboard.words import percent, signed

Money = Callable[[Cents], str]


@dataclass(frozen=True)
class Step:
    """One price that was offered, or agreed."""

    n: int
    """Number of the event."""
    by: Role
    """Who offered it; whose offer it was, of a deal."""
    buyer: int
    product: int
    price_cents: Cents
    deal: bool = False
    cost_cents: Cents | None = None
    value_cents: Cents | None = None

    @property
    def seller_cents(self) -> Cents | None:
        """What the seller would gain."""
        return self._gain(Role.SELLER, self.cost_cents)

    @property
    def buyer_cents(self) -> Cents | None:
        """What the buyer would gain."""
        return self._gain(Role.BUYER, self.value_cents)

    def _gain(self, role: Role, own_cents: Cents | None) -> Cents | None:
        if own_cents is None:
            return None
        return metrics.surplus_cents(role=role, price_cents=self.price_cents, reservation_value_cents=own_cents)

    @property
    def seller_part(self) -> float | None:
        """The seller's part of what the two would gain together."""
        if self.seller_cents is None or self.buyer_cents is None:
            return None
        return metrics.surplus_share(own_cents=self.seller_cents, joint_cents=self.seller_cents + self.buyer_cents)


@dataclass(frozen=True)
class Level:
    """A price that does not move: somebody's limit, a target, the list price."""

    cents: Cents
    label: str
    colour: str
    dash: str = "dot"


@dataclass(frozen=True)
class Path:
    """Every step about one product, with the levels it is read against."""

    steps: tuple[Step, ...]
    levels: tuple[Level, ...] = ()
    zone: tuple[Cents, Cents] | None = None
    """From the seller's cost to the highest value, where that is a zone."""
    several_buyers: bool = False


@dataclass(frozen=True)
class StepRow:
    """A line of the table."""

    n: int
    who: str
    price: str
    seller: str
    buyer: str
    part: str
    deal: bool
    role: str


@dataclass(frozen=True)
class Picture:
    """Plot and table of one product. Partial `reading_room/_price_path.html` (`picture`)."""

    chart: Chart
    rows: tuple[StepRow, ...]
    products: tuple[Choice, ...] = ()
    """To choose from, where there are several."""
    knows_values: bool = True


# --- From a record --------------------------------------------------------------------------------------


def of_game(scenario: Scenario, log: Iterable[LogEntry], *, product: int) -> Path:
    """The path of one product of a game."""
    steps: list[Step] = []
    costs, values = scenario.seller_values_cents, scenario.buyer_values_cents

    def add(n: int, by: Role, event: OfferMade | OfferAccepted, *, deal: bool = False) -> None:
        if event.product == product:
            value = values[event.buyer - 1][product]
            steps.append(Step(n, by, event.buyer, product, event.price_cents, deal, costs[product], value))

    for entry in log:
        match entry.event:
            case OfferMade() as event:
                add(entry.n, event.by, event)
            case OfferAccepted() as event:
                add(entry.n, event.by.other, event, deal=True)
            case _:
                pass
    cost, highest = costs[product], max(own[product] for own in values)
    levels = [Level(cost, _("seller's cost"), SELLER)]
    for buyer, own in enumerate(values, start=1):
        name = _("buyer's value") if len(values) == 1 else room_page.letter(buyer)
        levels.append(Level(own[product], name, BUYER))
    return Path(tuple(steps), tuple(levels), (cost, highest) if cost < highest else None, len(values) > 1)


def products_in(log: Iterable[LogEntry]) -> list[int]:
    """Products that a price was named for, those that were sold first."""
    named: dict[int, int] = {}
    for entry in log:
        if isinstance(entry.event, OfferMade | OfferAccepted):
            bonus = 1_000 if isinstance(entry.event, OfferAccepted) else 1
            named[entry.event.product] = named.get(entry.event.product, 0) + bonus
    return sorted(named, key=lambda product: (-named[product], product))


def of_dialogue(dialogue: Dialogue) -> Path:
    """The formal offers of an imported dialogue about a price; without steps where it was about something else."""
    if not dialogue.currency:
        return Path(())
    sides = {side.role: side for side in dialogue.sides if side.role}
    roles = {side.party: Role(side.role) for side in dialogue.sides if side.role}
    seller, buyer = sides.get("seller"), sides.get("buyer")
    cost = seller.reservation_value_cents if seller else None
    value = buyer.reservation_value_cents if buyer else None
    steps, last = [], None
    for event in dialogue.events:
        if event.type == "offer" and event.price_cents is not None and event.party in roles:
            last = Step(event.n, roles[event.party], 1, 0, event.price_cents, False, cost, value)
            steps.append(last)
        elif event.type == "accept" and dialogue.price_cents is not None and event.party in roles:
            by = last.by if last is not None else roles[event.party].other
            steps.append(Step(event.n, by, 1, 0, dialogue.price_cents, True, cost, value))
    levels = []
    for side, colour, limit, target in (
        (seller, SELLER, _("seller's cost"), _("seller's target")),
        (buyer, BUYER, _("buyer's value"), _("buyer's target")),
    ):
        if side is not None and side.reservation_value_cents is not None:
            levels.append(Level(side.reservation_value_cents, limit, colour))
        elif side is not None and side.target_cents is not None:
            levels.append(Level(side.target_cents, target, colour, "dashdot"))
    if dialogue.list_price_cents is not None:
        levels.append(Level(dialogue.list_price_cents, _("list price"), REFERENCE, "longdash"))
    zone = (cost, value) if cost is not None and value is not None and cost < value else None
    return Path(tuple(steps), tuple(levels), zone)


# --- In words and as a picture --------------------------------------------------------------------------


def money_of(scenario: Scenario) -> Money:
    """Amounts of a scenario as text."""
    return lambda cents: format_amount(cents, scenario.currency)


def gains_text(step: Step, money: Money) -> str:
    """What taking the offer would have brought both, in one line; empty where it is not known."""
    if step.seller_cents is None or step.buyer_cents is None:
        return ""
    words = {"seller": signed(money(step.seller_cents)), "buyer": signed(money(step.buyer_cents))}
    if step.seller_part is None:
        return _("seller %(seller)s, buyer %(buyer)s: there was nothing to share") % words
    part = percent(step.seller_part, digits=0)
    return _("seller %(seller)s, buyer %(buyer)s: %(part)s for the seller") % (words | {"part": part})


def picture(path: Path, *, element: str, money: Money, products: Sequence[Choice] = ()) -> Picture | None:
    """The plot and its table; None where no price was named."""
    if not path.steps:
        return None
    rows = tuple(_row(step, path, money) for step in path.steps)
    traces = [*_offers(path, money), *_deals(path, money)]
    chart = plot(
        element,
        title=_("How did the offers move towards each other?"),
        caption=_("Every price named, by turn"),
        note=_note(path),
        traces=traces,
        columns=(),
        rows=(),
        x=axis(_("turn"), dtick=_tick(path.steps[-1].n), range=[0.5, path.steps[-1].n + 0.5]),
        y=axis(_("price"), tickformat=",.0f" if _span(path) > 500 else ",.2f"),
        shapes=_shapes(path),
        annotations=_labels(path, money),
        showlegend=True,
    )
    return Picture(chart, rows, tuple(products), any(step.seller_part is not None for step in path.steps))


def _note(path: Path) -> str:
    """How the picture is read."""
    parts = []
    if path.zone:
        parts.append(_("The shaded band is the zone of possible agreement: a price in it gains both sides something."))
    if path.several_buyers:
        parts.append(_("A letter at the edge is what this buyer valued it at; the band reaches up to the highest."))
    return " ".join(parts)


def _row(step: Step, path: Path, money: Money) -> StepRow:
    def amount(cents: Cents | None) -> str:
        return "–" if cents is None else signed(money(cents))

    part = step.seller_part
    return StepRow(
        n=step.n,
        who=_("deal") if step.deal else _who(step, path),
        price=money(step.price_cents),
        seller=amount(step.seller_cents),
        buyer=amount(step.buyer_cents),
        part="–" if part is None else percent(part, digits=0),
        deal=step.deal,
        role="" if step.deal else step.by.value,
    )


def _who(step: Step, path: Path) -> str:
    if not path.several_buyers:
        return room_page.role_text(step.by)
    letter = room_page.letter(step.buyer)
    return _("Seller to %(who)s") % {"who": letter} if step.by is Role.SELLER else _("Buyer %(who)s") % {"who": letter}


def _offers(path: Path, money: Money) -> list[dict[str, Any]]:
    """A line for each side of each thread."""
    threads = sorted({(step.buyer, step.by is not Role.SELLER) for step in path.steps if not step.deal})
    found = []
    for number, (buyer, buying) in enumerate(threads):
        steps = [
            step
            for step in path.steps
            if not step.deal and step.buyer == buyer and (step.by is not Role.SELLER) == buying
        ]
        colour, symbol, dash = (BUYER, "circle", "solid") if buying else (SELLER, "square", "dash")
        if path.several_buyers:
            symbol = SERIES[(buyer - 1) % len(SERIES)][1]
        found.append(
            _trace(steps, _who(steps[0], path), money)
            | {
                "mode": "lines+markers",
                "line": {"color": colour, "width": 2, "dash": dash},
                "marker": {"color": colour, "size": 9, "symbol": symbol},
                "legendrank": number,
            }
        )
    return found


def _deals(path: Path, money: Money) -> list[dict[str, Any]]:
    steps = [step for step in path.steps if step.deal]
    if not steps:
        return []
    mark = {"color": YOU, "size": 14, "symbol": "diamond"}
    return [_trace(steps, _("deal"), money) | {"mode": "markers", "marker": mark}]


def _trace(steps: Sequence[Step], name: str, money: Money) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [step.n for step in steps],
        "y": [step.price_cents / 100 for step in steps],
        "name": name,
        "text": [" · ".join(filter(None, (money(step.price_cents), gains_text(step, money)))) for step in steps],
        "hovertemplate": _("turn %(turn)s: %(text)s") % {"turn": "%{x}", "text": "%{text}"} + "<extra></extra>",
    }


def _shapes(path: Path) -> list[dict[str, Any]]:
    across = {"xref": "paper", "x0": 0, "x1": 1, "layer": "below"}
    shapes: list[dict[str, Any]] = []
    if path.zone is not None:
        low, high = path.zone
        band = {"y0": low / 100, "y1": high / 100, "fillcolor": GAIN, "opacity": 0.14, "line": {"width": 0}}
        shapes.append({"type": "rect"} | across | band)
    for level in path.levels:
        line = {"color": level.colour, "width": 1.5, "dash": level.dash}
        shapes.append({"type": "line"} | across | {"y0": level.cents / 100, "y1": level.cents / 100, "line": line})
    return shapes


def _labels(path: Path, money: Money) -> list[dict[str, Any]]:
    """Names of the levels at the right edge; a name that would lie on another goes under its line."""
    span, found, before = max(_span(path), 0.01), [], None
    for level in sorted(path.levels, key=lambda level: level.cents):
        height = level.cents / 100
        crowded = before is not None and (height - before) / span < 0.07
        found.append(
            {
                "xref": "paper",
                "x": 0.01 if crowded else 0.99,
                "xanchor": "left" if crowded else "right",
                "y": height,
                "yanchor": "bottom",
                "text": f"{level.label} {money(level.cents)}",
                "showarrow": False,
                "font": {"size": 12, "color": level.colour},
            }
        )
        before = None if crowded else height
    return found


def _span(path: Path) -> float:
    """From the lowest to the highest price of the picture, in units of money."""
    prices = [*(step.price_cents for step in path.steps), *(level.cents for level in path.levels)]
    return (max(prices) - min(prices)) / 100


def _tick(turns: int) -> int:
    return max(1, round(turns / 10))
