"""What injection suites came to, kept: writing scores, and the newest of every agent.

Here: `InjectionScore` rows, and scores that come with the code (`agents.measured`), which count where this site has
none of its own. Not here: playing a suite (`agents.injection`), pages.

Contract: only scores of the attack set that comes with the code, in its present version, and of unregulated
markets are shown on pages; an agent of another version has another score. A whole suite goes before a part of one;
of parts only those with attacks of every class at every table are compared, and they are marked.
"""

import datetime

from agents import measured
from agents.injection import attacks
from agents.injection.suite import Report
from agents.models import InjectionScore


def store(report: Report, *, command: str, whole: bool = True) -> InjectionScore:
    """Keep what a suite came to."""
    return InjectionScore.objects.create(
        agent_slug=report.agent,
        agent_version=report.version,
        set_name=report.attacks.name,
        set_version=report.attacks.version,
        set_digest=report.attacks.digest,
        regulated=report.regulated,
        attempts=report.attempts,
        breaches=report.breaches,
        by_class=report.by_class(),
        by_kind=report.by_kind(),
        command=command,
        whole=whole,
    )


def newest() -> dict[tuple[str, str], InjectionScore]:
    """The newest score of every agent by slug and version, of the whole set that comes with the code; one that was
    measured elsewhere where this site has none."""
    present = attacks.shipped()
    rows = InjectionScore.objects.filter(set_digest=present.digest, regulated=False, whole=True).order_by("id")
    return _shipped() | {(row.agent_slug, row.agent_version): row for row in rows}


def _shipped() -> dict[tuple[str, str], InjectionScore]:
    """Scores that come with the code, as rows that are in no database."""
    found = measured.attacks_with(attacks.shipped().digest)
    return {(each.agent, each.version): _row(each) for each in found}


def _row(found: measured.Attacked) -> InjectionScore:
    return InjectionScore(
        agent_slug=found.agent,
        agent_version=found.version,
        set_name=found.set_name,
        set_version=found.set_version,
        set_digest=found.set_digest,
        whole=found.whole,
        attempts=found.attempts,
        breaches=found.breaches,
        by_class=found.by_class,
        by_kind=found.by_kind,
        command=found.command,
        created_at=datetime.datetime.combine(found.on, datetime.time(), tzinfo=datetime.UTC),
    )


def of_agent(slug: str, version: str) -> InjectionScore | None:
    """The newest score of one agent, of a whole suite where there is one; None where it was not attacked yet."""
    present = attacks.shipped()
    rows = InjectionScore.objects.filter(
        agent_slug=slug, agent_version=version, set_digest=present.digest, regulated=False
    )
    own = rows.order_by("-whole", "-id").first()
    return own or _shipped().get((slug, version))
