"""How the sides of imported dialogues negotiated: deals, shares, first prices, how prices moved.

Here: figures of one side of one dialogue (`sides_of`) and of every corpus here (`every_side`). Not here: means over
them, pages.

Contract: what a corpus does not give is None. In corpora whose prices are talked about in
words, a price named is a formal offer or the last number of a message that lies between 30 and 150 % of the list price: a
rule of thumb of ours, and no fact of the corpus. A share is of the joint surplus where there are reservation values, else of
the way from the other's target to the own one, else of the points that would have been the most; `Side.share_of` says which.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from markets.engine.money import Cents
from markets.importers.transcripts import records
from markets.importers.transcripts.records import Dialogue
from markets.importers.transcripts.records import Side as RecordedSide
from markets.models import Corpus

LOWEST, HIGHEST = 0.3, 1.5
"""Parts of the list price between which a number in words is taken for a price."""
_NUMBER = re.compile(
    r"(?<![\w.,])\$?\s?(\d{1,3}(?:,\d{3})+|\d{1,7})(?:\.(\d{1,2}))?(k)?(?![\w%]|[.,]\d)", re.IGNORECASE
)


class ShareOf(StrEnum):
    """What a share is out of."""

    SURPLUS = "surplus"
    TARGETS = "targets"
    POINTS = "points"


class Side(NamedTuple):
    """What one side of one dialogue did and came to."""

    dialogue: str
    """Key of the dialogue, which both its sides share."""
    role: str
    """Seller, buyer, or empty where nobody sells."""
    deal: bool
    share: float | None
    share_of: ShareOf | None
    path: tuple[float, ...]
    """Every price it named ÷ list price, in order; empty where there is none."""
    price: float | None
    """Agreed price ÷ list price."""
    messages: int
    offers: int
    seconds: float | None


def sides_of(dialogue: Dialogue, said: Mapping[int, str]) -> Iterator[Side]:
    """Both sides; `said` are the words by event number."""
    paths = _paths(dialogue, said)
    for side in dialogue.sides:
        share, share_of = _share(dialogue, side)
        yield Side(
            dialogue=dialogue.key,
            role=side.role,
            deal=dialogue.outcome == "deal",
            share=share,
            share_of=share_of,
            path=tuple(paths.get(side.party, ())),
            price=dialogue.price_ratio,
            messages=side.messages,
            offers=side.offers,
            seconds=None if dialogue.duration_ms is None else dialogue.duration_ms / 1000,
        )


def _share(dialogue: Dialogue, side: RecordedSide) -> tuple[float | None, ShareOf | None]:
    if side.reservation_value_cents is not None:
        return side.surplus_share, ShareOf.SURPLUS
    if side.target_cents is not None:
        return side.target_share, ShareOf.TARGETS
    most = sum((side.points or {}).get(issue, 0) * units for issue, units in (dialogue.issues or {}).items())
    if side.payoff_points is None or not most:
        return None, ShareOf.POINTS if side.points else None
    return side.payoff_points / most, ShareOf.POINTS


def _paths(dialogue: Dialogue, said: Mapping[int, str]) -> dict[str, list[float]]:
    listed = dialogue.list_price_cents
    found: dict[str, list[float]] = {}
    if not listed:
        return found
    for event in dialogue.events:
        price = event.price_cents if event.type == "offer" else price_named(said.get(event.n, ""), listed)
        if price is not None:
            found.setdefault(event.party, []).append(price / listed)
    return found


def price_named(words: str, list_price_cents: Cents) -> Cents | None:
    """The last price of a message, by the rule of thumb; None where there is none."""
    named = None
    for match in _NUMBER.finditer(words):
        whole, part, thousands = match.groups()
        cents = (int(whole.replace(",", "")) * 100 + int((part or "0").ljust(2, "0"))) * (1000 if thousands else 1)
        if LOWEST * list_price_cents <= cents <= HIGHEST * list_price_cents:
            named = cents
    return named


def every_side(corpus: Corpus) -> Iterator[Side]:
    """The sides of all dialogues of a corpus."""
    rows = corpus.dialogues.order_by("id").prefetch_related("texts")
    for row in rows.iterator(chunk_size=500):
        said = {text.n: text.text for text in row.texts.all() if text.kind == "said"}
        yield from sides_of(records.decode(row.record), said)
