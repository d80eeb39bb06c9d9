"""Numbers as leaderboards write them, and agents by their names.

Empty where a number is undefined. Shares are written in percent with one decimal, differences in
points of a percent, amounts by `engine.money`.
"""

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from agents import registry
from agents.base import AgentSpec, Kind
from agents.scripted.personas import MARK
from negotiation_site.leaderboard.facts import Facts
from negotiation_site.leaderboard.tables import Estimate

MINUS = "−"


def signed(text: str) -> str:
    """A number with a minus sign as people write it."""
    return text.replace("-", MINUS)


def percent(number: float | None, *, digits: int = 1) -> str:
    """A fraction in percent."""
    return "" if number is None else signed(_("%(number)s\u00a0%%") % {"number": f"{number * 100:.{digits}f}"})


def span(estimate: Estimate, *, scale: float = 100, digits: int = 1) -> str:
    """An interval: "51.2 to 54.3"."""
    if estimate.low is None or estimate.high is None:
        return ""
    return signed(
        _("%(low)s to %(high)s")
        % {"low": f"{estimate.low * scale:.{digits}f}", "high": f"{estimate.high * scale:.{digits}f}"}
    )


def estimated(estimate: Estimate, *, digits: int = 1) -> str:
    """A fraction with its interval in one line, for tables beside plots."""
    value = percent(estimate.value, digits=digits)
    interval = span(estimate, digits=digits)
    return f"{value} ({interval})" if interval else value


def decimal(number: float | None, *, digits: int = 2) -> str:
    """A plain number."""
    return "" if number is None else signed(f"{number:.{digits}f}")


def decimals(estimate: Estimate, *, digits: int = 2) -> str:
    """A plain number with its interval."""
    value, interval = decimal(estimate.value, digits=digits), span(estimate, scale=1, digits=digits)
    return f"{value} ({interval})" if interval else value


def count(number: int) -> str:
    """A whole number with its thousands apart."""
    return f"{number:,}"


def kind_text(kind: Kind) -> str:
    """What decides, in a word or two."""
    return {
        Kind.SCRIPTED: _("scripted"),
        Kind.NARRATOR: _("scripted, speaks by a model"),
        Kind.MODEL: _("language model"),
        Kind.LEARNED: _("trained here"),
        Kind.REFERENCE: _("reference"),
    }[kind]


@dataclass(frozen=True)
class Name:
    """An agent as a board names it."""

    slug: str
    version: str
    title: str
    kind: Kind | None
    """None for an agent that is no longer installed."""


def names(facts: Facts) -> tuple[Name, ...]:
    """By the codes of `facts`. A version that is not the present one is told apart."""
    specs: dict[str, AgentSpec] = {spec.slug: spec for spec in (*registry.all_specs(), *registry.entered_specs())}
    versions: dict[str, set[str]] = {}
    for slug, version in facts.agents:
        versions.setdefault(slug, set()).add(version)
    found = []
    for slug, version in facts.agents:
        spec = specs.get(slug) or _unlisted(slug)
        title = slug if spec is None else spec.title
        if len(versions[slug]) > 1 or (spec is not None and spec.version != version):
            title = _("%(title)s, version %(version)s") % {"title": title, "version": version}
        found.append(Name(slug, version, title, None if spec is None else spec.kind))
    return tuple(found)


def agent_url(slug: str) -> str:
    """The page of an agent; in a persona it has the page of the agent that it plays."""
    return reverse("agent", args=[slug.partition(MARK)[0]])


def _unlisted(slug: str) -> AgentSpec | None:
    """An agent that sits at tables and is in no list, such as a rule that speaks by a model."""
    try:
        return registry.get(slug)
    except registry.UnknownAgent:
        return None
