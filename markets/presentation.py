"""What the pages are told: frozen dataclasses, and the geometry of the price line.

Here lives the vocabulary between views and templates: one dataclass per thing that a template
draws, with money already written as text, and `price_line`, which turns marks in cents into
positions whose labels never collide. Views, consumers and services fill these from selectors;
templates read them and nothing else.

What does not live here: Django, the database, the engine's rules, the wording of sentences (they
are translated where they are made, in views and templates) and the reading or printing of amounts
(`engine.money` does both; this module is handed text, or a function that writes an axis tick).

Contract: everything is immutable and holds plain values. Positions are strings such as `"37.50%"`
and whole pixels, so that no locale can turn a point into a comma inside an SVG attribute. Nothing
here decides what a seat may see: whoever fills these has passed `engine.observation` first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

Role = Literal["seller", "buyer"]
ConsentScope = Literal["", "private", "research", "public"]
HistoryOutcome = Literal["deal", "impasse", "no_deal_possible", "abandoned", "running"]

CONSENT_VERSION = "2026-11-a"
"""Names the wording of `templates/markets/_consent.html`; a changed wording gets a new version."""

# --- The price line ---------------------------------------------------------------------------


class MarkKind(StrEnum):
    """What a mark on the price line stands for; each has one shape everywhere."""

    RESERVATION = "reservation"
    """Your own reservation value: a post whose pennant points to the prices that gain."""
    THEIR_RESERVATION = "their_reservation"
    """The other side's reservation value, only once it is revealed: the same post in their colour."""
    LIST = "list"
    """The public list price: a small hollow triangle."""
    THEIR_OFFER = "their_offer"
    """The other side's standing offer: a disc for a buyer, a square for a seller."""
    YOUR_OFFER = "your_offer"
    """Your own standing offer: a disc for a buyer, a square for a seller, with a ring."""
    PAST_OFFER = "past_offer"
    """An offer that no longer stands (replay and result): small, faint, without a label."""
    DEAL = "deal"
    """The agreed price: a large double disc."""
    PREVIEW = "preview"
    """The price being typed: your offer's shape in outline."""


ABOVE = frozenset({MarkKind.RESERVATION, MarkKind.THEIR_RESERVATION, MarkKind.LIST})
"""Kinds labelled above the axis (what things are worth); the others are labelled below (offers)."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One price on the line, before it has a place."""

    kind: MarkKind
    cents: int
    """Price in cents of the market's currency."""
    label: str
    """Who or what, short and translated: "you", "seller", "Buyer B", "list price", "deal"."""
    money: str
    """The price as text: "$84.00"."""
    role: Role | Literal[""] = ""
    """Whose mark it is; gives the colour and, for offers, the shape. Empty for list price and deal."""
    you: bool = False
    """True when the mark belongs to the person looking."""
    key: str = ""
    """Stable name across updates ("their_offer-2"), so that a moving offer can be shown moving.
    Left empty it is the kind."""


@dataclass(frozen=True, kw_only=True)
class PlacedMark:
    """A mark with its place; all that `_price_line.html` draws."""

    kind: str
    label: str
    money: str
    role: str
    you: bool
    key: str
    x: str
    """Horizontal position, "0.00%" to "100.00%"."""
    above: bool
    """Labelled above the axis (values) or below it (offers)."""
    lane: int
    """Row of the label, 0 next to the axis; -1 when the mark has no label."""
    anchor: Literal["start", "middle", "end"]
    """SVG text-anchor of the label."""
    dx: int
    """Pixels between the mark's x and the label's anchor point."""
    label_y: int
    """Baseline of the label in pixels."""
    leader_y: int
    """Where the thin line from the mark to its label ends."""
    off: Literal["", "low", "high"] = ""
    """Set when the price is so far away that it is pinned to the end of the axis with an arrow."""

    @property
    def points_right(self) -> bool:
        """A seller gains to the right of its value, a buyer to the left."""
        return self.role == "seller"


@dataclass(frozen=True, kw_only=True)
class Tick:
    """A labelled position on the axis."""

    x: str
    text: str
    """The amount as text; empty where an offer's leader passes and would strike it through."""
    anchor: Literal["start", "middle", "end"] = "middle"


@dataclass(frozen=True, kw_only=True)
class Band:
    """A stretch of the axis with a meaning."""

    kind: Literal["gain", "agreement"]
    """`gain`: prices that are worth something to you. `agreement`: the zone of possible agreement,
    only once both values are revealed."""
    x: str
    width: str
    role: Role | Literal[""] = ""


@dataclass(frozen=True, kw_only=True)
class PriceLine:
    """The motif of the product: one axis of prices. Drawn by `markets/_price_line.html`."""

    title: str
    """Accessible name, one sentence that says the finding: "You value this at $84.00; the seller
    asks $92.00, above your value." """
    marks: tuple[PlacedMark, ...]
    bands: tuple[Band, ...]
    ticks: tuple[Tick, ...]
    height: int
    """Height of the drawing in pixels; the width is the container's."""
    axis_y: int
    tick_y: int
    span_cents: int
    """Width of the axis in cents, so that a page can place the price being typed."""
    axis_text: str = ""
    """Unit of the axis where it is not plain from the labels ("price per item, US dollars")."""


REFERENCE_WIDTH_PX = 300
"""Labels are laid out for a line this narrow (a phone); a wider line only has more room."""
CHARACTER_PX = 7.4
"""Width of one character of a label, generous for the widest fallback font at 13 px."""
LANE_PX = 20
LABEL_GAP_PX = 8
LABEL_OFFSET_PX = 5
MARK_ROOM_PX = 16
TICK_ROOM_PX = 18
FAR_FACTOR = 1.6
"""An offer further outside the core range than this many times its width is pinned to the edge."""
SEARCH_LIMIT = 250
"""Positions tried for each number of rows before a thin line may pass through a text."""
SEARCH_ROWS = 4


@dataclass(frozen=True, kw_only=True)
class Label:
    """A label to place: where its mark is (0..1) and how wide it is (fraction of the line)."""

    x: float
    width: float


@dataclass(frozen=True, kw_only=True)
class Slot:
    """Where a label went: its row, and the stretch of the line that its text covers."""

    lane: int
    anchor: Literal["start", "middle", "end"]
    left: float
    right: float


def lay_out(labels: Sequence[Label], *, width_px: int = REFERENCE_WIDTH_PX) -> tuple[Slot, ...]:
    """Give every label a row and an anchor so that no two texts overlap.

    Prefers few rows, then centred text, and an arrangement in which no thin line from a mark to a
    far row passes through a text in a nearer row. A line so crowded that no such arrangement is
    found within `SEARCH_LIMIT` tries is packed without that last wish. Texts stay inside 0..1
    unless one is too wide for its place. Slots come back in the order of `labels`.
    """
    order = sorted(range(len(labels)), key=lambda index: (labels[index].x, index))
    options = [_stretches(labels[index], width_px=width_px) for index in order]
    places = [labels[index].x for index in order]
    found: list[Slot] | None = None
    for rows in range(1, min(SEARCH_ROWS, len(labels)) + 1):
        found = _search(options, places, rows=rows, width_px=width_px)
        if found is not None:
            break
    if found is None:
        found = _pack(options, width_px=width_px)
    slots = dict(zip(order, found, strict=True))
    return tuple(slots[index] for index in range(len(labels)))


def _stretches(label: Label, *, width_px: int) -> list[Slot]:
    """Where one label's text can lie in row 0, best first."""
    offset = LABEL_OFFSET_PX / width_px
    stretches: list[tuple[Literal["start", "middle", "end"], float]] = [
        ("middle", label.x - label.width / 2),
        ("start", label.x + offset),
        ("end", label.x - offset - label.width),
    ]
    slots = [Slot(lane=0, anchor=anchor, left=left, right=left + label.width) for anchor, left in stretches]
    inside = [slot for slot in slots if slot.left >= 0 and slot.right <= 1]
    return inside or [slots[1] if label.x < 0.5 else slots[2]]


def _search(options: list[list[Slot]], places: list[float], *, rows: int, width_px: int) -> list[Slot] | None:
    """Depth-first search for an arrangement in `rows` rows; None when there is none in reach."""
    gap = LABEL_GAP_PX / width_px
    hair = 1 / width_px
    placed: list[Slot] = []
    tries = 0

    def fits(x: float, slot: Slot, lane: int) -> bool:
        for other, other_x in zip(placed, places, strict=False):
            if lane == other.lane:
                if slot.left < other.right + gap and other.left < slot.right + gap:
                    return False
            elif lane < other.lane:
                if slot.left - hair < other_x < slot.right + hair:
                    return False
            elif other.left - hair < x < other.right + hair:
                return False
        return True

    def place(index: int) -> bool:
        nonlocal tries
        if index == len(options):
            return True
        for lane in range(rows):
            for slot in options[index]:
                tries += 1
                if tries > SEARCH_LIMIT:
                    return False
                if fits(places[index], slot, lane):
                    placed.append(replace(slot, lane=lane))
                    if place(index + 1):
                        return True
                    placed.pop()
        return False

    return placed if place(0) else None


def _pack(options: list[list[Slot]], *, width_px: int) -> list[Slot]:
    """Every label in the nearest row where its text touches no other; always succeeds."""
    gap = LABEL_GAP_PX / width_px
    placed: list[Slot] = []
    for stretches in options:
        free = (
            replace(slot, lane=lane)
            for lane in range(len(options))
            for slot in stretches
            if not any(
                other.lane == lane and slot.left < other.right + gap and other.left < slot.right + gap
                for other in placed
            )
        )
        placed.append(next(free))
    return placed


def axis_step_cents(span_cents: int, *, most_ticks: int = 5) -> int:
    """The smallest of 1, 2, 2.5 or 5 times a power of ten cents with at most `most_ticks` steps."""
    power = 1
    while True:
        for step in (power, 2 * power, power * 5 // 2 if power >= 10 else 0, 5 * power):
            if step and span_cents <= step * most_ticks:
                return step
        power *= 10


def price_line(
    *,
    title: str,
    marks: Sequence[Mark],
    money: Callable[[int], str],
    core: tuple[int, int] | None = None,
    gain_for: Role | None = None,
    agreement: tuple[int, int] | None = None,
    axis_text: str = "",
) -> PriceLine:
    """Place marks on an axis.

    `core` is the range in cents that the axis always shows (a room passes one that does not depend
    on the moves, so that the axis stays still while offers travel); without it the axis fits the
    marks. Values, list price and deal always fit; an offer further out than `FAR_FACTOR` widths of
    that range is pinned to the edge. `money` writes a tick: `money(8000) == "$80"`. `gain_for`
    shades the side of your own value where a deal is worth something to that role. `agreement` is
    the zone (seller's value, buyer's value) once revealed; an empty zone (first > second) is not
    drawn.
    """
    low, high = _axis_range(marks=marks, core=core)
    step = axis_step_cents(high - low)
    low, high = low // step * step, -(-high // step) * step
    span = high - low

    def position(cents: int) -> float:
        return min(1.0, max(0.0, (cents - low) / span))

    slots = _mark_slots(marks, position=position)
    rows_above = 1 + max((s.lane for m, s in slots if s and m.kind in ABOVE), default=-1)
    rows_below = 1 + max((s.lane for m, s in slots if s and m.kind not in ABOVE), default=-1)
    axis_y = rows_above * LANE_PX + MARK_ROOM_PX
    tick_y = axis_y + MARK_ROOM_PX + 10
    below_y = axis_y + MARK_ROOM_PX + TICK_ROOM_PX
    placed = tuple(
        _placed(mark, slot, x=position(mark.cents), low=low, high=high, axis_y=axis_y, below_y=below_y)
        for mark, slot in slots
    )
    leaders = [position(mark.cents) for mark, slot in slots if slot and mark.kind not in ABOVE]
    amounts = range(low, high + 1, step)
    ticks = _ticks([(position(cents), money(cents)) for cents in amounts], leaders=leaders)
    return PriceLine(
        title=title,
        marks=placed,
        bands=_bands(marks, position=position, gain_for=gain_for, agreement=agreement),
        ticks=ticks,
        height=below_y + rows_below * LANE_PX + 2,
        axis_y=axis_y,
        tick_y=tick_y,
        span_cents=span,
        axis_text=axis_text,
    )


def _axis_range(*, marks: Sequence[Mark], core: tuple[int, int] | None) -> tuple[int, int]:
    """Range in cents that the axis must show, never empty and never below zero."""
    fixed = [mark.cents for mark in marks if mark.kind in ABOVE or mark.kind is MarkKind.DEAL]
    offers = [mark.cents for mark in marks if mark.kind not in ABOVE]
    anchors = [*(core or ()), *fixed] or offers or [0, 10_000]
    low, high = min(anchors), max(anchors)
    width = max(high - low, high // 5, 100)
    reach_low, reach_high = low - FAR_FACTOR * width, high + FAR_FACTOR * width
    near = [cents for cents in offers if reach_low <= cents <= reach_high]
    low, high = min([low, *near]), max([high, *near])
    if core is None or high - low < width:
        margin = max((high - low) * 15 // 100, width // 4)
        low, high = low - margin, high + margin
    low = max(0, low)
    return low, max(high, low + 100)


def _mark_slots(marks: Sequence[Mark], *, position: Callable[[int], float]) -> list[tuple[Mark, Slot | None]]:
    """Every mark with the slot of its label, laid out on each side of the axis."""
    slots: dict[int, Slot] = {}
    for above in (True, False):
        indexes = [
            index
            for index, mark in enumerate(marks)
            if (mark.kind in ABOVE) is above and mark.kind is not MarkKind.PAST_OFFER
        ]
        labels = [
            Label(
                x=position(marks[index].cents),
                width=(len(marks[index].label) + 1 + len(marks[index].money)) * CHARACTER_PX / REFERENCE_WIDTH_PX,
            )
            for index in indexes
        ]
        slots.update(zip(indexes, lay_out(labels), strict=True))
    return [(mark, slots.get(index)) for index, mark in enumerate(marks)]


def _placed(mark: Mark, slot: Slot | None, *, x: float, low: int, high: int, axis_y: int, below_y: int) -> PlacedMark:
    above = mark.kind in ABOVE
    lane = slot.lane if slot else -1
    label_y = axis_y - MARK_ROOM_PX - lane * LANE_PX - 5 if above else below_y + lane * LANE_PX + 14
    anchor = slot.anchor if slot else "middle"
    if anchor == "middle":
        leader_y = label_y + 4 if above else label_y - 12
    else:
        leader_y = label_y - 10 if above else label_y + 2
    return PlacedMark(
        kind=str(mark.kind),
        label=mark.label,
        money=mark.money,
        role=mark.role,
        you=mark.you,
        key=mark.key or str(mark.kind),
        x=_percent(x),
        above=above,
        lane=lane,
        anchor=anchor,
        dx={"start": LABEL_OFFSET_PX, "middle": 0, "end": -LABEL_OFFSET_PX}[anchor],
        label_y=label_y,
        leader_y=leader_y,
        off="low" if mark.cents < low else "high" if mark.cents > high else "",
    )


def _ticks(amounts: Sequence[tuple[float, str]], *, leaders: Sequence[float]) -> tuple[Tick, ...]:
    """Ticks from left to right; a text that would touch another or be struck through is left out."""
    ticks = []
    free_from = 0.0
    for x, text in amounts:
        width = (len(text) * CHARACTER_PX + 6) / REFERENCE_WIDTH_PX
        left = min(max(0.0, x - width / 2), 1 - width)
        anchor: Literal["start", "middle", "end"] = (
            "start" if left > x - width / 2 else "end" if left < x - width / 2 else "middle"
        )
        struck = any(left < leader < left + width for leader in leaders)
        shown = left >= free_from and not struck
        if shown:
            free_from = left + width
        ticks.append(Tick(x=_percent(x), text=text if shown else "", anchor=anchor))
    return tuple(ticks)


def _bands(
    marks: Sequence[Mark],
    *,
    position: Callable[[int], float],
    gain_for: Role | None,
    agreement: tuple[int, int] | None,
) -> tuple[Band, ...]:
    bands = []
    own = next((mark for mark in marks if mark.kind is MarkKind.RESERVATION), None)
    if gain_for and own:
        x = position(own.cents)
        left, right = (x, 1.0) if gain_for == "seller" else (0.0, x)
        bands.append(Band(kind="gain", x=_percent(left), width=_percent(right - left), role=gain_for))
    if agreement and agreement[0] <= agreement[1]:
        left, right = position(agreement[0]), position(agreement[1])
        bands.append(Band(kind="agreement", x=_percent(left), width=_percent(right - left)))
    return tuple(bands)


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.2f}%"


# --- Products, card and threads of a room -----------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ProductFact:
    """Public facts of a product, the same for everybody."""

    index: int
    """Product number in the scenario, 0-based."""
    name: str
    category: str = ""
    text: str = ""
    """One or two sentences about the product."""
    list_price: str = ""
    """List price as text: "$120.00"."""
    image: str = ""
    """Path under static/, e.g. "img/categories/audio.svg"; empty draws the plain tile."""
    image_text: str = ""
    """Alternative text; empty when the picture only decorates."""
    stock: str = ""
    """"3 in stock", "one only", "sold out"; empty where it is not public."""


@dataclass(frozen=True, kw_only=True)
class CardProduct:
    """A product on the private card: what it is and what it is worth to you."""

    product: ProductFact
    value: str
    """Your reservation value as text: "$84.00"."""
    value_sentence: str
    """"You value this at $84.00." or "This costs you $52.00." """
    example_sentence: str = ""
    """"A deal at $70.00 is worth $14.00 to you." """
    line: PriceLine | None = None
    """The price line of this product with every standing offer that this seat may see."""
    sold_out: bool = False


@dataclass(frozen=True, kw_only=True)
class PrivateCard:
    """What only you know. Panel `panel-card`, partial `markets/_private_card.html` (`card`)."""

    role: Role
    role_text: str
    """"You are the buyer"."""
    products: tuple[CardProduct, ...]
    """One in a one-product market; all of them, in scenario order, in a catalogue."""
    rule_sentence: str = ""
    """What follows for the player: "Any price below your value gains; leaving is worth nothing." """


@dataclass(frozen=True, kw_only=True)
class EventItem:
    """One seat event in a thread's log. Partial `markets/_event_item.html` (`item`)."""

    seq: int
    """Number of the event for this seat, 1, 2, 3…"""
    thread: int
    """Thread (buyer number); 0 for an event of the whole negotiation, shown in every thread."""
    kind: Literal[
        "talk", "offer", "accept", "reject", "lapse", "sold_out", "leave", "refused", "passed", "deadline", "end"
    ]
    side: Literal["you", "them", "system"]
    author: str
    """"You", "Seller", "Buyer A"."""
    role: Role | Literal[""] = ""
    """Role of the author, for the colour."""
    sentence: str = ""
    """What happened, in words: "offered $72.00" after the author's name for an offer; a whole
    sentence ("Buyer A rejected your offer of $92.00.") for every other kind but talk."""
    talk: str = ""
    """Free text as typed; the template escapes it and keeps line breaks."""
    price: str = ""
    """Price of an offer or a deal as text."""
    product: str = ""
    """Product name where the market has several; else empty."""
    offer_id: int | None = None
    when: str = ""
    """"Turn 3", "Round 2 of 10" or a clock time; empty shows nothing."""


@dataclass(frozen=True, kw_only=True)
class StandingOffer:
    """An offer that still binds. Partial `markets/_standing_offers.html` (`thread`)."""

    offer_id: int
    """Number in its thread."""
    yours: bool
    """True for your own offer (nothing to accept), False for the other side's."""
    author: str
    role: Role
    price: str
    product: str = ""
    surplus_sentence: str = ""
    """Worth to you, shown before confirming: "A deal at $70.00 is worth $14.00 to you." """
    gains: bool = True
    """False when the deal would be worth less than nothing to you: the confirmation warns."""
    can_accept: bool = False
    """True when the rules let you accept it now."""
    can_reject: bool = False


@dataclass(frozen=True, kw_only=True)
class ProductOption:
    """A product in the composer's list."""

    index: int
    name: str
    note: str = ""
    """"list $120.00, yours costs $52.00"; shown after the name."""
    price_example: str = ""
    """Placeholder of the price field while this product is chosen."""


@dataclass(frozen=True, kw_only=True)
class Composer:
    """Where you write and make offers. Never replaced while the page is open."""

    thread: int
    may_act: bool
    """Whether the rules let you act in this thread at first paint; later `awaiting` says so."""
    products: tuple[ProductOption, ...] = ()
    """Two or more show a list; none or one show nothing."""
    currency_prefix: str = ""
    """"$" before the price field; empty when the sign follows."""
    currency_suffix: str = ""
    price_example: str = ""
    """Placeholder such as "70.00"."""
    clock: bool = False
    """Whether the market has a clock: then waiting and looking up prices are moves of their own."""


@dataclass(frozen=True, kw_only=True)
class ThreadPanel:
    """One conversation. Partials `_thread_status.html`, `_standing_offers.html` (`thread`)."""

    thread: int
    """Buyer number, 1-based: the id in `thread-<b>`, `log-<b>`, `panel-offers-<b>`…"""
    name: str
    """The other side: "Buyer A" for a seller, "Seller" for a buyer."""
    short_name: str
    """"A", for tabs and marks."""
    role: Role
    """Role of the other side."""
    who: str
    """What sits there, as far as it is public: "agent · Boulware", "a person", "an agent"."""
    status: Literal["yours", "theirs", "idle", "bought", "left", "over"]
    """`yours`: you may act; `theirs`: an answer is pending; `idle`: open, neither; then the ends."""
    status_text: str
    """"Waiting for your message", "Writing…", "Bought at $92.00", "Left"."""
    items: tuple[EventItem, ...]
    offers: tuple[StandingOffer, ...]
    composer: Composer
    line: PriceLine | None = None
    """For a seller with several buyers and one product, the thread's own small line; else None."""

    @property
    def open(self) -> bool:
        """Whether anything can still happen here."""
        return self.status in ("yours", "theirs", "idle")


@dataclass(frozen=True, kw_only=True)
class StatusBar:
    """Panel `panel-status`, partial `markets/_status_bar.html` (`status`)."""

    my_turn: bool
    turn_text: str
    """"Your turn", "Waiting for the seller", "The negotiation is over"."""
    turns_left: int | None = None
    """Seller only; a buyer is never told."""
    turns_total: int | None = None
    turns_text: str = ""
    """"5 of 8 turns left"."""
    round_text: str = ""
    """"Round 3 of 10" in the alternating mechanism."""
    ended: bool = False

    @property
    def pips(self) -> tuple[bool, ...]:
        """One per turn, True for those that are left."""
        total, left = self.turns_total or 0, self.turns_left or 0
        return tuple(turn >= total - left for turn in range(total))


@dataclass(frozen=True, kw_only=True)
class Consent:
    """Whether and for whom this game is kept. Partial `markets/_consent.html` (`consent`)."""

    url: str
    """Where the choice is posted (`scope`, `version`)."""
    chosen: ConsentScope = ""
    """Empty until the player has chosen; the composer waits for it."""
    version: str = CONSENT_VERSION


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Another person's seat is still open. Partial `markets/_waiting.html` (`waiting`)."""

    share_url: str
    """Absolute address of the share link."""
    seat_text: str
    """"The seller's seat is open." """
    fills_at_ms: int | None = None
    """Epoch milliseconds at which an agent takes the seat; None when it waits for ever."""
    fills_text: str = ""
    """"An agent takes the seat in 2 minutes if nobody comes." """
    cancel_url: str = ""
    """Where the host posts to give the room up; empty once anybody else has sat down."""


@dataclass(frozen=True, kw_only=True)
class RoomPage:
    """Context `page` of `markets/room.html`."""

    public_id: str
    title: str
    """Product name, or "12 products for 3 buyers" in a catalogue."""
    market_name: str
    market_url: str
    family: Literal["bilateral", "multi_buyer", "catalogue"]
    role: Role
    role_text: str
    """"Buyer" or "Seller"."""
    opponent_text: str
    """"against an agent, Boulware", "against 3 buyers"."""
    socket_path: str
    """"/ws/rooms/<id>/"."""
    view_url: str
    """JSON of the view frame for pages without a socket (`?after=n`)."""
    act_url: str
    """POST of an `act` frame for pages without a socket."""
    result_url: str
    """Fragment `markets/_result.html`, once ended."""
    seq: int
    """Last seat event in the first paint."""
    awaiting: tuple[int, ...]
    """Threads in which this seat may act now."""
    card: PrivateCard
    status: StatusBar
    threads: tuple[ThreadPanel, ...]
    consent: Consent
    waiting: Waiting | None = None
    result: Result | None = None
    """Set once the negotiation is over."""
    deadline_at_ms: int | None = None
    server_time_ms: int = 0
    talk_limit: int = 2000
    """Most characters of one message."""
    can_leave: bool = True
    leave_sentence: str = ""
    """What leaving means: "You get no deal, which is worth $0.00 to you." """
    report_url: str = ""
    """Where somebody at the table is reported; empty where nobody answers reports."""

    @property
    def ended(self) -> bool:
        return self.status.ended

    @property
    def several_threads(self) -> bool:
        return len(self.threads) > 1

    @property
    def client_data(self) -> dict[str, Any]:
        """What `room.js` reads from the page (through `json_script`)."""
        return {
            "socket": self.socket_path,
            "view": self.view_url,
            "act": self.act_url,
            "result": self.result_url,
            "room": self.public_id,
            "role": self.role,
            "seq": self.seq,
            "awaiting": list(self.awaiting),
            "my_turn": self.status.my_turn,
            "ended": self.ended,
            "waiting": self.waiting is not None,
            "fills_at": self.waiting.fills_at_ms if self.waiting else None,
            "consent": self.consent.chosen,
            "deadline_at": self.deadline_at_ms,
            "server_time": self.server_time_ms,
            "threads": [thread.thread for thread in self.threads],
        }


# --- The end of a room ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number of a result and what it is out of."""

    label: str
    """"Your share of the gain"."""
    value: str
    """"61 %"."""
    out_of: str = ""
    """"$23.00 of the $38.00 there was to share"."""
    note: str = ""
    """How it is computed or what it assumes, one sentence."""
    fraction: float | None = None
    """0..1 draws a bar under the number; None draws none."""
    term: str = ""
    """Anchor of the glossary's entry that the whole label leads to, where its words alone would not tell which."""

    @property
    def bar(self) -> str:
        """Width of the bar as an SVG length; empty without one."""
        return "" if self.fraction is None else _percent(min(1.0, max(0.0, self.fraction)))


@dataclass(frozen=True, kw_only=True)
class ThreadResult:
    """What one thread came to; a row of the table."""

    name: str
    who: str = ""
    outcome: Literal["deal", "left", "none"] = "none"
    outcome_text: str = ""
    """"Bought at $92.00", "Left after your second message", "No deal"."""
    product: str = ""
    their_value: str = ""
    """Revealed reservation value; empty when it stays private."""
    best_price_seen: str = ""
    """Their highest bid (for a seller), the seller's lowest ask (for a buyer)."""
    your_surplus: str = ""
    you: bool = False


@dataclass(frozen=True, kw_only=True)
class MatchRow:
    """One pair of the best matching of a catalogue."""

    product: str
    best_buyer: str
    """Who should have had it: "Buyer B", or "nobody"."""
    best_gain: str
    """Joint gain of that pair."""
    actual_buyer: str = ""
    actual_gain: str = ""
    same: bool = False


@dataclass(frozen=True, kw_only=True)
class Result:
    """The end of a room. Partial `markets/_result.html` (`result`).

    Percentages in sentences are joined with a no-break space (U+00A0), so that "61 %" stays whole.
    """

    outcome: Literal["deal", "impasse", "no_deal_possible", "abandoned"]
    headline: str
    """"You sold at $92.00 and took 61 % of the $38.00 there was to share." For an impasse: "No
    deal. There was $38.00 to share and it went to nobody." When none was possible: "There was no
    price both could accept; walking away was right." """
    detail: str = ""
    """A second, quieter sentence."""
    line: PriceLine | None = None
    """Both values, the zone, the deal and past offers; None when nothing may be revealed or a
    catalogue sold several products (then the tables say it)."""
    figures: tuple[Figure, ...] = ()
    """Own share; best attainable with full information; best attainable knowing only the prior
    (with the stated assumption about the counterpart in its note)."""
    threads: tuple[ThreadResult, ...] = ()
    """More than one shows the table."""
    matching: tuple[MatchRow, ...] = ()
    matching_sentence: str = ""
    """"Together you reached 84 % of the best total gain of $212.00." """
    hidden_note: str = ""
    """Why the other values are not shown, where a market keeps them; else empty."""
    rematch_url: str = ""
    """POST: the same market with roles swapped."""
    rematch_fields: tuple[tuple[str, str], ...] = ()
    """Hidden fields of that form as (name, value), e.g. (("seat", "seller"),)."""
    again_url: str = ""
    """POST: the same market and role with a new draw."""
    again_fields: tuple[tuple[str, str], ...] = ()
    replay_url: str = ""
    share_url: str = ""
    """Where the seat makes a link to show the result to others; empty where it may not."""
    record_url: str = ""
    history_url: str = ""
    market_url: str = ""

    @property
    def shows_their_values(self) -> bool:
        """Whether any conversation has a value to show; else the table goes without that column."""
        return any(row.their_value for row in self.threads)


@dataclass(frozen=True, kw_only=True)
class ReplayStep:
    """One event of a finished room, with the line as it stood after it."""

    number: int
    item: EventItem
    line: PriceLine | None
    heading: str
    """"Step 3 of 12"."""
    comment: str = ""
    """What it meant for the person looking: "Accepting now would have been worth $9.00." """


@dataclass(frozen=True, kw_only=True)
class ReplayPage:
    """Context `page` of `markets/replay.html`."""

    public_id: str
    title: str
    market_name: str
    headline: str
    """The result's headline."""
    role_text: str
    steps: tuple[ReplayStep, ...]
    room_url: str
    record_url: str
    several_threads: bool = False


# --- Markets ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MarketCard:
    """One market in a list. Partial `markets/_market_rows.html`."""

    slug: str
    name: str
    family: Literal["bilateral", "multi_buyer", "catalogue"]
    family_text: str
    """"One buyer, one product", "Several buyers, one product", "A catalogue"."""
    summary: str
    """One sentence."""
    url: str
    products_text: str
    """"1 product, $40 to $180", "12 products"."""
    buyers_text: str
    """"1 buyer", "3 buyers"."""
    length_text: str
    """"up to 10 rounds", "8 seller turns"."""
    image: str = ""
    """Path under static/."""
    roles: tuple[Role, ...] = ("seller", "buyer")
    played_text: str = ""
    """"played 214 times, deal in 71 %"; empty when never."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """An option of a filter or a select."""

    value: str
    label: str
    selected: bool = False


@dataclass(frozen=True, kw_only=True)
class MarketListPage:
    """Context `page` of `markets/market_list.html` and `markets/_market_rows.html`."""

    cards: tuple[MarketCard, ...]
    families: tuple[Choice, ...]
    """First one is "any" with value ""."""
    roles: tuple[Choice, ...]
    sorts: tuple[Choice, ...]
    query: str = ""
    count_text: str = ""
    """"9 markets", "2 of 9 markets"."""
    filtered: bool = False
    url: str = "/markets/"


@dataclass(frozen=True, kw_only=True)
class SeatChoice:
    """A seat that can be taken."""

    role: Role
    name: str
    """"Buyer"."""
    sentence: str
    """"You learn what the product is worth to you and try to pay less." """
    selected: bool = False
    opponents: tuple[OpponentChoice, ...] = ()
    """Who can sit opposite when you take this seat."""
    opponents_label: str = ""
    """"Who sells", "Who the buyers are"."""


@dataclass(frozen=True, kw_only=True)
class OpponentChoice:
    """An agent that can sit opposite."""

    value: str
    """Agent slug; "" lets the market choose."""
    name: str
    description: str
    """One line: "holds firm, gives way only near the end"."""
    selected: bool = False


@dataclass(frozen=True, kw_only=True)
class MarketPage:
    """Context `page` of `markets/market_detail.html`.

    The form posts `seat` (buyer|seller), `with` (agent|person), `opponent_buyer` and
    `opponent_seller` (the opponent chosen for that seat; the one of the other seat is ignored).
    """

    card: MarketCard
    products: tuple[ProductFact, ...]
    products_note: str = ""
    """"One is drawn for each game." """
    rules: tuple[str, ...] = ()
    """Plain sentences, in the order a player needs them."""
    public: tuple[str, ...] = ()
    """What everybody knows."""
    private: tuple[str, ...] = ()
    """What only one side knows."""
    seats: tuple[SeatChoice, ...] = ()
    play_url: str = ""
    person_wait_text: str = ""
    """"If nobody takes the other seat within 2 minutes, an agent does." """
    can_invite: bool = True
    after_text: str = ""
    """That values are not shown after the game, where a market keeps them."""
    retired_text: str = ""
    """That nobody plays here anew; there is no form then."""
    error: str = ""
    """Why the last attempt to play was refused; shown above the form."""


# --- Other pages ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RecentDeal:
    """A finished public game on the home page."""

    product: str
    price: str
    share_text: str
    """"the seller took 58 % of the gain"."""
    market_url: str = ""


@dataclass(frozen=True, kw_only=True)
class HomePage:
    """Context `page` of `home.html`."""

    line: PriceLine
    """A made-up negotiation, revealed."""
    play_url: str = "/markets/demo-bilateral/play/"
    markets_text: str = ""
    """"9 markets, 19 agents, 150 products"; empty shows nothing."""
    recent: tuple[RecentDeal, ...] = ()
    resume_url: str = ""
    """A room of this visitor that is still going; empty when none."""
    resume_text: str = ""
    first_url: str = ""
    """Where a guided first game begins; empty where there is none."""
    newcomer: bool = False
    """Whether this visitor has finished no game yet."""


@dataclass(frozen=True, kw_only=True)
class LobbyRow:
    """An open seat. Partial `markets/_lobby_rows.html` (`rows`)."""

    market_name: str
    product: str
    role: Role
    role_text: str
    """"Seller's seat"."""
    host: str
    """Pseudonym of who waits."""
    waiting_text: str
    """"waiting for 40 seconds"."""
    fills_text: str
    """"an agent takes it in 1 minute"."""
    join_url: str
    """Where the seat is taken; your own room where you are the one who waits."""
    yours: bool = False


@dataclass(frozen=True, kw_only=True)
class HistoryRow:
    """One game of this visitor. Partial `markets/_history_row.html` (`row`)."""

    public_id: str
    market_name: str
    product: str
    role: Role
    role_text: str
    opponent_text: str
    outcome: HistoryOutcome
    outcome_text: str
    """"Sold at $92.00", "No deal", "Still going"."""
    share_text: str
    """"61 % of $38.00"; empty when there is none."""
    when_text: str
    room_url: str
    consent: Consent
    replay_url: str = ""
    record_url: str = ""
    share: Figure | None = None
    """The same share as a figure, for its bar."""


@dataclass(frozen=True, kw_only=True)
class HistoryPage:
    """Context `page` of `history.html`."""

    pseudonym: str
    rows: tuple[HistoryRow, ...]
    next_url: str = ""
    """Next page of older games; empty at the end."""


@dataclass(frozen=True, kw_only=True)
class AgentRow:
    """An agent that can sit at a table. Used by `agents_list.html` (`page.groups`)."""

    slug: str
    name: str
    kind_text: str
    """"scripted", "language model", "trained here"."""
    description: str
    """One or two sentences: what it does, when it gives way."""
    roles: tuple[Role, ...]
    families_text: str
    source: str = ""
    """Where the strategy comes from: "Faratin, Sierra and Jennings 1998"."""
    version: str = ""


@dataclass(frozen=True, kw_only=True)
class AgentGroup:
    """Agents that belong together on the page."""

    heading: str
    sentence: str
    rows: tuple[AgentRow, ...]


@dataclass(frozen=True, kw_only=True)
class AgentsPage:
    """Context `page` of `agents_list.html`."""

    groups: tuple[AgentGroup, ...]


@dataclass(frozen=True, kw_only=True)
class GlossaryTerm:
    """A term of the discipline as used here."""

    anchor: str
    term: str
    definition: str
    formula: str = ""
    source: str = ""
    code_name: str = ""
    """Name in the code and in records: "surplus_share"."""
    lead: str = ""
    """The definition's first line: the plain sentence for players."""
    phrases: tuple[str, ...] = ()
    """Words on pages that lead here."""


@dataclass(frozen=True, kw_only=True)
class GlossaryPage:
    """Context `page` of `glossary.html`."""

    terms: tuple[GlossaryTerm, ...]


@dataclass(frozen=True, kw_only=True)
class AboutPage:
    """Context `page` of `about.html`."""

    version: str = ""
    protocol_version: str = ""
    training_stack: bool = False
    """Whether the full stack (training) is installed; the page says which."""
    counts: Mapping[str, str] = field(default_factory=dict)
    """Label -> number as text, such as {"episodes": "1,204"}."""
