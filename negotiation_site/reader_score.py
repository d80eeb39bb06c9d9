"""How well the reader of prices in talk does on a corpus of human bargaining.

The corpus says at what price a dialogue ended and which formal offers were made in it; it does not
say what each line of chat means. So the figures are these, and no more:

- `final_price_accuracy`: dialogues with a deal in which the last price that the reader takes from
  the chat is the price of the deal / dialogues with a deal. A reduction ("$5 off") comes off the
  price read before it. `last_number_accuracy` is the same for the last number typed.
- `offer_recall`: lines whose only number is the price of a formal offer of that dialogue, and that
  the reader takes as an offer of just that / those lines.
- `offer_precision`: lines taken as one offer whose amount is a formal offer of that dialogue or
  lies between .25 and 1.5 times the list price / lines taken as one offer.
- `confusion`: for each line, what its digits alone suggest (none, one or several numbers in that
  range, or only others) against the kind that was read. It is a picture, not an error count: "not
  more than 120" is one number in range and rightly no offer.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from markets.engine.money import Cents
from markets.engine.talk_prices import ReadingKind, find_prices
from markets.importers.craigslist_bargain import Dialogue

_NUMBER = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?")
_PLAUSIBLE = (0.25, 1.5)
CURRENCY = "USD"


def score(dialogues: Sequence[Dialogue]) -> dict[str, Any]:
    """The figures, with their counts; a rate is None where nothing could be counted."""
    deals = finals = naive = 0
    taken = taken_rightly = stated = stated_found = lines = 0
    confusion: dict[str, Counter[str]] = {}
    for dialogue in dialogues:
        last: Cents | None = None
        last_number: Cents | None = None
        for line in dialogue.lines:
            lines += 1
            reading = find_prices(line.text, currency=CURRENCY, list_price_cents=dialogue.list_price_cents)
            if reading.last_cents is not None:
                last = reading.last_cents
            elif reading.off_cents is not None and last is not None and reading.off_cents < last:
                last -= reading.off_cents
            numbers = _numbers(line.text)
            last_number = numbers[-1] if numbers else last_number
            confusion.setdefault(_suggested(numbers, dialogue), Counter())[reading.kind.value] += 1
            if reading.kind is ReadingKind.OFFER and reading.cents is not None:
                taken += 1
                taken_rightly += reading.cents in dialogue.offers_cents or _is_plausible(reading.cents, dialogue)
            if len(set(numbers)) == 1 and numbers[0] in dialogue.offers_cents:
                stated += 1
                stated_found += reading.cents == numbers[0]
        if dialogue.deal_cents is not None:
            deals += 1
            finals += last == dialogue.deal_cents
            naive += last_number == dialogue.deal_cents
    return {
        "dialogues": len(dialogues),
        "deals": deals,
        "messages": lines,
        "final_price_accuracy": _rate(finals, deals),
        "last_number_accuracy": _rate(naive, deals),
        "offer_precision": _rate(taken_rightly, taken),
        "offer_recall": _rate(stated_found, stated),
        "offers_read": taken,
        "offers_stated": stated,
        "confusion": {kind: dict(sorted(counts.items())) for kind, counts in sorted(confusion.items())},
    }


def _numbers(text: str) -> list[Cents]:
    """Every number of a line in cents, as digits and nothing more."""
    return [round(float(match[0].replace(",", "")) * 100) for match in _NUMBER.finditer(text) if len(match[0]) < 16]


def _is_plausible(cents: Cents, dialogue: Dialogue) -> bool:
    low, high = (share * dialogue.list_price_cents for share in _PLAUSIBLE)
    return low <= cents <= high


def _suggested(numbers: Sequence[Cents], dialogue: Dialogue) -> str:
    if not numbers:
        return "none"
    plausible = {cents for cents in numbers if _is_plausible(cents, dialogue)}
    return "non_price" if not plausible else "offer" if len(plausible) == 1 else "several"


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None
