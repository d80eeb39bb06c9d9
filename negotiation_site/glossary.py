"""The glossary page, read from docs/glossary.md so that page and document cannot differ.

An entry of the document is a heading of the second level, a paragraph that a player understands,
and lines that begin with "Formula:", "In code:", "Source:" or "On pages:". The last names the words, parted by
semicolons, that lead to the entry wherever a page has them in a heading or at the head of a table (`mentions`).
"""

import re
from functools import lru_cache
from pathlib import Path

from django.utils.text import slugify
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from markets.presentation import GlossaryTerm

_LABELS = {"Formula": "formula", "In code": "code_name", "Source": "source", "On pages": "phrases"}
_LABELLED = re.compile(r"^(Formula|In code|Source|On pages):\s*(.*)$")


@lru_cache(maxsize=4)
def terms(base: Path) -> tuple[GlossaryTerm, ...]:
    """Every entry of `base`/docs/glossary.md, in order."""
    text = (base / "docs" / "glossary.md").read_text(encoding="utf-8")
    return tuple(_term(part) for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:])


def _term(part: str) -> GlossaryTerm:
    heading, _newline, body = part.partition("\n")
    fields: dict[str, str] = {}
    words: list[str] = []
    for line in body.splitlines():
        labelled = _LABELLED.match(line.strip())
        if labelled:
            fields[_LABELS[labelled[1]]] = _plain(labelled[2])
        elif line.strip() and not line.startswith("#"):
            words.append(line.strip())
    phrases = tuple(phrase.strip() for phrase in fields.pop("phrases", "").split(";") if phrase.strip())
    return GlossaryTerm(
        anchor=slugify(heading),
        term=heading.strip(),
        lead=_plain(words[0]) if words else "",
        definition=_plain(" ".join(words)),
        phrases=phrases,
        **fields,
    )


def _plain(markdown: str) -> str:
    """Text without the few marks that the document uses."""
    return re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", lambda found: found[1] or "", markdown).strip()


# --- Where pages use the words ------------------------------------------------------------------------


class UnknownTerm(LookupError):
    """An anchor that no entry of the glossary has."""


def entry(base: Path, anchor: str) -> GlossaryTerm:
    """The entry with that anchor. Raises `UnknownTerm`."""
    for term in terms(base):
        if term.anchor == anchor:
            return term
    raise UnknownTerm(anchor)


def mentions(base: Path, text: str) -> list[tuple[str, GlossaryTerm | None]]:
    """`text` in pieces, each with the entry that it leads to; an entry is led to once, the longest words first."""
    pattern, by_phrase = _phrases(base, get_language() or "")
    parts: list[tuple[str, GlossaryTerm | None]] = []
    led: set[str] = set()
    at = 0
    for found in pattern.finditer(text):
        term = by_phrase[found[0].casefold()]
        if term.anchor in led:
            continue
        led.add(term.anchor)
        parts += [(text[at : found.start()], None), (found[0], term)]
        at = found.end()
    parts.append((text[at:], None))
    return [(words, term) for words, term in parts if words]


@lru_cache(maxsize=8)
def _phrases(base: Path, language: str) -> tuple[re.Pattern[str], dict[str, GlossaryTerm]]:
    """The words of every entry in the language of the page; `language` is there to tell the copies apart."""
    found: dict[str, GlossaryTerm] = {}
    for term in terms(base):
        for phrase in term.phrases:
            for written in (phrase, _(phrase), _(phrase[:1].upper() + phrase[1:])):
                found[written.casefold()] = term
    longest_first = sorted(found, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE), found
