"""How likely a recorded move was under the policy that made it, as far as that can be known.

Here: the log-probability of a move, or the reason why there is none. Not here: rows (`training.rows`).

Contract: a number is worked out again from what the seat knew and the weights that played (same version); nothing is
stored for it and nothing that the seat did not know is used. Where the weights are others, or who moved has no chances that
are written down, it is None with a sentence. Reads published checkpoints; no Django, no torch.
"""

from functools import lru_cache
from typing import NamedTuple

from agents import registry
from agents.base import AgentSpec, Kind, Turn
from agents.learned.policy import Policy
from agents.registry import UnknownAgent
from markets.engine.protocol import Action

PERSON = "person"


class Chance(NamedTuple):
    """Log-probability of a move, and how it is known or why it is not."""

    log_probability: float | None
    note: str


NOT_CHOSEN = Chance(None, "The seat did not choose this move itself.")
_UNKNOWN = {
    Kind.SCRIPTED: "A rule moved; its chances are not written down.",
    Kind.REFERENCE: "A rule moved; its chances are not written down.",
    Kind.NARRATOR: "A rule moved; its chances are not written down.",
    Kind.MODEL: "A language model moved; its probabilities are not kept.",
}


def chance_of(policy: str, turn: Turn, actions: tuple[Action, ...]) -> Chance:
    """The chance of a move under `policy`, which is `AGENT@VERSION` or `person`."""
    if policy == PERSON:
        return Chance(None, "A person moved.")
    slug, _at, version = policy.rpartition("@")
    spec = _spec(slug.partition("+")[0])
    if spec is None:
        return Chance(None, "The agent is no longer installed here.")
    if spec.version != version:
        return Chance(None, f"Version {version} moved, and {spec.version} is installed here.")
    if spec.kind is not Kind.LEARNED:
        return Chance(None, _UNKNOWN[spec.kind])
    policy_of = _policy(spec.slug, spec.version)
    if policy_of is None or len(actions) != 1:
        return Chance(None, "The move is none that its network answers with.")
    if not policy_of.is_sampled:
        return Chance(0.0, "It always takes the likeliest answer.")
    found = policy_of.log_probability(turn, actions[0])
    if found is None:
        return Chance(None, "The move is none that its network answers with.")
    return Chance(found, "Drawn at temperature 1 from the answers that can be read at this table.")


def _spec(slug: str) -> AgentSpec | None:
    try:
        return registry.get(slug)
    except UnknownAgent:
        return None


@lru_cache(maxsize=16)
def _policy(slug: str, version: str) -> Policy | None:
    agent = registry.get(slug).build()
    return agent if isinstance(agent, Policy) else None
