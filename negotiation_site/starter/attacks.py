"""Attacks by words on a few scripted agents of the starter world, so that leaderboards have something to compare with.

Contract: an agent whose present version has a score of the present set is left as it is.
"""

from agents import injection_scores, registry
from agents.injection import attacks, suite

AGENTS = ("gullible", "linear", "boulware")
"""The positive control, and two that follow a rule."""
SEED = 1


def fill() -> int:
    """Attack whoever has no score; how many were attacked now."""
    chosen = attacks.shipped()
    known = injection_scores.newest()
    specs = [spec for spec in map(registry.get, AGENTS) if (spec.slug, spec.version) not in known]
    for spec in specs:
        command = f"manage.py injection_suite --agent {spec.slug} --seed {SEED} --json"
        injection_scores.store(suite.run(spec, chosen, seed=SEED), command=command)
    return len(specs)
