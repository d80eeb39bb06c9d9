"""Readers of public corpora of negotiations, by the name of their format.

Here live pure parsers: a path in, dialogues, repeats and reported faults out. They know no database and
no settings; storing is `markets.corpora`'s business.

Contract: `FORMATS[name](path)` raises `CorpusError` where a file as a whole is not what it was said to be
(also after it began to yield), and otherwise yields one thing for every record of the source: a dialogue
with its place, a `Repeat` or a `BadRecord`.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from markets.importers.craigslist_bargain import CorpusError
from markets.importers.transcripts import casino, craigslist_bargain, deal_or_no_deal, negotiation_arena, parley
from markets.importers.transcripts.reading import BadRecord, Repeat
from markets.importers.transcripts.records import Transcript

__all__ = ["FORMATS", "SOURCES", "BadRecord", "CorpusError", "Reader", "Repeat", "Source", "Transcript"]

Reader: TypeAlias = Callable[[Path], Iterator[tuple[str, Transcript] | BadRecord | Repeat]]

FORMATS: Mapping[str, Reader] = MappingProxyType(
    {
        craigslist_bargain.FORMAT: craigslist_bargain.read,
        casino.FORMAT: casino.read,
        deal_or_no_deal.FORMAT: deal_or_no_deal.read,
        negotiation_arena.FORMAT: negotiation_arena.read,
        parley.FORMAT: parley.read,
    }
)


class Source(NamedTuple):
    """Where a corpus comes from and what its authors allow."""

    title: str
    citation: str
    licence: str
    people: bool
    """Whether people talk in it."""


SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        craigslist_bargain.FORMAT: Source(
            "CraigslistBargain",
            "He, Chen, Balakrishnan and Liang (EMNLP 2018)",
            "unclear: MIT with the original code, Apache-2.0 with a copy; for tests only",
            True,
        ),
        casino.FORMAT: Source(
            "CaSiNo", "Chawla, Ramirez, Clever, Lucas, May and Gratch (NAACL 2021)", "CC BY 4.0", True
        ),
        deal_or_no_deal.FORMAT: Source(
            "Deal or No Deal", "Lewis, Yarats, Dauphin, Parikh and Batra (EMNLP 2017)", "CC BY-NC 4.0", True
        ),
        negotiation_arena.FORMAT: Source(
            "NegotiationArena",
            "Bianchi, Chia, Yuksekgonul, Tagliabue, Jurafsky and Zou (ICML 2024)",
            "MIT badge without a licence file; for tests only",
            False,
        ),
    }
)
