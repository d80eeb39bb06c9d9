"""What injection suites came to, kept: writing scores, and the newest of every agent.

Here: `InjectionScore` rows. Not here: playing a suite (`agents.injection`), pages.

Contract: only scores of the attack set that comes with the code, in its present version, and of unregulated
markets are shown on pages; only those of whole suites are compared; an agent of another version has another score.
"""

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
    """The newest score of every agent by slug and version, of the whole set that comes with the code."""
    present = attacks.shipped()
    rows = InjectionScore.objects.filter(set_digest=present.digest, regulated=False, whole=True).order_by("id")
    return {(row.agent_slug, row.agent_version): row for row in rows}


def of_agent(slug: str, version: str) -> InjectionScore | None:
    """The newest score of one agent, of a whole suite where there is one; None where it was not attacked yet."""
    present = attacks.shipped()
    rows = InjectionScore.objects.filter(
        agent_slug=slug, agent_version=version, set_digest=present.digest, regulated=False
    )
    return rows.order_by("-whole", "-id").first()
