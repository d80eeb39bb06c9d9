"""Dialogues of CraigslistBargain (He et al. 2018) as they lie in its JSON files.

Here: the strict reading of a file into dialogues. Not here: what is made of them. A record that
is no dialogue is left out and counted; a file that is no list of records is refused.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markets.engine.money import Cents


class CorpusError(ValueError):
    """A file that is not what it was said to be; the message is a sentence."""


@dataclass(frozen=True)
class Line:
    """One chat message."""

    agent: int
    text: str


@dataclass(frozen=True)
class Dialogue:
    """What a scorer of prices needs of one negotiation."""

    uuid: str
    list_price_cents: Cents
    lines: tuple[Line, ...]
    offers_cents: tuple[Cents, ...]
    """Prices of the formal offers, in order."""
    deal_cents: Cents | None
    """The price it ended with; None without a deal."""


def read_dialogues(path: Path) -> tuple[list[Dialogue], int]:
    """(dialogues, records that were none of them). Raises `CorpusError`."""
    try:
        records = json.loads(path.read_bytes())
    except OSError as error:
        raise CorpusError(f"The file {str(path)!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CorpusError(f"The file {str(path)!r} is not JSON: it may be truncated or of another format.") from error
    if not isinstance(records, list):
        raise CorpusError(f"The file {str(path)!r} holds no list of dialogues.")
    dialogues = [dialogue for record in records if (dialogue := _dialogue(record)) is not None]
    if records and not dialogues:
        raise CorpusError(f"None of the {len(records)} records of {str(path)!r} is a dialogue of CraigslistBargain.")
    return dialogues, len(records) - len(dialogues)


def _dialogue(record: Any) -> Dialogue | None:
    try:
        item = record["scenario"]["kbs"][0]["item"]
        list_price_cents = _cents(item["Price"])
        if list_price_cents is None:
            return None
        lines, offers = [], []
        for event in record["events"]:
            if event["action"] == "message":
                lines.append(Line(int(event["agent"]), str(event["data"])))
            elif event["action"] == "offer":
                offers.append(_cents((event["data"] or {}).get("price")))
        outcome = record.get("outcome") or {}
        agreed = outcome.get("reward") == 1
        deal_cents = _cents((outcome.get("offer") or {}).get("price")) if agreed else None
        uuid = str(record.get("uuid", ""))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None
    return Dialogue(
        uuid=uuid,
        list_price_cents=list_price_cents,
        lines=tuple(lines),
        offers_cents=tuple(price for price in offers if price is not None),
        deal_cents=deal_cents,
    )


def _cents(price: Any) -> Cents | None:
    """A positive price of the file in cents; None for what is none."""
    if isinstance(price, bool) or not isinstance(price, int | float) or not 0 < price < 1e8:
        return None
    return round(price * 100)
