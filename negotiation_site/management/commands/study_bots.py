"""Walks headless participants through a whole study, over HTTP and sockets as browsers would.

Without `--url` they walk on the site that runs from this PARLEY_VAR; where none runs, a `lab` is started on a free
port for as long as they take. They are participants like any others, known by their platform names (`bot-…`): try it
in a pilot where the data must stay clean. The figures are the record's, not what the bots say of themselves; where
the two differ there is an error.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import urlsplit

import httpx2
from django.conf import settings
from django.core.management import CommandError, CommandParser
from django.db import connections

from agents import registry
from agents.base import Kind
from agents.registry import UnknownAgent
from negotiation_site.contract import ContractCommand, positive
from negotiation_site.studies import assignment, authoring, bots, conduct, pay, play
from negotiation_site.studies.bots import Person, Plan, Walk
from negotiation_site.studies.conduct import StudyError
from negotiation_site.studies.design import Design
from negotiation_site.studies.models import LinkKind, Participation, RecruitmentLink, State, Study, StudyRound

START_S = 120.0
MOST = 500


class Command(ContractCommand):
    help = "Walk headless participants through a study over HTTP and sockets, and say what the record holds of them."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="address of the study, such as demo-study")
        parser.add_argument("--n", type=_number, default=10, help="how many participants (10)")
        parser.add_argument("--url", type=_url, help="a running site on this database; else one is found or started")
        parser.add_argument("--seed", type=int, default=1, help="of what they answer and offer (1)")
        parser.add_argument(
            "--pace", type=_seconds, default=0.0, help="longest pause before a step, in seconds (0: all at once)"
        )
        parser.add_argument("--leave", action="store_true", help="sit down and leave at once, without bargaining")
        parser.add_argument("--patience", type=_seconds, default=900.0, help="longest walk, in seconds (900)")

    def run(self, **options: Any) -> dict[str, Any]:
        study, count = _study(options["study"]), options["n"]
        links, made = _links(study, count)
        design = conduct.newest_version(study).parsed
        run = secrets.token_hex(4)
        people = [
            Person(f"bot-{run}-{number:03d}", f"bots-{study.slug}", f"{run}-{number:03d}")
            for number in range(1, count + 1)
        ]
        began = time.monotonic()
        with _site(options["url"], design) as url:
            plan = Plan(
                base=url,
                links=links,
                answers={question.key: question.right or 0 for question in design.quiz.questions},
                pace_s=options["pace"],
                haggles=not options["leave"],
                patience_s=options["patience"] or 900.0,
            )
            connections.close_all()  # Nobody here reads while they walk.
            walking = time.monotonic()
            walks = bots.walk(plan, people, seed=options["seed"])
            ended = time.monotonic()
            if made is not None:
                authoring.close_link(made, actor=None)
            return {
                "study": study.slug,
                "url": url,
                "n": count,
                **_record(study, design, run, walks),
                "moves": sum(walk.moves for walk in walks),
                "refused": dict(sum((walk.refused for walk in walks), Counter())),
                "slowed": sum(walk.slowed for walk in walks),
                "seconds": round(ended - walking, 1),
                "seconds_to_start": round(walking - began, 1),
            }

    def describe(self, document: Any) -> str:
        lines = [
            f"{document['n']} entered {document['study']} in {document['seconds']} s: {document['consented']} consented, "
            f"{document['passed_quiz']} passed the quiz, {document['seated']} were seated, {document['finished']} "
            f"finished, {document['paid_rows']} are to be paid.",
            *(f"  {condition}: {count}" for condition, count in document["by_condition"].items()),
            *document["errors"],
        ]
        return "\n".join(lines)


# --- What was asked ---------------------------------------------------------------------------------


def _number(text: str) -> int:
    number = positive(text)
    if number > MOST:
        raise ArgumentTypeError(f"{text!r} is more than {MOST}, which one process can walk")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not 0 <= seconds <= 86_400:
        raise ArgumentTypeError(f"{text!r} is not between 0 and 86,400 seconds")
    return seconds


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise ArgumentTypeError(f"{text!r} is no address of a site, such as http://127.0.0.1:8000")
    return f"{parts.scheme}://{parts.netloc}"


def _refuse(sentence: str) -> CommandError:
    return CommandError(sentence, returncode=2)


def _study(slug: str) -> Study:
    study = None if "\0" in slug else Study.objects.filter(slug=slug).first()
    if study is None:
        there = ", ".join(Study.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise _refuse(f"There is no study {slug!r}; there is: {there or 'none yet, run seed_demo'}.")
    return study


def _links(study: Study, count: int) -> tuple[tuple[str, ...], RecruitmentLink | None]:
    """The study's open link; else one-time links that nobody has used; else an open link made for the bots, which is
    the second of the pair and is to be closed behind them."""
    there = RecruitmentLink.objects.filter(study=study, closed_at=None).order_by("pk")
    link = there.filter(kind=LinkKind.OPEN).first()
    unused = list(there.filter(kind=LinkKind.ONE_TIME, used_at=None)[:count])
    try:
        conduct.refuse_entry(study, link or RecruitmentLink(study=study, kind=LinkKind.OPEN))
    except StudyError as refused:
        raise _refuse(f"{study.slug}: {refused.sentence}") from refused
    if link is None and len(unused) == count:
        return tuple(each.token for each in unused), None
    if link is None:
        made = authoring.open_link(study, actor=None, label="bots")
        return (made.token,), made
    if problem := conduct.entry_problem(link, conduct.Identity()):
        raise _refuse(f"{study.slug}: {problem.sentence}")
    return (link.token,), None


# --- The site ---------------------------------------------------------------------------------------


@contextmanager
def _site(url: str | None, design: Design) -> Iterator[str]:
    """Where the bots walk: the address that was named, the site of this PARLEY_VAR, or one started for them."""
    if url:
        if not _answers(url):
            raise _refuse(f"No site answers at {url}.")
        yield url
    elif running := _running():
        yield running
    else:
        with _started(design) as started:
            yield started


def _running() -> str:
    """Address of the site that runs from this folder; empty where none does."""
    try:
        url = str(json.loads((settings.VAR / "run" / "lab.json").read_text())["url"])
    except (FileNotFoundError, json.JSONDecodeError, KeyError):
        return ""
    return url if _answers(url) else ""


def _answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/readyz", timeout=20, trust_env=False).status_code == httpx2.codes.OK
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return False


@contextmanager
def _started(design: Design) -> Iterator[str]:
    """A lab on a free port that ends with this block."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PARLEY_ROLE", "PORT")}
    environment["PARLEY_VAR"] = str(settings.VAR)
    if not _needs_a_model(design):
        environment["PARLEY_INFERENCE"] = "off"
    with TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "lab", "--port", "0", "--stop-with-parent"],
            cwd=settings.BASE_DIR,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield _address(process, log)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def _address(process: "subprocess.Popen[bytes]", log: Any) -> str:
    deadline = time.monotonic() + START_S
    state = Path(settings.VAR) / "run" / "lab.json"
    while process.poll() is None and time.monotonic() < deadline:
        log.seek(0)
        if b"Parley is at http" in log.read():
            return str(json.loads(state.read_text())["url"])
        time.sleep(0.2)
    log.seek(0)
    said = log.read().decode(errors="replace").strip().splitlines()[-5:]
    raise CommandError(
        "The site could not be started for the bots: " + (" ".join(said) or "it said nothing."), returncode=1
    )


def _needs_a_model(design: Design) -> bool:
    """Whether somebody at these tables speaks through a language model."""
    slugs = {design.practice.agent} - {""}
    for condition in design.conditions:
        market = play.market_of(condition)
        slugs |= {play.agent_slug(condition, market, role) for role in condition.side.roles}
        slugs |= {market.seller_agent, *market.buyer_agents.split(",")}
        if condition.persona:
            return True
    try:
        return any(registry.get(slug).kind not in (Kind.SCRIPTED, Kind.REFERENCE) for slug in slugs)
    except UnknownAgent:
        return True


# --- What the record says -----------------------------------------------------------------------------


def _record(study: Study, design: Design, run: str, walks: list[Walk]) -> dict[str, Any]:
    found = list(
        Participation.objects.filter(study=study, platform_person__startswith=f"bot-{run}-").select_related(
            "version", "study"
        )
    )
    seated = [each for each in found if each.seated_at is not None]
    cells = Counter((each.condition, each.role) for each in seated)
    by_condition = {condition.key: 0 for condition in design.conditions}
    for each in seated:
        by_condition[each.condition] = by_condition.get(each.condition, 0) + 1
    paid = [each for each in found if each.outcome in pay.PAID_OUTCOMES and pay.amounts(each).total_cents is not None]
    entered = {each.platform_person: each for each in found}
    errors = [f"{walk.person.name} {walk.problem}." for walk in walks if walk.problem]
    if len(entered) != len(found):
        errors.append(f"{len(found) - len(entered)} bots are in the record twice.")
    for walk in walks:
        row = entered.get(walk.person.name)
        if row is None and walk.public_id:
            errors.append(
                f"{walk.person.name} entered, and this database knows nothing of it: does the site use another?"
            )
        elif row is not None and not walk.problem and row.state != walk.seen[-1]:
            errors.append(f"{walk.person.name} saw {walk.seen[-1]!r}, and the record says {row.state!r}.")
    return {
        "entered": len(found),
        "consented": sum(each.consented_at is not None for each in found),
        "passed_quiz": sum(
            each.instructed_at is not None and (each.quiz_passed_at is not None or not conduct.quiz_of(each))
            for each in found
        ),
        "seated": len(seated),
        "finished": sum(each.state == State.FINISHED for each in found),
        "paid_rows": len(paid),
        "by_condition": by_condition,
        "errors": errors,
        "by_cell": {
            f"{cell.condition}:{cell.role.value}": cells[cell.condition, cell.role.value]
            for cell in assignment.cells(design)
        },
        "outcomes": dict(Counter(each.outcome or each.state for each in found)),
        "seats": StudyRound.objects.filter(participation__in=found, number__gt=0).count(),
        "rooms": StudyRound.objects.filter(participation__in=found).values("room").distinct().count(),
    }
