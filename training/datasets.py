"""What a language model can be trained on by imitation: which sources this server has, what one holds, and its files.

Here: the one service that the training form and the commands call.

    list_sources()                 -> what can be chosen, with a sentence where something cannot
    preview(chosen)                -> rows, tokens, people, hash; writes nothing
    write(chosen, folder)          -> the folder: {train,validation,test}.jsonl with the card that `datasets` reads

A choice is `Chosen`: imported human dialogues by corpus, recorded rooms under a scope of consent, scripted
demonstrations played for the purpose, a named agent's games of a tournament, or the best k of every scenario by realised
share. Not here: what a row is (`training.rows`, `training.corpus_rows`), training.

Contract: `preview(chosen).sha256` is the hash of what `write` writes. Nothing that is held out for evaluation is in a data set
(`markets.engine.splits`): episodes of such markets, products, buyers and ways of talking are left out and counted. Only what
people consented to is read. A folder is whole or not there. Errors are `DataError` with a sentence. No torch.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
from django.db.models import Count, QuerySet

from agents import registry, simulation
from agents.base import AgentSpec
from agents.base import Kind as AgentKind
from agents.registry import UnknownAgent
from agents.words import with_words
from markets import corpora, episodes, export, selectors, services
from markets.engine import metrics, splits
from markets.engine.protocol import SELLER, Party, Role, buyer_party
from markets.engine.scenarios import Family, ProductFacts, RecipeError, Scenario, Split, decode_recipe
from markets.engine.seeds import derive_seed
from markets.export import SCHEMA_VERSION, ExportError
from markets.export_card import CROISSANT, NOTHING, Described, croissant, head
from markets.export_files import MANIFEST, SUMS, JsonLines, line, sha256_of, sums, whole_folder
from markets.export_masking import mask, whole
from markets.export_splits import SPLITS, Splits
from markets.importers.transcripts import SOURCES, CorpusError, records
from markets.models import Corpus, Episode, EpisodeSeat, EpisodeSource, ImportedDialogue, Market, SeatKind
from training import corpus_rows, rows
from training.corpus_rows import Dialogued
from training.models import Tournament, TournamentStatus
from training.rows import Chair, Field, Format, Options, Source, Tally, Unit

CHUNK = 200
CHARACTERS_A_TOKEN = 4
"""What a token is taken to have where no tokenizer counts."""
SAMPLE = 3
"""Rows that a preview shows."""
MOST = 100_000
"""Conversations that one choice may ask for."""


class DataError(ValueError):
    """A data set that cannot be made; the sentence says why."""


class Kind(StrEnum):
    """Where conversations come from."""

    CORPUS = "corpus"
    """Imported human dialogues."""
    ROOMS = "rooms"
    """People's own moves in games on this site, as far as they consented."""
    DEMONSTRATIONS = "demonstrations"
    """Games between scripted agents, played for this data set and not stored."""
    TOURNAMENT = "tournament"
    """The games of one agent in a tournament."""
    BEST = "best"
    """Of every scenario the seats with the highest realised share."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One data set, as it is asked for. Plain data that JSON holds."""

    kind: Kind
    name: str = ""
    """The corpus, the tournament, or the market; empty for all markets (rooms and best only)."""
    agent: str = ""
    """Whose games of a tournament; of the best, only this agent's."""
    perspective: str = "seller"
    """Whose moves are learned: seller or buyer; party-1 or party-2 where a corpus has neither."""
    protocol: str = "four_part"
    """`four_part` or `tools`; corpora have words in `four_part` alone."""
    consent: str = "public"
    """Of games of people: `public`, or also `research`."""
    thoughts: bool = False
    unit: Unit = Unit.TURN
    """What a row is: one move, or all moves of a seat."""
    best_of: int = 1
    """How many seats of a scenario the best are."""
    min_share: float | None = None
    """Least realised share of a seat."""
    opponents: tuple[str, ...] = ()
    """Agents opposite in demonstrations; several are met in turn. Empty: the market's usual one."""
    demonstrators: tuple[str, ...] = ()
    """Agents that are imitated; empty: mediocre ones, none of which explores and then commits."""
    most: int = 2_000
    """Conversations (seats of episodes, sides of dialogues) at most; the first in order are taken."""
    seed: int = 1
    """Of the demonstrations."""
    keep_text_as_is: bool = False
    """Whether addresses and numbers in words are left as they were typed."""


class Option(NamedTuple):
    """One name that can be chosen of a source."""

    name: str
    title: str
    conversations: int
    """How many there are at most, before what is held out is left out."""
    perspectives: tuple[str, ...]
    licence: str = ""
    agents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Offered:
    """A kind of source and what of it is here."""

    kind: Kind
    options: tuple[Option, ...]
    problem: str = ""
    """Why nothing of it can be chosen; empty where something can."""


@dataclass(frozen=True)
class Preview:
    """What a choice comes to. Everything is counted, nothing scaled up; only `tokens` is an estimate without a tokenizer."""

    conversations: int
    rows: int
    rows_by_split: Mapping[str, int]
    tokens: int
    """Of all messages of all rows together."""
    longest: int
    """Tokens of the longest row."""
    participants: int
    """People whose moves are learned."""
    moves: int
    moves_answered: int
    moves_left_out: int
    """Refused, played by the clock, or with no words in the protocol."""
    held_out: int
    """Conversations left out because they belong to an evaluation."""
    licence: str
    sha256: str
    """Of the data: equal hashes hold equal rows."""
    sample: tuple[dict[str, Any], ...]
    """The first rows."""


@dataclass(frozen=True)
class Written:
    """A finished folder."""

    folder: Path
    files: tuple[Path, ...]
    preview: Preview


TokenCounter: TypeAlias = Callable[[str], int]
Progress: TypeAlias = Callable[[int], None]
"""Called with the number of conversations that are done."""


# --- What there is --------------------------------------------------------------------------------------

OPEN_LICENCE = "Open data of games on this site (CC BY 4.0)."
RESEARCH_LICENCE = "For research by those who run this server; not to be passed on."
SIMULATED_LICENCE = "Simulated; free of rights."
BOTH = (Role.SELLER.value, Role.BUYER.value)


def list_sources() -> tuple[Offered, ...]:
    """Every kind of source with what of it is on this server."""
    return (_corpora(), _rooms(), _demonstrations(), _tournaments(), _best())


def _offered(kind: Kind, options: Iterable[Option], problem: str) -> Offered:
    found = tuple(option for option in options if option.conversations)
    return Offered(kind, found, "" if found else problem)


def _corpora() -> Offered:
    options = []
    for holding in corpora.holdings():
        first = ImportedDialogue.objects.filter(corpus__name=holding.name).order_by("id").first()
        if not holding.source.people or first is None:
            continue
        sides = corpus_rows.perspectives(records.decode(first.record))
        title = f"{holding.name}: {holding.source.title}"
        options.append(Option(holding.name, title, holding.dialogues, sides, holding.source.licence))
    return _offered(Kind.CORPUS, options, "No human dialogues were imported; import_transcripts reads public corpora.")


def _rooms() -> Offered:
    people = EpisodeSeat.objects.filter(
        kind=SeatKind.PERSON, episode__source=EpisodeSource.LIVE, episode__consent_scope__in=("public", "research")
    )
    return _offered(
        Kind.ROOMS,
        [
            Option(slug, title, count, BOTH, RESEARCH_LICENCE)
            for slug, title, count in _by_market(people, "All markets")
        ],
        "Nobody has finished a game here and agreed to its use yet.",
    )


def _best() -> Offered:
    seats = EpisodeSeat.objects.filter(surplus_share__isnull=False, episode__consent_scope__in=("public", "research"))
    return _offered(
        Kind.BEST,
        [Option(slug, title, count, BOTH) for slug, title, count in _by_market(seats, "All markets")],
        "No finished game here has anything to share out yet.",
    )


def _by_market(seats: "QuerySet[EpisodeSeat]", everything: str) -> Iterator[tuple[str, str, int]]:
    """Seats in all, then by market."""
    yield "", everything, seats.count()
    counted = seats.order_by().values("episode__market__slug").annotate(count=Count("id"))
    for row in sorted(counted, key=lambda row: str(row["episode__market__slug"])):
        slug = row["episode__market__slug"]
        yield slug, slug, row["count"]


def _demonstrations() -> Offered:
    options = []
    for market in selectors.current_markets().order_by("slug"):
        recipe = decode_recipe(market.recipe)
        if not splits.held_out_axes(recipe=recipe):
            sides = tuple(side for side in BOTH if _mediocre(recipe.family, Role(side)))
            options.append(Option(market.slug, market.name, MOST if sides else 0, sides, SIMULATED_LICENCE))
    return _offered(Kind.DEMONSTRATIONS, options, "There is no market here that may be trained on.")


def _tournaments() -> Offered:
    options = []
    for tournament in Tournament.objects.filter(status=TournamentStatus.DONE).order_by("-id"):
        agents = tuple(slug for slug, _version in json.loads(tournament.agents))
        count = tournament.games.count()
        options.append(Option(tournament.name, tournament.name, count, BOTH, SIMULATED_LICENCE, agents))
    return _offered(Kind.TOURNAMENT, options, "No tournament has finished here yet.")


# --- Checking -------------------------------------------------------------------------------------------


def check(chosen: Chosen) -> None:
    """Raise `DataError` with a sentence unless this can be chosen."""
    if chosen.protocol not in ("four_part", "tools"):
        raise DataError(f"There is no protocol {chosen.protocol!r}; choose four_part or tools.")
    if chosen.consent not in ("public", "research"):
        raise DataError(f"There is no consent {chosen.consent!r}; choose public or research.")
    if not 1 <= chosen.most <= MOST:
        raise DataError(f"The number of conversations must be 1 to {MOST:,}, not {chosen.most:,}.")
    if not 1 <= chosen.best_of <= 1_000:
        raise DataError(f"The best of a scenario must be 1 to 1,000 seats, not {chosen.best_of:,}.")
    if chosen.min_share is not None and not -1e9 < chosen.min_share < 1e9:
        raise DataError(f"The least share must be a number, not {chosen.min_share}.")
    if chosen.kind is not Kind.CORPUS and chosen.perspective not in BOTH:
        raise DataError(f"The perspective must be seller or buyer, not {chosen.perspective!r}.")
    if chosen.kind is Kind.CORPUS and chosen.protocol != "four_part":
        raise DataError("Dialogues of a corpus are written in the protocol four_part alone.")
    if chosen.kind is Kind.TOURNAMENT and not chosen.agent:
        raise DataError("Name the agent whose games of the tournament are to be imitated.")
    if chosen.kind in (Kind.ROOMS, Kind.BEST, Kind.DEMONSTRATIONS) and (
        chosen.name or chosen.kind is Kind.DEMONSTRATIONS
    ):
        _market(chosen.name)


def _market(slug: str) -> Market:
    market = None if "\0" in slug else selectors.market_on_record(slug)
    if market is None:
        raise DataError(f"There is no market {slug!r}.")
    return market


# --- Conversations --------------------------------------------------------------------------------------


class _Conversation(NamedTuple):
    """One side of one dialogue, ready to be written."""

    key: int
    """Equal for equal scenarios."""
    source: Source | None
    options: Options
    found: Dialogued | None = None
    party: str = ""


@dataclass
class _Plan:
    """What was found out before the first row."""

    keys: list[int]
    people: list[tuple[int, int]]
    """(participant, key) of everybody at those tables."""
    conversations: Callable[["_Plan"], Iterator[_Conversation]]
    licence: str
    participants: int = 0
    held_out: int = 0
    taken: int = 0


def _plan(chosen: Chosen, form: Format) -> _Plan:
    check(chosen)
    match chosen.kind:
        case Kind.CORPUS:
            return _plan_corpus(chosen, form)
        case Kind.DEMONSTRATIONS:
            return _plan_demonstrations(chosen)
        case _:
            return _plan_episodes(chosen)


def _mask(chosen: Chosen) -> Callable[[str], str]:
    return whole if chosen.keep_text_as_is else mask


# Corpora ------------------------------------------------------------------------------------------------


def _plan_corpus(chosen: Chosen, form: Format) -> _Plan:
    try:
        corpus = corpora.corpus(chosen.name)
    except CorpusError as error:
        raise DataError(str(error)) from error
    about = SOURCES[corpus.format]
    if not about.people:
        raise DataError(f"Nobody human talks in {chosen.name!r} ({about.title}); it is no source of human dialogues.")
    first = corpus.dialogues.order_by("id").first()
    if first is not None:
        dialogue = records.decode(first.record)
        sides = corpus_rows.perspectives(dialogue)
        if chosen.perspective not in sides:
            raise DataError(
                f"The sides of {chosen.name!r} are {' and '.join(sides)}; {chosen.perspective!r} is none of them."
            )
        if form is Format.PREFERENCE and not corpus_rows.has_price(dialogue):
            raise DataError(f"{chosen.name!r} is about no price, so no two endings of it can be compared here.")
        if form is Format.RL:
            raise DataError(
                "Dialogues of a corpus have no rewards of ours; choose sft, prompt-completion or preference."
            )
    numbers = _keys_of(corpus, chosen)
    return _Plan(
        keys=[key for _number, key in numbers],
        people=[],
        conversations=lambda plan: _corpus_conversations(chosen, corpus, numbers),
        licence=about.licence,
        participants=len(numbers),
    )


def _keys_of(corpus: Corpus, chosen: Chosen) -> list[tuple[int, int]]:
    """Primary key and scenario of the dialogues whose chosen side was not erased."""
    numbers: list[tuple[int, int]] = []
    for found, number in _dialogues(corpus, corpus.dialogues.order_by("key").values_list("pk", flat=True), chosen):
        side = next((side for side in found.dialogue.sides if chosen.perspective in (side.role, side.party)), None)
        share = None if side is None else side.surplus_share if side.surplus_share is not None else side.target_share
        if side is None or side.party not in found.present:
            continue
        if chosen.min_share is not None and (share is None or share < chosen.min_share):
            continue
        digest = hashlib.sha256(repr(corpus_rows.scenario_of(found)).encode("utf-8", "replace")).digest()
        numbers.append((number, int.from_bytes(digest[:8], "big", signed=True)))
        if len(numbers) == chosen.most:
            break
    return numbers


def _dialogues(corpus: Corpus, numbers: Iterable[int], chosen: Chosen) -> Iterator[tuple[Dialogued, int]]:
    """Dialogues with their words, in the order of the numbers."""
    hidden, waiting = _mask(chosen), list(numbers)
    for start in range(0, len(waiting), CHUNK):
        chunk = waiting[start : start + CHUNK]
        stored = corpus.dialogues.filter(pk__in=chunk).prefetch_related("parties", "texts").in_bulk()
        for number in chunk:
            if (row := stored.get(number)) is None:
                continue
            yield (
                Dialogued(
                    corpus.name,
                    records.decode(row.record),
                    {(text.n, text.party, text.kind): hidden(text.text) for text in row.texts.all()},
                    frozenset(party.party for party in row.parties.all()),
                ),
                number,
            )


def _corpus_conversations(chosen: Chosen, corpus: Corpus, numbers: list[tuple[int, int]]) -> Iterator[_Conversation]:
    keys = dict(numbers)
    for found, number in _dialogues(corpus, keys, chosen):
        key = keys[number]
        if not corpus_rows.has_price(found.dialogue):
            options = Options(rows.codec("four_part"), Role.SELLER, unit=chosen.unit)
            yield _Conversation(key, None, options, found, chosen.perspective)
            continue
        role = Role(chosen.perspective)
        made = corpus_rows.seat(found, role)
        if made is not None:
            source, told = made
            yield _Conversation(key, source, Options(told, role, unit=chosen.unit))


# Stored episodes ----------------------------------------------------------------------------------------


def stored(episode: Episode, *, parties: Iterable[Party], mask: Callable[[str], str], thoughts: bool) -> Source:
    """An episode as plain values, with the seats of `parties` as those whose moves are written."""
    scenario, log = export.decoded(episode)
    texts, wanted = list(episode.texts.all()), set(parties)
    return Source(
        episode=episode.public_id,
        market=episode.market.slug,
        scenario=scenario,
        log=log,
        talk={text.n: mask(text.talk) for text in texts if text.talk},
        thoughts={text.n: mask(text.thought) for text in texts if text.thought and thoughts},
        chairs={
            seat.party: Chair(
                "person" if seat.kind == SeatKind.PERSON else f"{seat.agent_slug}@{seat.agent_version}",
                seat.surplus_cents,
                seat.surplus_share,
            )
            for seat in episode.seats.all()
            if seat.party in wanted
        },
        timed=episode.source == EpisodeSource.LIVE,
    )


def _seats(chosen: Chosen) -> "QuerySet[EpisodeSeat]":
    """The seats that a choice is about, whatever is held out."""
    scopes = ("public",) if chosen.consent == "public" else ("public", "research")
    seats = EpisodeSeat.objects.filter(role=chosen.perspective, episode__consent_scope__in=scopes)
    if chosen.agent:
        seats = seats.filter(agent_slug=chosen.agent)
    if chosen.min_share is not None:
        seats = seats.filter(surplus_share__gte=chosen.min_share)
    if chosen.kind is Kind.TOURNAMENT:
        found = Tournament.objects.filter(name=chosen.name).first()
        if found is None:
            raise DataError(f"There is no tournament {chosen.name!r}.")
        known = [slug for slug, _version in json.loads(found.agents)]
        if chosen.agent not in known:
            raise DataError(f"{chosen.agent!r} did not play in {chosen.name!r}; there played: {', '.join(known)}.")
        return seats.filter(episode__tournament_game__tournament=found)
    if chosen.name:
        seats = seats.filter(episode__market__slug=chosen.name)
    if chosen.kind is Kind.ROOMS:
        seats = seats.filter(episode__source=EpisodeSource.LIVE)
        return seats if chosen.agent else seats.filter(kind=SeatKind.PERSON)
    return seats.filter(surplus_share__isnull=False)


def _plan_episodes(chosen: Chosen) -> _Plan:
    seats = _seats(chosen)
    picked: list[tuple[int, str, int]] = []
    people: set[int] = set()
    best = chosen.kind is Kind.BEST
    order = ("episode__scenario_key", "-surplus_share", "episode_id", "id") if best else ("episode_id", "id")
    taken, last = 0, None
    columns = ("episode_id", "party", "episode__scenario_key", "participant_id")
    for number, party, key, participant in seats.order_by(*order).values_list(*columns).iterator(chunk_size=5_000):
        taken, last = (taken + 1 if key == last else 1), key
        if best and taken > chosen.best_of:
            continue
        picked.append((number, party, key))
        if participant is not None:
            people.add(participant)
        if len(picked) == chosen.most:
            break
    parties: dict[int, list[str]] = {}
    for number, party, _key in picked:
        parties.setdefault(number, []).append(party)
    keys = {number: key for number, _party, key in picked}
    return _Plan(
        keys=list(keys.values()),
        people=list(_at_tables(keys)),
        conversations=lambda plan: _episode_conversations(chosen, parties, keys, plan),
        licence=OPEN_LICENCE if chosen.consent == "public" else RESEARCH_LICENCE,
        participants=len(people),
    )


def _at_tables(keys: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    numbers = list(keys)
    for start in range(0, len(numbers), CHUNK):
        seats = EpisodeSeat.objects.filter(episode__in=numbers[start : start + CHUNK]).exclude(participant=None)
        for participant, number in seats.order_by("id").values_list("participant_id", "episode_id"):
            if participant is not None:
                yield participant, keys[number]


def _episode_conversations(
    chosen: Chosen, parties: Mapping[int, list[str]], keys: Mapping[int, int], plan: _Plan
) -> Iterator[_Conversation]:
    numbers, hidden = list(parties), _mask(chosen)
    options = Options(rows.codec(chosen.protocol), Role(chosen.perspective), thoughts=chosen.thoughts, unit=chosen.unit)
    kept = _KeptApart()
    allowed = selectors.episodes_for_export(scope=chosen.consent)
    for start in range(0, len(numbers), CHUNK):
        chunk = numbers[start : start + CHUNK]
        found = allowed.filter(pk__in=chunk).in_bulk()
        for number in chunk:
            # Who took a consent back meanwhile is not in it.
            if (episode := found.get(number)) is None:
                continue
            source = stored(episode, parties=parties[number], mask=hidden, thoughts=chosen.thoughts)
            if kept.holds(episode, source.scenario):
                plan.held_out += len(source.chairs)
                continue
            yield _Conversation(keys[number], source, options)


class _KeptApart:
    """Which episodes belong to an evaluation, remembered by market and agent."""

    def __init__(self) -> None:
        self._markets: dict[int, bool] = {}
        self._agents: dict[str, bool] = {}

    def holds(self, episode: Episode, scenario: Scenario) -> bool:
        """Whether the episode is of a held-out market, about a held-out product, or with a held-out agent."""
        market = episode.market
        if market.pk not in self._markets:
            self._markets[market.pk] = bool(splits.held_out_axes(recipe=decode_recipe(market.recipe)))
        if self._markets[market.pk]:
            return True
        if market.catalogue_id is not None and not all(
            splits.split_of(sku=product.sku, list_price_cents=product.list_price_cents) is Split.TRAINING
            for product in scenario.products
        ):
            return True
        return any(self._agent(seat.agent_slug) for seat in episode.seats.all() if seat.agent_slug)

    def _agent(self, slug: str) -> bool:
        if slug not in self._agents:
            try:
                registry.refuse_held_out([slug])
            except splits.HeldOut:
                self._agents[slug] = True
            except UnknownAgent:
                self._agents[slug] = False
            else:
                self._agents[slug] = False
        return self._agents[slug]


# Demonstrations -----------------------------------------------------------------------------------------

MEDIOCRE: Mapping[tuple[Family, Role], tuple[str, ...]] = {
    (Family.BILATERAL, Role.SELLER): ("linear", "conceder", "boulware", "split-the-difference"),
    (Family.BILATERAL, Role.BUYER): ("linear", "conceder", "boulware", "split-the-difference"),
    (Family.MULTI_BUYER, Role.SELLER): ("random-buyer-ladder", "all-on-one"),
    (Family.MULTI_BUYER, Role.BUYER): ("linear", "conceder", "boulware"),
    (Family.CATALOGUE, Role.SELLER): ("serial", "random-match"),
    (Family.CATALOGUE, Role.BUYER): ("linear", "conceder", "boulware"),
}
"""Who is imitated unless somebody is named: nobody that explores and then commits, goes round, or knows the values."""
TOO_GOOD = (
    "explore-then-commit", "one-pass", "optimal-ladder", "falling-ladder", "equal-steps", "successive-elimination",
    "fixed-sequence", "re-solved-assignment",
)  # fmt: skip
"""Scripted agents that no demonstration is of (they explore and then commit, or go round in a fixed order), so that what is learned later can be told from imitation."""


def _mediocre(family: Family, role: Role) -> tuple[str, ...]:
    return tuple(slug for slug in MEDIOCRE[family, role] if registry.get(slug).can_play(role=role, family=family))


def _plan_demonstrations(chosen: Chosen) -> _Plan:
    market = _market(chosen.name)
    recipe = decode_recipe(market.recipe)
    role = Role(chosen.perspective)
    demonstrators = chosen.demonstrators or _mediocre(recipe.family, role)
    usual = market.buyer_agents.split(",") if role is Role.SELLER else [market.seller_agent]
    opponents = chosen.opponents or tuple(dict.fromkeys(filter(None, usual)))
    pool = services.market_pool(market)
    if pool:
        pool = splits.select(pool, Split.TRAINING)
    try:
        splits.refuse_held_out(recipe=recipe)
        registry.refuse_held_out((*demonstrators, *opponents))
        seated = [registry.get(slug) for slug in demonstrators]
        opposite = [registry.get(slug) for slug in opponents]
    except (splits.HeldOut, UnknownAgent) as error:
        raise DataError(str(error)) from error
    for spec in seated:
        if spec.kind is AgentKind.REFERENCE or spec.slug in TOO_GOOD:
            raise DataError(f"{spec.slug!r} is too good to be imitated; name a mediocre agent.")
        if not spec.can_play(role=role, family=recipe.family):
            raise DataError(f"{spec.slug!r} does not play {role.value} in {recipe.family.value} markets.")
    if not seated or not opposite:
        raise DataError(f"Name who is imitated and who sits opposite in {market.slug!r}.")
    games = max(1, chosen.most // (1 if role is Role.SELLER else recipe.buyers))
    keys = [derive_seed("demonstration", chosen.seed, k) for k in range(games)]
    return _Plan(
        keys=keys,
        people=[],
        conversations=lambda plan: _played(chosen, market, pool, seated, opposite, keys),
        licence=SIMULATED_LICENCE,
    )


def _played(
    chosen: Chosen,
    market: Market,
    pool: tuple[ProductFacts, ...],
    seated: list[AgentSpec],
    opposite: list[AgentSpec],
    keys: list[int],
) -> Iterator[_Conversation]:
    recipe, role = decode_recipe(market.recipe), Role(chosen.perspective)
    options = Options(rows.codec(chosen.protocol), role, thoughts=chosen.thoughts, unit=chosen.unit)
    hidden = _mask(chosen)
    for k, key in enumerate(keys):
        own, other = seated[k % len(seated)], opposite[(k // len(seated)) % len(opposite)]
        seller, buyer = (own, other) if role is Role.SELLER else (other, own)
        try:
            scenario, played = next(
                simulation.simulate(
                    recipe=recipe, pool=pool, seller=seller, buyers=[buyer], episodes=1, seed=key, words=with_words
                )
            )
        except (simulation.SeatError, RecipeError) as error:
            raise DataError(str(error)) from error
        result = metrics.outcome(scenario, played.log)
        words = {words.n: words for words in episodes.words_of(played.log, played.actions)}
        parties = [SELLER] if role is Role.SELLER else [buyer_party(n) for n in range(1, recipe.buyers + 1)]
        source = Source(
            episode=f"demonstration-{chosen.seed}-{k + 1}",
            market=market.slug,
            scenario=scenario,
            log=played.log,
            talk={n: hidden(said.talk) for n, said in words.items() if said.talk},
            thoughts={n: hidden(said.thought) for n, said in words.items() if said.thought and chosen.thoughts},
            chairs={
                party: Chair(f"{own.slug}@{own.version}", *episodes.seat_result(scenario, result, party))
                for party in parties
            },
            timed=False,
        )
        yield _Conversation(key, source, options)


def played(chosen: Chosen) -> Iterator[Source]:
    """The negotiations of a choice as scenario and log, training part alone, for learners with words of their own.

    Raises `DataError`; dialogues of a corpus about things to divide have no such log.
    """
    for conversation in _training_part(chosen):
        if conversation.source is not None:
            yield conversation.source


def lessons(chosen: Chosen, tally: Tally) -> Iterator[list[dict[str, Any]]]:
    """Of each conversation of a choice's training part the moves to learn, a row of `sft_rows` each. Raises `DataError`."""
    for conversation in _training_part(chosen):
        yield list(_rows(conversation, Format.SFT, tally))


def sides(chosen: Chosen) -> tuple[str, ...]:
    """Whose moves a choice can be about: seller and buyer, or the parties of a corpus that has neither. Raises `DataError`."""
    if chosen.kind is not Kind.CORPUS:
        return BOTH
    try:
        first = corpora.corpus(chosen.name).dialogues.order_by("id").first()
    except CorpusError as error:
        raise DataError(str(error)) from error
    return BOTH if first is None else corpus_rows.perspectives(records.decode(first.record))


def _training_part(chosen: Chosen) -> Iterator[_Conversation]:
    plan, shared = _plan(chosen, Format.SFT), Splits()
    for participant, key in plan.people:
        shared.sat(participant, key)
    shared.settle(plan.keys)
    for conversation in plan.conversations(plan):
        if shared.split_of(conversation.key) == SPLITS[0]:
            yield conversation


# --- Rows -----------------------------------------------------------------------------------------------


def _rows(conversation: _Conversation, form: Format, tally: Tally) -> Iterator[dict[str, Any]]:
    """What one conversation gives."""
    if conversation.source is not None:
        yield from rows.ROWS[form](conversation.source, conversation.options, tally)
        return
    if conversation.found is None:
        return
    unit = conversation.options.unit if form is Format.SFT else Unit.TURN
    for row in corpus_rows.division_rows(conversation.found, conversation.party, unit=unit, tally=tally):
        if form is Format.SFT:
            yield row
        else:
            messages = row.pop("messages")
            yield {"prompt": messages[:-1], "completion": messages[-1:], **row}


def _pairs(conversations: Iterable[_Conversation], tally: Tally) -> Iterator[tuple[int, dict[str, Any]]]:
    """Pairs of endings, scenario by scenario in the order in which these first come."""
    together: dict[int, list[_Conversation]] = {}
    for conversation in conversations:
        together.setdefault(conversation.key, []).append(conversation)
    for key, group in together.items():
        sources = [conversation.source for conversation in group if conversation.source is not None]
        for row in rows.preference_rows(sources, group[0].options, tally):
            yield key, row


class _Sink:
    """Where rows go: counted, hashed and, for a folder, written."""

    def __init__(self, folder: Path | None, count: TokenCounter | None) -> None:
        self._files = {split: JsonLines(folder / f"{split}.jsonl") for split in SPLITS} if folder else {}
        self._hashes = {split: hashlib.sha256() for split in SPLITS}
        self._count = count or (lambda text: -(-len(text) // CHARACTERS_A_TOKEN))
        self.rows: Counter[str] = Counter()
        self.tokens = self.longest = 0
        self.sample: list[dict[str, Any]] = []

    def add(self, split: str, row: dict[str, Any]) -> None:
        """One row."""
        self._hashes[split].update(line(row))
        if self._files:
            self._files[split].add(row)
        tokens = sum(self._count(text) for text in _texts(row))
        self.tokens += tokens
        self.longest = max(self.longest, tokens)
        self.rows[split] += 1
        if len(self.sample) < SAMPLE:
            self.sample.append(row)

    def close(self) -> None:
        """Write what is held."""
        for file in self._files.values():
            file.close()

    @property
    def sha256(self) -> str:
        """Hash of the data, as `export_files.content_hash` gives it for the folder."""
        listed = sorted((f"{split}.jsonl", found.hexdigest()) for split, found in self._hashes.items())
        return hashlib.sha256("".join(f"{digest}  {name}\n" for name, digest in listed).encode()).hexdigest()


def _texts(row: Mapping[str, Any]) -> Iterator[str]:
    """Every text of the messages of a row, the functions called included."""
    for column in ("messages", "prompt", "completion", "chosen", "rejected"):
        for message in row.get(column, ()):
            yield message["content"]
            if message.get("tool_calls"):
                yield json.dumps(message["tool_calls"], ensure_ascii=False)


def _fill(chosen: Chosen, form: Format, sink: _Sink, progress: Progress) -> Preview:
    plan, tally, shared = _plan(chosen, form), Tally(), Splits()
    for participant, key in plan.people:
        shared.sat(participant, key)
    shared.settle(plan.keys)

    def counted() -> Iterator[_Conversation]:
        for conversation in plan.conversations(plan):
            plan.taken += len(conversation.source.chairs) if conversation.source is not None else 1
            progress(plan.taken)
            yield conversation

    if form is Format.PREFERENCE:
        for key, row in _pairs(counted(), tally):
            sink.add(shared.split_of(key), row)
    else:
        for conversation in counted():
            for row in _rows(conversation, form, tally):
                sink.add(shared.split_of(conversation.key), row)
    return Preview(
        conversations=plan.taken,
        rows=sum(sink.rows.values()),
        rows_by_split={split: sink.rows[split] for split in SPLITS},
        tokens=sink.tokens,
        longest=sink.longest,
        participants=plan.participants,
        moves=tally.decisions,
        moves_answered=tally.written,
        moves_left_out=tally.not_chosen + tally.not_sayable,
        held_out=plan.held_out,
        licence=plan.licence,
        sha256=sink.sha256,
        sample=tuple(sink.sample),
    )


def preview(chosen: Chosen, *, form: Format = Format.SFT, count_tokens: TokenCounter | None = None) -> Preview:
    """What `write` would write, without writing. Raises `DataError`.

    It makes every row, a few milliseconds each: ask for fewer with `most` where somebody waits. `count_tokens` gives the
    tokens of a text; without it four characters are taken to be one.
    """
    return _fill(chosen, form, _Sink(None, count_tokens), lambda done: None)


def write(
    chosen: Chosen,
    folder: Path,
    *,
    form: Format = Format.SFT,
    count_tokens: TokenCounter | None = None,
    progress: Progress = lambda done: None,
) -> Written:
    """Write the data set into `folder`, which must be new, empty, or an earlier one. Raises `DataError`.

    `form` is `sft` (TRL's `messages`), `prompt-completion` or `preference`; a trainer reads `folder / "train.jsonl"`, or
    `datasets.load_dataset(folder)`. An error leaves no folder behind.
    """
    try:
        with whole_folder(folder) as draft:
            sink = _Sink(draft, count_tokens)
            try:
                found = _fill(chosen, form, sink, progress)
            finally:
                sink.close()
            _finish(chosen, form, draft, found)
    except ExportError as error:
        raise DataError(str(error)) from error
    return Written(folder, tuple(folder / f"{split}.jsonl" for split in SPLITS), found)


def _columns(chosen: Chosen, form: Format) -> tuple[Field, ...]:
    return rows.fields(form, "four_part" if chosen.kind is Kind.CORPUS else chosen.protocol)


def _finish(chosen: Chosen, form: Format, draft: Path, found: Preview) -> None:
    """What lies beside the data: card, dictionary of fields, facts, hashes."""
    fields = _columns(chosen, form)
    files = {f"{split}.jsonl": count for split, count in found.rows_by_split.items()}
    facts = {
        "schema_version": SCHEMA_VERSION,
        "format": form.value,
        "chosen": msgspec.to_builtins(chosen),
        "protocol": "four_part" if chosen.kind is Kind.CORPUS else chosen.protocol,
        "episodes": found.conversations,
        "licence": found.licence,
        **{name: getattr(found, name) for name in FACTS},
        "rows_by_split": dict(found.rows_by_split),
        "files": files,
        "sha256": found.sha256,
    }
    (draft / "README.md").write_text(_card(chosen, form, fields, files, found), encoding="utf-8", errors="replace")
    _json(draft / "fields.json", {field.name: field.meaning for field in fields})
    _json(draft / MANIFEST, facts)
    free = found.licence in (OPEN_LICENCE, SIMULATED_LICENCE)
    _json(
        draft / CROISSANT,
        croissant(
            name=f"parley-{form.value}",
            description=f"Conversations from Parley to imitate, as {form.value}: {found.conversations}. {found.licence}",
            licence="https://creativecommons.org/licenses/by/4.0/" if free else found.licence,
            version=f"{SCHEMA_VERSION}.0.0",
            tables={"default": {path: sha256_of(draft / path) for path in files}},
            columns={
                "default": [Described(each.name, each.feature.get("dtype", "json"), each.meaning) for each in fields]
            },
        ),
    )
    listed = [path for path in draft.rglob("*") if path.is_file()]
    (draft / SUMS).write_text(sums(draft, listed), encoding="utf-8")


FACTS = ("conversations", "rows", "participants", "moves", "moves_answered", "moves_left_out", "held_out")
"""Counts of a preview that a folder's facts repeat."""


def _card(chosen: Chosen, form: Format, fields: tuple[Field, ...], files: Mapping[str, int], found: Preview) -> str:
    free = found.licence in (OPEN_LICENCE, SIMULATED_LICENCE)
    asked = "\n".join(f"- `{name}`: {value}" for name, value in sorted(msgspec.to_builtins(chosen).items()) if value)
    told = "\n".join(f"| `{field.name}` | {field.meaning} |" for field in fields)
    return "\n".join(
        (
            *head(
                licence="cc-by-4.0" if free else "other",
                tables={"default": files},
                features=[{"name": field.name, **field.feature} for field in fields],
            ),
            "",
            f"# Conversations to imitate, `{form.value}`",
            "",
            f"{found.conversations} conversations, {found.rows} rows, schema version {SCHEMA_VERSION}. The learner is the "
            f"{chosen.perspective}; only its moves stand under the role `assistant`.",
            f"{found.moves_left_out} moves are left out: refused, played by the clock, or without words in the protocol. "
            f"{found.held_out} conversations are left out because they are held out for evaluation.",
            "",
            *(() if found.rows else (NOTHING, "")),
            "## Licence",
            "",
            found.licence,
            "",
            "## What was asked for",
            "",
            asked,
            "",
            "## Fields",
            "",
            "| field | meaning |",
            "|---|---|",
            told,
            "",
        )
    )


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", errors="replace")
