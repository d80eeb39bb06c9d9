"""What an export is asked to hold: a format, filters, and how rows are written.

Contract: `Asked` is plain data that JSON holds. `check` raises `ExportError` with a sentence for anything that
cannot be asked. `allowed` are the episodes that may leave under the scope asked for, `matching` those
that would be there whatever people consented to.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.dateparse import parse_date, parse_datetime

from agents import registry
from agents.base import Kind
from agents.registry import UnknownAgent
from markets import corpora, selectors
from markets.engine.protocol import EndReason, Role
from markets.engine.scenarios import Family
from markets.export import ExportError
from markets.importers.transcripts import CorpusError, records
from markets.models import Episode, EpisodeSeat, EpisodeSource, SeatKind
from negotiation_site.studies.models import Mode, Study, StudyRound
from training import corpus_rows

RAW = ("jsonl", "parquet", "csv")
TRAINING = ("sft", "prompt-completion", "preference", "rl")
FORMATS = (*RAW, *TRAINING)
SCOPES = ("public", "research")
KINDS: dict[str, tuple[Kind, ...]] = {
    "person": (),
    "scripted": (Kind.SCRIPTED, Kind.REFERENCE),
    "narrator": (Kind.NARRATOR,),
    "llm": (Kind.MODEL,),
    "trained": (Kind.LEARNED,),
}
"""What sat on a seat; a person is no agent of any kind."""
OUTCOMES = ("deal", "no-deal", *(reason.value for reason in EndReason if reason is not EndReason.DEAL))
PROTOCOLS = ("auto", "four_part", "tools")
ROLES = tuple(role.value for role in Role)
PERSPECTIVES = (*ROLES, "party-1", "party-2")
"""Whose moves are learned; the parties are those of corpora without a seller."""


class Thoughts(StrEnum):
    """Whether hidden thoughts of agents are written."""

    WITHOUT = "without"
    WITH = "with"


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One export, as it was asked for."""

    format: str
    consent: str = "public"
    market: str = ""
    family: str = ""
    role: str = ""
    agent: str = ""
    kind: str = ""
    outcome: str = ""
    min_share: float | None = None
    since: str = ""
    study: str = ""
    """Slug of a study: its rounds that count, without practice, pilots and previews."""
    source: str = ""
    perspective: str = ""
    """Whose moves are learned; the role asked for, else the seller's."""
    protocol: str = "auto"
    """`auto`: functions where every episode is event-driven, labelled text otherwise."""
    thoughts: str = Thoughts.WITHOUT
    rows: str = "turn"
    keep_text_as_is: bool = False
    corpus: str = ""
    """Name of an imported corpus that rows are made of, instead of episodes."""

    @property
    def is_training(self) -> bool:
        """Whether rows are for training."""
        return self.format in TRAINING

    @property
    def side(self) -> Role:
        """The perspective."""
        return Role(self.perspective or self.role or Role.SELLER.value)


def check(asked: Asked) -> None:
    """Raise `ExportError` with a sentence unless this can be asked."""
    choices: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("format", asked.format, FORMATS),
        ("consent", asked.consent, SCOPES),
        ("family", asked.family, ("", *(family.value for family in Family))),
        ("role", asked.role, ("", *ROLES)),
        ("perspective", asked.perspective, ("", *PERSPECTIVES) if asked.corpus else ("", *ROLES)),
        ("kind", asked.kind, ("", *KINDS)),
        ("outcome", asked.outcome, ("", *OUTCOMES)),
        ("source", asked.source, ("", *EpisodeSource.values)),
        ("protocol", asked.protocol, PROTOCOLS),
        ("thoughts", asked.thoughts, tuple(Thoughts)),
        ("rows", asked.rows, ("turn", "episode")),
    )
    for what, value, known in choices:
        if value not in known:
            raise ExportError(f"There is no {what} {value!r}; choose from {', '.join(filter(None, known))}.")
    if asked.market and selectors.market_on_record(asked.market) is None:
        raise ExportError(f"There is no market {asked.market!r}.")
    if asked.corpus:
        _check_corpus(asked)
    if asked.min_share is not None and not -1e9 < asked.min_share < 1e9:
        raise ExportError(f"The least share must be a number, not {asked.min_share}.")
    if asked.since:
        since(asked.since)
    if asked.study and ("\0" in asked.study or not Study.objects.filter(slug=asked.study).exists()):
        there = ", ".join(Study.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise ExportError(f"There is no study {asked.study!r}; there is: {there or 'none yet'}.")
    if asked.agent and not EpisodeSeat.objects.filter(agent_slug=asked.agent).exists():
        try:
            registry.get(asked.agent)
        except UnknownAgent as error:
            raise ExportError(str(error)) from error


NOT_OF_CORPORA = ("market", "family", "agent", "kind", "outcome", "since", "study", "source")
"""Filters of episodes that say nothing of an imported dialogue."""


def _check_corpus(asked: Asked) -> None:
    if asked.format not in ("sft", "prompt-completion", "preference"):
        raise ExportError(
            f"A corpus is exported as sft, prompt-completion or preference, not {asked.format}; export_transcripts "
            "writes it as it was imported."
        )
    if named := [name.replace("_", "-") for name in NOT_OF_CORPORA if getattr(asked, name)]:
        raise ExportError(f"An imported dialogue has no {named[0]}; leave --{named[0]} out with --corpus.")
    if asked.protocol == "tools":
        raise ExportError("Dialogues of a corpus are written in the protocol four_part alone.")
    try:
        corpora.corpus(asked.corpus)
    except CorpusError as error:
        raise ExportError(str(error)) from error


def side_of_corpus(asked: Asked) -> str:
    """Whose moves of a corpus are learned; where it has no seller and no buyer, the first party's unless one is named."""
    if asked.perspective or asked.role:
        return asked.perspective or asked.role
    first = corpora.corpus(asked.corpus).dialogues.order_by("id").first()
    sides = () if first is None else corpus_rows.perspectives(records.decode(first.record))
    return "seller" if "seller" in sides or not sides else sides[0]


def since(text: str) -> datetime:
    """The moment of a date or a date with a time; UTC where it names no zone. Raises `ExportError`."""
    try:
        moment = parse_datetime(text)
        if moment is None and (day := parse_date(text)) is not None:
            moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    except ValueError:
        moment = None
    if moment is None:
        raise ExportError(f"{text!r} is no date; write it as 2026-11-30 or 2026-11-30T18:00:00Z.")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def allowed(asked: Asked) -> QuerySet[Episode]:
    """The episodes that may leave."""
    return _filtered(selectors.episodes_for_export(scope=asked.consent), asked)


def matching(asked: Asked) -> QuerySet[Episode]:
    """The same, whatever people consented to."""
    return _filtered(Episode.objects.all(), asked)


def count(asked: Asked) -> int:
    """How many there would be, whatever people consented to."""
    return corpora.corpus(asked.corpus).dialogues.count() if asked.corpus else matching(asked).count()


def _filtered(episodes: QuerySet[Episode], asked: Asked) -> QuerySet[Episode]:
    if asked.market:
        episodes = episodes.filter(market__slug=asked.market)
    for column in ("family", "source"):
        if value := getattr(asked, column):
            episodes = episodes.filter(**{column: value})
    if asked.since:
        episodes = episodes.filter(created_at__gte=since(asked.since))
    if asked.study:
        rounds = StudyRound.objects.filter(room=OuterRef("room"), participation__study__slug=asked.study)
        episodes = episodes.filter(Exists(rounds.filter(number__gt=0, participation__mode=Mode.LIVE)))
    if asked.outcome == "deal":
        episodes = episodes.filter(deals__gt=0)
    elif asked.outcome == "no-deal":
        episodes = episodes.filter(deals=0)
    elif asked.outcome:
        episodes = episodes.filter(end_reason=asked.outcome)
    conditions = seat_conditions(asked)
    if conditions:
        episodes = episodes.filter(Exists(EpisodeSeat.objects.filter(episode=OuterRef("pk"), **conditions)))
    return episodes


def seat_conditions(asked: Asked) -> dict[str, Any]:
    """What one seat of an episode must be, all at once; empty where nothing is asked of seats."""
    conditions: dict[str, Any] = {}
    if asked.role:
        conditions["role"] = asked.role
    if asked.agent:
        conditions["agent_slug"] = asked.agent
    if asked.kind == "person":
        conditions["kind"] = SeatKind.PERSON
    elif asked.kind:
        conditions["kind"] = SeatKind.AGENT
        conditions["agent_slug__in"] = _slugs_of(asked.kind)
    if asked.min_share is not None:
        conditions["surplus_share__gte"] = asked.min_share
    return conditions


def _slugs_of(kind: str) -> list[str]:
    """Agents of a kind that sat in any episode; one that is no longer installed is of no kind."""
    found = []
    for slug in EpisodeSeat.objects.exclude(agent_slug="").order_by().values_list("agent_slug", flat=True).distinct():
        try:
            if registry.get(slug).kind in KINDS[kind]:
                found.append(slug)
        except UnknownAgent:
            continue
    return sorted(found)


def fits(seat: EpisodeSeat, asked: Asked, slugs: frozenset[str] | None) -> bool:
    """Whether a seat is one of those asked for, and on the side that is learned from.

    `slugs` are the agents of the kind asked for, None where no kind of agent is. Where the role asked for is
    the other side's, the conditions are the other's and every seat of the perspective fits.
    """
    if seat.role != asked.side.value:
        return False
    if asked.role and asked.role != asked.side.value:
        return True
    return (
        (not asked.agent or seat.agent_slug == asked.agent)
        and (asked.kind != "person" or seat.kind == SeatKind.PERSON)
        and (slugs is None or seat.agent_slug in slugs)
        and (asked.min_share is None or (seat.surplus_share is not None and seat.surplus_share >= asked.min_share))
    )


def slugs_of_kind(asked: Asked) -> frozenset[str] | None:
    """The agents of the kind asked for; None where none is, or people are."""
    return None if asked.kind in ("", "person") else frozenset(_slugs_of(asked.kind))
