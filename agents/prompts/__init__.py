"""Prompts: text files with a version, and filling them in.

A file `NAME.md` begins with `version: N` and has sections `## system`, `## turn` and so on, with
`{{field}}` where something is filled in. Here: reading and filling. In `table`: the words for a
table. Not here: what a model is asked when (`agents.llm`).

Contract: whoever changes a file raises its version; `versions.json` holds the digest of each
version, and a test compares. What is stored with a call is `Prompt.label`, name and version. Files
hold instructions of ours alone; what others wrote is filled in as data (`agents.quoting`).
"""

import hashlib
import re
from functools import lru_cache
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent

_FIELD = re.compile(r"\{\{([a-z_]+)\}\}")


class Prompt(msgspec.Struct, frozen=True):
    """One file."""

    name: str
    version: int
    sections: dict[str, str]
    digest: str

    @property
    def label(self) -> str:
        """As it is stored: `four_part@1`."""
        return f"{self.name}@{self.version}"

    def fill(self, section: str, **fields: str) -> str:
        """The text of a section. Every field must be given, and every one given must be used somewhere."""
        text = self.sections[section]
        wanted = set(_FIELD.findall(text))
        if missing := wanted - fields.keys():
            raise KeyError(f"{self.label} wants {', '.join(sorted(missing))}")
        return _FIELD.sub(lambda match: fields[match[1]], text)


@lru_cache(maxsize=64)
def load(name: str) -> Prompt:
    """The prompt of this name."""
    return parse(name, (FOLDER / f"{name}.md").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Prompt:
    """A prompt from the text of its file."""
    head, *rest = re.split(r"^## ([a-z_]+)\n", text, flags=re.MULTILINE)
    version = re.search(r"^version: ([0-9]+)$", head, flags=re.MULTILINE)
    if version is None or not rest:
        raise ValueError(f"The prompt {name!r} has no version or no section.")
    sections = {title: body.strip() for title, body in zip(rest[::2], rest[1::2], strict=True)}
    return Prompt(name, int(version[1]), sections, hashlib.sha256(text.encode()).hexdigest())


def names() -> tuple[str, ...]:
    """Every prompt there is."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.md")))
