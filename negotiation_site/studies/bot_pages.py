"""Pages of a study as a bot reads them: forms with their fields, the data for scripts, offers on the table.

Contract: nothing is known here but HTML. What a page does not say is empty; nothing is guessed.
"""

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any


@dataclass
class Form:
    """A form of a page."""

    action: str
    method: str
    fixed: dict[str, str] = field(default_factory=dict)
    """Hidden fields."""
    choices: dict[str, list[str]] = field(default_factory=dict)
    """Values of radio buttons by name."""
    texts: dict[str, bool] = field(default_factory=dict)
    """Fields to write into, and whether they must be filled."""
    numbers: set[str] = field(default_factory=set)
    """Those of them that want a number."""


@dataclass
class Page:
    """What a bot needs of a page."""

    forms: list[Form] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    """JSON of the scripts that carry data, by their element's id."""
    text: str = ""
    """Words of headings and alerts, for a report."""

    @property
    def token(self) -> str:
        """What a POST has to carry."""
        return next((form.fixed[CSRF_FIELD] for form in self.forms if CSRF_FIELD in form.fixed), "")

    @property
    def state(self) -> str:
        """Where the participant is; empty on pages outside of a participation."""
        return str(self.data.get("study-data", {}).get("stamp", "")).split("-")[0]

    def form(self, ending: str) -> Form | None:
        """The form whose action ends so."""
        return next((form for form in self.forms if form.method == "post" and form.action.endswith(ending)), None)


CSRF_FIELD = "csrfmiddlewaretoken"


@dataclass(frozen=True)
class Offer:
    """An offer of the other side that can be accepted."""

    offer_id: int
    price: str
    loses: bool


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self.offers: list[Offer] = []
        self._form: Form | None = None
        self._script = ""
        self._loud = 0
        self._said: list[str] = []
        self._offer: dict[str, str | None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "form":
            self._form = Form(found.get("action") or "", (found.get("method") or "get").lower())
            self.page.forms.append(self._form)
        elif tag == "script" and found.get("type") == "application/json":
            self._script = found.get("id") or ""
        elif tag in ("input", "textarea") and self._form is not None:
            self._field(self._form, tag, found)
        elif "data-offer" in found:
            self._offer = found
        elif "data-accept" in found and (number := found["data-accept"]) is not None and number.isdecimal():
            price = self._offer.get("data-price") or ""
            self.offers.append(Offer(int(number), price, loses="data-loses" in self._offer))
        self._loud += tag == "h1" or (found.get("role") == "alert" and tag == "p")

    def _field(self, form: Form, tag: str, found: dict[str, str | None]) -> None:
        name, kind = found.get("name") or "", found.get("type") or "text"
        if not name:
            return
        if tag == "input" and kind == "hidden":
            form.fixed[name] = found.get("value") or ""
        elif tag == "input" and kind == "radio":
            form.choices.setdefault(name, []).append(found.get("value") or "")
        elif tag == "textarea" or kind == "text":
            form.texts[name] = "required" in found
            if found.get("inputmode") == "decimal":
                form.numbers.add(name)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "script":
            self._script = ""
        elif tag in ("h1", "p") and self._loud:
            self._loud -= 1

    def handle_data(self, data: str) -> None:
        if self._script:
            self.page.data[self._script] = json.loads(data)
        elif self._loud and data.strip():
            self._said.append(data.strip())


def read(html: str) -> Page:
    """A page."""
    reader = _Reader()
    reader.feed(html)
    reader.page.text = " ".join(reader._said)
    return reader.page


def offers(html: str) -> list[Offer]:
    """The offers of a room's panel that can be accepted."""
    reader = _Reader()
    reader.feed(html)
    return reader.offers


_AMOUNT = re.compile(r"\d[\d,]*\.\d\d")
_CARD = re.compile(r'class="card__(?:value|row-value)">([^<]*)<')


def amount_cents(text: str) -> int | None:
    """The first amount of money in a text of the site, in cents."""
    found = _AMOUNT.search(text)
    return None if found is None else int(found.group().replace(",", "").replace(".", ""))


def own_value_cents(html: str) -> int | None:
    """What the first product is worth to whoever reads this page of a table."""
    found = _CARD.search(html)
    return None if found is None else amount_cents(found.group(1))
