"""A study as data: who took part, what they answered, what they played, as tables that join.

Here: which rows may leave, their columns with meanings (the data dictionary), and the folder. Not here: the formats
of training and other exports of episodes (`negotiation_site.exports`), pages.

Contract. Only people who agreed to the scope asked for are in it; whoever withdrew, was erased, declined or never
answered the consent is counted in `study.json` and nowhere else. People who were assigned and did not play have a row.
Nothing of a pilot or a preview. People and rooms have pseudonyms that are the same in every export of a study, differ
between studies, and cannot be computed without the server's secret; platform identifiers, devices and completion codes
stay here. A round whose other side took their consent back keeps its row and loses what it came to. Undefined is
empty, never 0; amounts are integer cents; words are masked as in every export. The same data give the same bytes.
"""

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings

from markets import export, selectors
from markets.engine.protocol import Role, role_of
from markets.engine.scenarios import decode_scenario
from markets.export import ExportError, decoded, readable
from markets.export_files import MANIFEST, SUMS, Csv, JsonLines, sums, whole_folder
from markets.export_masking import mask
from markets.export_tables import BOOL, EPISODES, EVENTS, FLOAT, INT, TEXT, Column, episode_row, event_rows
from markets.models import Episode
from negotiation_site.studies import bonus
from negotiation_site.studies.design import AnswerKind, Completion, Design, encode, plan
from negotiation_site.studies.models import (
    AnswerPart,
    Mode,
    Participation,
    State,
    Study,
    StudyAnswer,
    StudyRound,
)

SCOPES = ("research", "public")
SCHEMA = "1"

PARTICIPANTS = (
    Column("participant", TEXT, "pseudonym, the same in every table and every export of this study"),
    Column("study", TEXT, "address of the study"),
    Column("version", INT, "version of the design that the participant was in"),
    Column("design_sha256", TEXT, "hash of that design as it is stored; study.json has it without completion codes"),
    Column("consent_version", TEXT, "version of the text agreed to"),
    Column("consent_scope", TEXT, "research, or public: whom the participant lets use the data"),
    Column("condition", TEXT, "assigned condition"),
    Column("role", TEXT, "assigned side: buyer or seller"),
    Column("market", TEXT, "slug of the condition's market"),
    Column("market_version", INT, "its version"),
    Column("matching", TEXT, "who was to sit opposite by design: agent, person or mixed"),
    Column("opponent", TEXT, "slug of the condition's agent; empty for the market's own"),
    Column("persona", TEXT, "the agent's way of talking; empty for none"),
    Column("told", TEXT, "what was said of the other side: ai, person or nothing"),
    Column("shows_prior", BOOL, "whether the rule that values are drawn by was shown"),
    Column("slot", INT, "place in the cell of condition and side, from 0, as it was assigned"),
    Column("state", TEXT, "where the participant is or ended"),
    Column("outcome", TEXT, "how the participation ended; empty while it goes on"),
    Column("played", BOOL, "whether a round that counts was begun"),
    Column("rounds_begun", INT, "rounds that count and were begun"),
    Column("quiz_tries", INT, "tries at the quiz"),
    Column("quiz_passed", BOOL, "whether it was passed; empty where there is none"),
    Column("consent_s", FLOAT, "seconds from the first page to consent"),
    Column("instructions_s", FLOAT, "seconds from consent until the instructions were read"),
    Column("quiz_s", FLOAT, "seconds from then until the quiz was passed"),
    Column("until_seated_s", FLOAT, "seconds from consent until the first round that counts"),
    Column("total_s", FLOAT, "seconds from the first page to the end"),
    Column("entered_at", TEXT, "when the first page was opened, ISO 8601 in UTC; empty in open data"),
    Column("pastes", INT, "how often text was pasted"),
    Column("looked_away", INT, "how often the page lost focus"),
    Column("devices", INT, "devices that took part, one after another"),
    Column("replaced", BOOL, "whether an agent took the participant's chair in some round"),
    Column("currency", TEXT, "ISO 4217 code of what is paid"),
    Column("fee_cents", INT, "show-up fee, or part pay; empty while it is not known"),
    Column(
        "bonus_cents",
        INT,
        "bonus by the payoff rule, from the event log; empty while it is not known, and where a round is withheld",
    ),
    Column("rounds_paid", TEXT, "numbers of the rounds that count for pay, with spaces"),
)
"""`survey_KEY` for every question of every version comes after these."""

ANSWERS = (
    Column("participant", TEXT, "pseudonym"),
    Column("part", TEXT, "quiz or survey"),
    Column("question", TEXT, "key of the question in the design"),
    Column("text", TEXT, "its words"),
    Column("manipulation_check", BOOL, "whether it asks for what the condition was meant to make people believe"),
    Column("attempt", INT, "try at the quiz, from 1; 1 in the survey"),
    Column("answer", TEXT, "the option's words, the number, or what was written; empty where it was passed over"),
    Column("right", BOOL, "of the quiz: whether it was right"),
    Column("after_s", FLOAT, "seconds since consent"),
)

ROUNDS = (
    Column("participant", TEXT, "pseudonym"),
    Column("round", INT, "number of the round; 0 is practice"),
    Column("room", TEXT, "pseudonym of the room; two participants of one room sat at one table"),
    Column(
        "episode", TEXT, "the room's episode: joins episodes.csv, events.csv and export_episodes; empty where withheld"
    ),
    Column("withheld", BOOL, "whether somebody at the table did not consent to this use, or took consent back"),
    Column("condition", TEXT, "condition"),
    Column("role", TEXT, "side"),
    Column("party", TEXT, "chair at the table: seller, buyer-1, …"),
    Column("scenario_set", INT, "block of value draws; empty for practice"),
    Column("scenario_number", INT, "draw of the block, before rotation"),
    Column("partner", TEXT, "pseudonym of who began on the other side; empty for an agent or where withheld"),
    Column("agent", TEXT, "slug of the agent that sat opposite, or would have stepped in"),
    Column("partner_was", TEXT, "agent, person, or replaced: a person whose chair an agent took"),
    Column("replaced", BOOL, "whether an agent took the participant's own chair"),
    Column("outcome", TEXT, "deal, no_deal, silent, partner_left or stopped; empty while it goes on"),
    Column("currency", TEXT, "ISO 4217 code of the market"),
    Column("own_value_cents", INT, "the participant's reservation value for the first product"),
    Column("surplus_cents", INT, "own gain over no deal; 0 without one"),
    Column("surplus_share", FLOAT, "own gain / all that there was to gain; empty where trade cannot gain"),
    Column("first_best_cents", INT, "the most that could have been gained together"),
    Column("welfare_cents", INT, "what was gained together"),
    Column("counts", BOOL, "whether the round counts for pay"),
    Column("began_s", FLOAT, "seconds since consent when it began"),
    Column("seconds", FLOAT, "how long it took"),
)

SIGNS = (
    Column("participant", TEXT, "pseudonym"),
    Column("kind", TEXT, "state, seated, round_over, took_over, silent, replaced, paste, blur or focus"),
    Column("detail", TEXT, "the state that was reached, the round, how much was pasted, how long the page was left"),
    Column("after_s", FLOAT, "seconds since consent"),
)
SIGN_KINDS = ("state", "seated", "round_over", "took_over", "silent", "replaced", "paste", "blur", "focus")
FILES = {
    "participants.csv": "one row a person who consented, played or not",
    "answers.csv": "one row an answer of quiz and survey",
    "rounds.csv": "one row a person and round",
    "signs.csv": "one row a step, a paste or a loss of focus, as the consent says",
    "episodes.csv": "one row an episode that may be used, as export_episodes --format csv writes it",
    "events.csv": "one row an event of those episodes",
    "episodes.jsonl": "the same episodes as records, as export_episodes --format jsonl writes them",
}


@dataclass
class Made:
    """A finished data set."""

    folder: Path
    manifest: dict[str, Any]
    files: list[Path]


@dataclass(frozen=True)
class _Person:
    row: Participation
    name: str
    design: Design


def make(study: Study, out: Path, *, scope: str = "research") -> Made:
    """Write the data set of a study into the folder `out`. Raises `ExportError` with a sentence."""
    if scope not in SCOPES:
        raise ExportError(f"There is no consent {scope!r}; choose from {', '.join(SCOPES)}.")
    with whole_folder(out) as draft:
        manifest = _write(study, draft, scope)
    return Made(
        out, manifest, [out / name for name in sorted([*FILES, "README.md", "dictionary.csv", "study.json", MANIFEST])]
    )


def people_of(study: Study, *, scope: str) -> list[Participation]:
    """Those whose data may leave under this scope, in the order in which they entered."""
    scopes = ("public",) if scope == "public" else SCOPES
    found = (
        Participation.objects.filter(
            study=study, mode=Mode.LIVE, consented_at__isnull=False, consent_scope__in=scopes, participant__isnull=False
        )
        .exclude(state=State.WITHDREW)
        .select_related("study", "version", "payment__settled_by")
        .prefetch_related("rounds__room__market", "answers", "events")
        .order_by("pk")
    )
    return list(found)


def pseudonym(study: Study, kind: str, public_id: str) -> str:
    """A name that stays the same for this study and tells nothing."""
    text = "\x1f".join(("study dataset", study.slug, kind, public_id))
    digest = hmac.new(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256).hexdigest()
    return f"{kind}-{digest[:12]}"


def _write(study: Study, draft: Path, scope: str) -> dict[str, Any]:
    people = [
        _Person(row, pseudonym(study, "p", row.public_id), row.version.parsed) for row in people_of(study, scope=scope)
    ]
    names = {one.row.pk: one.name for one in people}
    seats = {one.row.participant_id: one.name for one in people if one.row.participant_id}
    rooms = {played.room_id for one in people for played in one.row.rounds.all()}
    episodes = {
        episode.room_id: episode
        for episode in selectors.episodes_for_export(scope=scope).filter(room__in=rooms).order_by("pk")
    }
    surveys = _survey_keys(people)
    columns = (*PARTICIPANTS, *(Column(f"survey_{key}", TEXT, words) for key, words in surveys.items()))
    rows = {
        "participants.csv": _file(
            draft / "participants.csv", columns, (_participant(one, surveys, episodes, scope) for one in people)
        ),
        "answers.csv": _file(draft / "answers.csv", ANSWERS, _answers(people)),
        "rounds.csv": _file(draft / "rounds.csv", ROUNDS, _rounds(study, people, names, episodes)),
        "signs.csv": _file(draft / "signs.csv", SIGNS, _signs(people)),
    }
    rows |= _episodes(draft, episodes, seats)
    described = _dictionary(draft, columns)
    (draft / "study.json").write_text(json.dumps(_study(study, scope, people), ensure_ascii=False, indent=1) + "\n")
    (draft / "README.md").write_text(_readme(study, scope, rows, described))
    manifest = {
        "schema": SCHEMA,
        "study": study.slug,
        "consent": scope,
        "participants": len(people),
        "played": sum(one.row.seated_at is not None for one in people),
        "episodes": len(episodes),
        "rows": rows,
    }
    (draft / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n")
    (draft / SUMS).write_text(sums(draft, [path for path in draft.iterdir() if path.name != SUMS]))
    return manifest


def _file(path: Path, columns: tuple[Column, ...], rows: Iterator[tuple[Any, ...]]) -> int:
    written = Csv(path, columns)
    for row in rows:
        written.add(row)
    written.close()
    return written.count


def _after(one: _Person, moment: datetime | None) -> float | None:
    return _seconds(one.row.consented_at, moment)


def _seconds(since: datetime | None, until: datetime | None) -> float | None:
    return None if since is None or until is None else round((until - since).total_seconds(), 3)


# --- Tables -------------------------------------------------------------------------------------------


def _survey_keys(people: list[_Person]) -> dict[str, str]:
    """Questions of the survey in every version that somebody here was in, with their words."""
    return {question.key: f"survey: {question.text}" for one in people for question in one.design.survey}


def _participant(
    one: _Person, surveys: dict[str, str], episodes: dict[int | None, Episode], scope: str
) -> tuple[Any, ...]:
    row, condition = one.row, one.design.condition(one.row.condition)
    played = [each for each in row.rounds.all() if each.number > 0]
    noted = Counter(event.kind for event in row.events.all())
    asked = bool(one.design.quiz.for_role(Role(row.role)))
    paid = bonus.row_of(row)
    withheld = any(each.ended_at is not None and each.room_id not in episodes for each in played)
    answered = {
        answer.question: mask(answer.answer) for answer in row.answers.all() if answer.part == AnswerPart.SURVEY
    }
    return (
        one.name,
        row.study.slug,
        row.version.number,
        row.version.sha256,
        row.consent_version,
        row.consent_scope,
        row.condition,
        row.role,
        condition.market,
        condition.market_version,
        condition.matching.value,
        condition.agent,
        condition.persona,
        condition.told.value,
        condition.shows_prior,
        row.assigned_slot,
        row.state,
        row.outcome,
        row.seated_at is not None,
        len(played),
        row.quiz_tries,
        (row.quiz_passed_at is not None) if asked else None,
        _seconds(row.entered_at, row.consented_at),
        _seconds(row.consented_at, row.instructed_at),
        _seconds(row.instructed_at, row.quiz_passed_at),
        _seconds(row.consented_at, row.seated_at),
        _seconds(row.entered_at, row.ended_at),
        "" if scope == "public" else row.entered_at.isoformat(timespec="seconds"),
        noted["paste"],
        noted["blur"],
        1 + noted["took_over"],
        any(each.replaced_at is not None for each in played),
        paid.currency,
        paid.fee_cents,
        None if withheld else paid.bonus_cents,
        " ".join(map(str, paid.counted)),
        *(answered.get(key) for key in surveys),
    )


def _answers(people: list[_Person]) -> Iterator[tuple[Any, ...]]:
    for one in people:
        quiz = {question.key: question for question in one.design.quiz.questions}
        survey = {question.key: question for question in one.design.survey}
        for answer in one.row.answers.all():
            yield (
                one.name,
                answer.part,
                answer.question,
                *_asked(answer, quiz, survey),
                answer.attempt,
                *_given(one, answer, survey),
            )


def _asked(answer: StudyAnswer, quiz: dict[str, Any], survey: dict[str, Any]) -> tuple[str, bool | None]:
    if answer.part == AnswerPart.QUIZ:
        return quiz[answer.question].text, None
    return survey[answer.question].text, survey[answer.question].manipulation_check


def _given(one: _Person, answer: StudyAnswer, survey: dict[str, Any]) -> tuple[str, bool | None, float | None]:
    free = answer.part == AnswerPart.SURVEY and survey[answer.question].kind is AnswerKind.TEXT
    return mask(answer.answer) if free else answer.answer, answer.right, _after(one, answer.answered_at)


def _rounds(
    study: Study, people: list[_Person], names: dict[int, str], episodes: dict[int | None, Episode]
) -> Iterator[tuple[Any, ...]]:
    for one in people:
        paid = bonus.row_of(one.row).counted
        for played in sorted(one.row.rounds.all(), key=lambda each: each.number):
            yield _round(study, one, played, names, episodes.get(played.room_id), counts=played.number in paid)


def _round(
    study: Study, one: _Person, played: StudyRound, names: dict[int, str], episode: Episode | None, *, counts: bool
) -> tuple[Any, ...]:
    over = played.ended_at is not None
    withheld = over and episode is None
    partner = names.get(played.partner_id or 0, "") if not withheld else ""
    was = "agent" if played.partner_id is None else "replaced" if played.partner_replaced_at else "person"
    known: tuple[Any, ...] = (None,) * 5
    if episode is not None and over:
        scenario = decode_scenario(readable(episode.scenario))
        seat = next(each for each in episode.seats.all() if each.party == played.party)
        own = played.replaced_at is None
        known = (
            scenario.seller_values_cents[0]
            if role_of(played.party) is Role.SELLER
            else scenario.buyer_values_cents[int(played.party.removeprefix("buyer-")) - 1][0],
            seat.surplus_cents if own else 0,
            (seat.surplus_share if own else 0.0) if episode.first_best_cents > 0 else None,
            episode.first_best_cents,
            episode.welfare_cents,
        )
    return (
        one.name,
        played.number,
        pseudonym(study, "r", played.room.public_id),
        episode.public_id if episode is not None else None,
        withheld,
        one.row.condition,
        one.row.role,
        played.party,
        played.scenario_set,
        played.scenario_number,
        partner,
        played.agent_slug,
        was,
        played.replaced_at is not None,
        None if withheld else played.outcome,
        episode.currency if episode is not None else None,
        *known,
        counts,
        _after(one, played.opened_at),
        _seconds(played.opened_at, played.ended_at),
    )


def _signs(people: list[_Person]) -> Iterator[tuple[Any, ...]]:
    for one in people:
        for event in sorted(one.row.events.all(), key=lambda each: each.pk):
            if event.kind in SIGN_KINDS and event.at >= (one.row.consented_at or event.at):
                yield one.name, event.kind, event.detail, _after(one, event.at)


def _episodes(draft: Path, episodes: dict[int | None, Episode], seats: dict[int, str]) -> dict[str, int]:

    table, log_table = Csv(draft / "episodes.csv", EPISODES), Csv(draft / "events.csv", EVENTS)
    records = JsonLines(draft / "episodes.jsonl")
    for episode in sorted(episodes.values(), key=lambda each: each.public_id):
        scenario, log = decoded(episode)
        table.add(episode_row(episode, scenario, log, split="", pseudonyms=seats))
        for row in event_rows(episode, scenario, log, split="", mask=mask, with_thoughts=False):
            log_table.add(row)
        records.add(export.record(episode, mask=mask, pseudonyms=seats))
    for file in (table, log_table, records):
        file.close()
    return {"episodes.csv": table.count, "events.csv": log_table.count, "episodes.jsonl": records.count}


# --- What describes them ------------------------------------------------------------------------------


def _study(study: Study, scope: str, people: list[_Person]) -> dict[str, Any]:
    """The designs that people here were in, and the flow of everybody who entered."""
    live = Participation.objects.filter(study=study, mode=Mode.LIVE)
    numbers = {one.row.version_id for one in people}
    return {
        "schema": SCHEMA,
        "study": study.slug,
        "consent": scope,
        "flow": {
            "entered": live.count(),
            "declined_or_left_before_consent": live.filter(consented_at=None).exclude(state=State.WITHDREW).count(),
            "withdrew": live.filter(state=State.WITHDREW).count(),
            "consented_to_another_use": live.filter(consented_at__isnull=False).exclude(state=State.WITHDREW).count()
            - len(people),
            "in_this_export": len(people),
            "assigned_and_did_not_play": sum(one.row.seated_at is None for one in people),
            "finished": sum(one.row.state == State.FINISHED for one in people),
        },
        "versions": [
            {
                "number": version.number,
                "design_sha256": version.sha256,
                "registered_at": version.registered_at.isoformat() if version.registered_at else None,
                "plan_sha256": version.plan_sha256 or None,
                "design": json.loads(plan(version.parsed) if scope == "public" else _without_codes(version.parsed)),
            }
            for version in study.versions.filter(pk__in=numbers).order_by("number")
        ],
    }


def _without_codes(design: Design) -> str:
    return encode(msgspec.structs.replace(design, completion=Completion()))


def _dictionary(draft: Path, participants: tuple[Column, ...]) -> dict[str, tuple[Column, ...]]:
    described = {
        "participants.csv": participants,
        "answers.csv": ANSWERS,
        "rounds.csv": ROUNDS,
        "signs.csv": SIGNS,
        "episodes.csv": EPISODES,
        "events.csv": EVENTS,
    }
    columns = (
        Column("file", TEXT, ""),
        Column("column", TEXT, ""),
        Column("type", TEXT, ""),
        Column("meaning", TEXT, ""),
    )
    _file(
        draft / "dictionary.csv",
        columns,
        ((name, column.name, column.type, column.meaning) for name, own in described.items() for column in own),
    )
    return described


def _readme(study: Study, scope: str, rows: dict[str, int], described: dict[str, tuple[Column, ...]]) -> str:
    whom = (
        "everybody: only people who agreed to open data are in it"
        if scope == "public"
        else "research by the people who run the study"
    )
    lines = [
        f"# Data of the study `{study.slug}`",
        "",
        f"For use by {whom}. Whoever withdrew, declined or did not answer the consent is counted in `study.json` and is "
        "in no table. People who were assigned and did not play have a row in `participants.csv`.",
        "",
        "`participant` joins all tables; `episode` joins `rounds.csv` with `episodes.csv`, `events.csv`, `episodes.jsonl` "
        f"and with `manage.py export_episodes --study {study.slug}`. Pseudonyms are the same in every export of this study. "
        "Amounts are integer cents. An empty cell is unknown or does not apply; it is never 0.",
        "",
        "| file | rows | holds |",
        "|---|---|---|",
        *(f"| `{name}` | {rows[name]} | {words} |" for name, words in FILES.items()),
        "| `study.json` | – | the designs with their hashes (without completion codes), and the flow of everybody who entered |",
        "| `dictionary.csv` | – | the tables below |",
        "",
    ]
    for name, columns in described.items():
        lines += [f"## {name}", "", "| column | type | meaning |", "|---|---|---|"]
        lines += [f"| `{column.name}` | {column.type} | {_cell(column.meaning)} |" for column in columns]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
