"""The file of examples that lies in a run's folder: written whole or not at all, and read only with its own hash.

Here: bytes under `data/`. Not here: what the lines hold (`training.dialogues`, `training.language.lessons`). No Django, no torch.
"""

import hashlib
from pathlib import Path

from training.config import ConfigError

FOLDER = "data"


def digest(content: bytes) -> str:
    """The hash by which a run's configuration names its data."""
    return hashlib.sha256(content).hexdigest()


def write(folder: Path, file: str, content: bytes) -> None:
    """Put the bytes into a run's folder."""
    target = folder / FOLDER / file
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(".draft")
    draft.write_bytes(content)
    draft.replace(target)


def read(folder: Path, file: str, *, sha256: str) -> bytes:
    """The bytes of a run. Raises `ConfigError` where they are not those that it was launched with."""
    target = folder / FOLDER / file
    try:
        content = target.read_bytes()
    except OSError as error:
        raise ConfigError(f"The {target.stem} to imitate are not in {target}: {error.strerror}.") from error
    if digest(content) != sha256:
        raise ConfigError(f"{target} is not the data set that this run was launched with.")
    return content
