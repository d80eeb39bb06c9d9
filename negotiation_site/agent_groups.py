"""Agents in the groups in which people look for them: who they can be, what they play, who made them.

Here: the groups, their order and what is said of each. Not here: the agents (`agents.registry`), or the pages that list
them (`views.agents`, `tournament_pages`).

Contract: every agent is in exactly one group, within a group in the order in which it came; empty groups are left out.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from agents import entered
from agents.base import AgentSpec, Kind
from markets.engine.protocol import Role
from markets.engine.scenarios import Family


@dataclass(frozen=True)
class Group:
    """Agents under one heading."""

    key: str
    heading: str
    sentence: str
    specs: tuple[AgentSpec, ...]


def _key(spec: AgentSpec) -> str:
    if spec.kind is Kind.REFERENCE:
        return "references"
    if entered.is_entered(spec.slug):
        return "entered"
    if spec.kind in (Kind.MODEL, Kind.NARRATOR):
        return "models"
    if spec.kind is Kind.LEARNED:
        return "trained"
    if len(spec.roles) > 1:
        return "either"
    if Role.BUYER in spec.roles:
        return "buyers"
    return "catalogues" if spec.families == (Family.CATALOGUE,) else "sellers"


_WORDS: tuple[tuple[str, Callable[[], tuple[str, str]]], ...] = (
    ("either", lambda: (_("On either side"), _("They follow one rule as seller and as buyer."))),
    ("buyers", lambda: (_("Buyers"), _("They answer a seller's price; several of them can sit at one table."))),
    ("sellers", lambda: (_("Sellers of one product"), _("Most of them look for the one buyer out of several."))),
    ("catalogues", lambda: (_("Sellers of several products"), _("They also decide who gets what."))),
    ("trained", lambda: (_("Trained here"), _("They learned in thousands of games; the runs are under Training."))),
    ("models", lambda: (_("Language models"), _("A model decides, or speaks for a rule that decides."))),
    (
        "entered",
        lambda: (
            _("Entered by people"),
            _("A prompt of somebody's for a language model, put up for tournaments."),
        ),
    ),
    (
        "references",
        lambda: (
            _("Reference policies"),
            _("They know what no player can know and mark the limit in simulations; nobody meets them."),
        ),
    ),
)


def grouped(specs: Iterable[AgentSpec]) -> tuple[Group, ...]:
    """The agents in their groups."""
    members: dict[str, list[AgentSpec]] = {}
    for spec in specs:
        members.setdefault(_key(spec), []).append(spec)
    return tuple(Group(key, *words(), tuple(members[key])) for key, words in _WORDS if members.get(key))
