"""Is the training stack installed? Pages that need it ask here and say what is missing.

Looks for the packages without importing one: importing torch would cost the web process seconds and memory.
"""

from importlib.util import find_spec

FULL_STACK = ("torch", "transformers", "trl", "datasets", "peft", "accelerate")
"""What requirements.txt installs and requirements-play.txt leaves out, as far as pages depend on it."""


def full_stack_missing() -> tuple[str, ...]:
    """Names of the packages that are not installed; empty with the full stack."""
    return tuple(name for name in FULL_STACK if find_spec(name) is None)
