"""The glossary page, read from docs/glossary.md so that page and document cannot differ.

An entry of the document is a heading of the second level, a paragraph that a player understands,
and lines that begin with "Formula:", "In code:" or "Source:".
"""

import re
from functools import lru_cache
from pathlib import Path

from django.utils.text import slugify

from markets.presentation import GlossaryTerm

_LABELS = {"Formula": "formula", "In code": "code_name", "Source": "source"}
_LABELLED = re.compile(r"^(Formula|In code|Source):\s*(.*)$")


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
    return GlossaryTerm(anchor=slugify(heading), term=heading.strip(), definition=_plain(" ".join(words)), **fields)


def _plain(markdown: str) -> str:
    """Text without the few marks that the document uses."""
    return re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", lambda found: found[1] or "", markdown).strip()
