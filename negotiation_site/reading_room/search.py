"""Finding transcripts: a query string in words, the rows it finds, in pages.

Contract.
- The same address finds the same for the same viewer and record. What an address asks for that means nothing is said
  in a sentence and left out.
- Games of this server come first, imported dialogues after them, each in the order asked for. What only games have
  (market, agent, shares, an end on the calendar) leaves dialogues out.
- Words: all of them, or a phrase in quotation marks, in one utterance; upper and lower case alike for ASCII. Rows are
  looked at in their order until `MOST_FOUND` have the words, so that a common word costs as little as a rare page;
  then the list says so. Without words the count is exact.
- Nothing here reads who a person is; a pseudonym finds nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _

from markets.engine.scenarios import Family
from markets.models import Corpus, Episode, EpisodeText, ImportedDialogue, ImportedText, Market
from negotiation_site.reading_room import access
from negotiation_site.reading_room.access import Viewer
from negotiation_site.reading_room.filters import Economics, Source, narrowed
from negotiation_site.reading_room.models import Annotation
from negotiation_site.reading_room.references import Transcript

ROWS = 25
MOST_FOUND = 1_000
MOST_RARE = 5_000
"""Utterances of which words are common."""
LONGEST = 200
MOST_WORDS = 8
SORTS = ("newest", "oldest", "share", "-share", "turns", "-turns")
"""A minus turns the order round: the largest first."""
_TOKEN = re.compile(r'"([^"]+)"|(\S+)')
_ONLY_GAMES = ("family", "market", "agent", "role", "min_share", "max_share", "since", "until")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A query string, read."""

    words: str = ""
    economics: Economics
    corpus: str = ""
    tag: str = ""
    sort: str = "newest"
    page: int = 1
    beside: str = ""
    """The transcript to put another one beside."""
    raw: tuple[tuple[str, str], ...] = ()
    """What was asked and means something, as typed."""

    def query(self, **changes: str) -> str:
        """The query string that asks the same, but for what is changed."""
        asked = {name: value for name, value in (dict(self.raw) | changes).items() if value}
        return f"?{urlencode(asked)}" if asked else "?"

    @property
    def tokens(self) -> tuple[str, ...]:
        """What has to stand in an utterance."""
        found = [phrase or word for phrase, word in _TOKEN.findall(self.words)]
        return tuple(token.strip() for token in found if token.strip())[:MOST_WORDS]


@dataclass(frozen=True)
class Found:
    """A page of what was found."""

    rows: Sequence[Transcript]
    games: int
    dialogues: int
    more_games: bool
    """Whether there are more games than were counted."""
    more_dialogues: bool
    number: int
    pages: int


# --- Reading a query string ---------------------------------------------------------------------------


class _Reader:
    def __init__(self, query: Mapping[str, str]) -> None:
        self.query, self.problems, self.raw = query, [], {}  # type: tuple[Mapping[str, str], list[str], dict[str, str]]

    def text(self, name: str) -> str:
        value = " ".join(self.query.get(name, "").replace("\0", "").split())[:LONGEST]
        if value:
            self.raw[name] = value
        return value

    def refuse(self, name: str, sentence: str) -> None:
        word = self.raw.pop(name)
        self.problems.append(sentence % {"word": word if len(word) <= 40 else f"{word[:40]}…"})

    def one_of(self, name: str, known: Sequence[str], sentence: str) -> str:
        value = self.text(name)
        if value and value not in known:
            self.refuse(name, sentence)
            return ""
        return value

    def number(self, name: str) -> float | None:
        value = self.text(name)
        if not value:
            return None
        try:
            number = float(value.replace(",", "."))
        except ValueError:
            number = float("nan")
        if not -1e9 < number < 1e9:
            self.refuse(name, _("“%(word)s” is not a number such as 0.5; it is left out."))
            return None
        return number

    def whole(self, name: str) -> int | None:
        value = self.text(name)
        if not value:
            return None
        if not (value.isascii() and value.isdecimal() and len(value) < 8):
            self.refuse(name, _("“%(word)s” is not a whole number; it is left out."))
            return None
        return int(value)

    def day(self, name: str) -> datetime | None:
        value = self.text(name)
        if not value:
            return None
        try:
            day = parse_date(value)
        except ValueError:
            day = None
        if day is None or day.year > 9998:
            self.refuse(name, _("“%(word)s” is not a day such as 2026-11-30; it is left out."))
            return None
        return datetime(day.year, day.month, day.day, tzinfo=UTC)


def read(query: Mapping[str, str], viewer: Viewer) -> tuple[Asked, list[str]]:
    """What a query string asks, and a sentence for each part of it that means nothing."""
    reader = _Reader(query)
    researcher, corpora = access.is_researcher(viewer), access.reads_corpora(viewer)
    sources = [source.value for source in Source if corpora or source is not Source.CORPUS]
    until = reader.day("until")
    economics = Economics(
        family=reader.one_of(
            "family",
            [family.value for family in Family],
            _("There is no kind of market called “%(word)s”; all are shown."),
        ),
        market=reader.text("market"),
        source=reader.one_of("source", sources, _("There is no source called “%(word)s”; all are shown.")),
        agent=reader.text("agent"),
        role=reader.one_of(
            "role", ("seller", "buyer"), _("A seat is the seller's or a buyer's, not “%(word)s”; both are shown.")
        ),
        outcome=reader.one_of("outcome", ("deal", "no-deal"), _("There is no end called “%(word)s”; all are shown.")),
        min_share=reader.number("min_share"),
        max_share=reader.number("max_share"),
        min_turns=reader.whole("min_turns"),
        max_turns=reader.whole("max_turns"),
        since=reader.day("since"),
        until=None if until is None else until + timedelta(days=1),
    )
    if economics.market and not Market.objects.filter(slug=economics.market).exists():
        reader.refuse("market", _("There is no market called “%(word)s”; all are shown."))
        economics = replace(economics, market="")
    corpus = reader.text("corpus") if corpora else ""
    if corpus and not Corpus.objects.filter(name=corpus).exists():
        reader.refuse("corpus", _("There is no corpus called “%(word)s”; all are shown."))
        corpus = ""
    words, tag = reader.text("q"), reader.text("tag") if researcher else ""
    sort = reader.one_of("sort", SORTS, _("There is no order called “%(word)s”; the newest come first."))
    beside = reader.text("a")
    page = reader.whole("page") or 1
    if (economics.source == Source.CORPUS or corpus) and any(name in reader.raw for name in _ONLY_GAMES):
        economics = Economics(
            source=economics.source,
            outcome=economics.outcome,
            min_turns=economics.min_turns,
            max_turns=economics.max_turns,
        )
        for name in _ONLY_GAMES:
            reader.raw.pop(name, None)
        reader.problems.append(
            _("Imported dialogues have no market, agent, share or day of their own here; those filters are left out.")
        )
    asked = Asked(
        words=words,
        economics=economics,
        corpus=corpus,
        tag=tag,
        sort=sort or "newest",
        page=max(1, page),
        beside=beside,
        raw=tuple((name, value) for name, value in reader.raw.items()),
    )
    return asked, reader.problems


# --- Finding ------------------------------------------------------------------------------------------


def find(asked: Asked, viewer: Viewer) -> Found:
    """The page asked for; the last one where there are fewer."""
    played, imported = games(asked, viewer), _dialogues(asked, viewer)
    if asked.tokens:
        game_ids, more_games = _first(played)
        dialogue_ids, more_dialogues = _first(imported)
        counts = len(game_ids), len(dialogue_ids)
    else:
        counts, more_games, more_dialogues = (played.count(), imported.count()), False, False
    pages = max(1, -(-sum(counts) // ROWS))
    number = min(asked.page, pages)
    start, end = (number - 1) * ROWS, number * ROWS
    beyond = max(0, start - counts[0]), max(0, end - counts[0])
    if asked.tokens:
        chosen, others = game_ids[start:end], dialogue_ids[beyond[0] : beyond[1]]
    else:
        chosen = list(played.values_list("pk", flat=True)[start : min(end, counts[0])]) if start < counts[0] else []
        others = list(imported.values_list("pk", flat=True)[beyond[0] : beyond[1]]) if beyond[1] else []
    return Found(
        (*_loaded_games(chosen), *_loaded_dialogues(others)),
        *counts,
        more_games,
        more_dialogues,
        number,
        pages,
    )


def _first(rows: QuerySet[Any]) -> tuple[list[int], bool]:
    found = list(rows.values_list("pk", flat=True)[: MOST_FOUND + 1])
    return found[:MOST_FOUND], len(found) > MOST_FOUND


def games(asked: Asked, viewer: Viewer) -> QuerySet[Episode]:
    """Games that fit, in their order."""
    if asked.corpus or asked.economics.source == Source.CORPUS:
        return Episode.objects.none()
    found = narrowed(access.episodes(viewer), asked.economics)
    if asked.tag:
        found = found.filter(Exists(Annotation.objects.filter(episode=OuterRef("pk"), tag=asked.tag)))
    if asked.tokens:
        found = _saying(found, asked.tokens)
    messages = F("seller_messages") + F("buyer_messages")
    match asked.sort:
        case "oldest":
            return found.order_by("created_at", "pk")
        case "share":
            return found.order_by(F("seller_share").asc(nulls_last=True), "-pk")
        case "-share":
            return found.order_by(F("seller_share").desc(nulls_last=True), "-pk")
        case "turns":
            return found.order_by(messages.asc(), "-pk")
        case "-turns":
            return found.order_by(messages.desc(), "-pk")
        case _:
            return found.order_by("-created_at", "-pk")


def _saying(found: QuerySet[Episode], tokens: Sequence[str]) -> QuerySet[Episode]:
    """Those in which the words are said. Rare words are looked up first, in one pass over what was said; common ones
    in the games themselves, in their order, which soon has enough of them."""
    rare = list(said(EpisodeText.objects.order_by(), "talk", tokens).values_list("episode_id", flat=True)[:MOST_RARE])
    if len(rare) < MOST_RARE:
        return found.filter(pk__in=set(rare))
    return found.filter(Exists(said(EpisodeText.objects.filter(episode=OuterRef("pk")), "talk", tokens)))


def _dialogues(asked: Asked, viewer: Viewer) -> QuerySet[ImportedDialogue]:
    raw = dict(asked.raw)
    if asked.economics.source not in ("", Source.CORPUS) or any(name in raw for name in _ONLY_GAMES):
        return ImportedDialogue.objects.none()
    found = access.dialogues(viewer)
    if asked.corpus:
        found = found.filter(corpus__name=asked.corpus)
    if asked.economics.outcome:
        dealt = Q(outcome="deal")
        found = found.filter(dealt if asked.economics.outcome == "deal" else ~dealt)
    if asked.economics.min_turns is not None:
        found = found.filter(turns__gte=asked.economics.min_turns)
    if asked.economics.max_turns is not None:
        found = found.filter(turns__lte=asked.economics.max_turns)
    if asked.tag:
        found = found.filter(Exists(Annotation.objects.filter(dialogue=OuterRef("pk"), tag=asked.tag)))
    if asked.tokens:
        texts = ImportedText.objects.filter(dialogue=OuterRef("pk"), kind="said")
        found = found.filter(Exists(said(texts, "text", asked.tokens)))
    order = {"oldest": "pk", "turns": "turns", "-turns": "-turns"}.get(asked.sort, "-pk")
    return found.order_by(order, "-pk") if order in ("turns", "-turns") else found.order_by(order)


def said(texts: QuerySet[Any], column: str, tokens: Sequence[str]) -> QuerySet[Any]:
    """Utterances in which every token stands."""
    for token in tokens:
        texts = texts.filter(**{f"{column}__icontains": token})
    return texts


def _loaded_games(numbers: Sequence[int]) -> list[Episode]:
    rows = Episode.objects.select_related("market").prefetch_related("seats").in_bulk(numbers)
    return [rows[number] for number in numbers if number in rows]


def _loaded_dialogues(numbers: Sequence[int]) -> list[ImportedDialogue]:
    rows = ImportedDialogue.objects.defer("record").select_related("corpus").in_bulk(numbers)
    return [rows[number] for number in numbers if number in rows]


def first_said(rows: Sequence[Transcript], tokens: Sequence[str]) -> dict[tuple[str, int], tuple[int, str]]:
    """By kind and number of a transcript, the first turn in which the words are said, and what is said there."""
    if not tokens:
        return {}
    found: dict[tuple[str, int], tuple[int, str]] = {}
    games = [row.pk for row in rows if isinstance(row, Episode)]
    talk = said(EpisodeText.objects.filter(episode__in=games), "talk", tokens).order_by("episode", "n")
    for number, n, text in talk.values_list("episode_id", "n", "talk"):
        found.setdefault(("game", number), (n, text))
    dialogues = [row.pk for row in rows if isinstance(row, ImportedDialogue)]
    texts = said(ImportedText.objects.filter(dialogue__in=dialogues, kind="said"), "text", tokens)
    for number, n, text in texts.order_by("dialogue", "n").values_list("dialogue_id", "n", "text"):
        found.setdefault(("dialogue", number), (n, text))
    return found
