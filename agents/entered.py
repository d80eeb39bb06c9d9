"""Agents that people enter: a prompt, a back end and a protocol, as one immutable version.

Here: what a version is, what may be entered, and the `AgentSpec` that it makes. Not here: the tables
and who may write them (`entering`), what such an agent does (`llm`). Pure: no Django.

Contract: a slug starts with `PREFIX`, which no other agent's may; a back end is the name of one that
this server is configured with, never an address. The prompt is its author's text and is filled in as
data: line by line, every character that chat templates build markers from a look-alike.
"""

import hashlib
from functools import partial

import msgspec

from agents import backends, prompts
from agents.base import Agent, AgentSpec, Kind
from agents.language_models import CODECS, persona_lines
from agents.llm import TEMPERATURE, ModelAgent
from agents.quoting import as_data
from agents.scripted.personas import Persona
from markets.engine.protocol import Role, is_text
from markets.engine.scenarios import Family

PREFIX = "entered-"
"""What the slug of every such agent starts with."""
MAX_NAME_CHARS = 60
MAX_SUMMARY_CHARS = 200
MAX_PROMPT_CHARS = 2_000
MAX_NOTE_CHARS = 200


class EntryError(ValueError):
    """Something that cannot be entered; `field` says where, the sentence why."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field
        self.sentence = sentence


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One version of an agent, as its author wrote it."""

    name: str
    summary: str
    prompt: str
    backend: str
    protocol: str
    roles: tuple[Role, ...]
    regulated: bool = True
    persona: str = ""
    """A way of talking (`scripted.personas.Persona`), empty for none."""


def is_entered(slug: str) -> bool:
    """Whether only people's entries may have this slug."""
    return slug.startswith(PREFIX)


def checked(entry: Entry) -> Entry:
    """The entry without blank ends. Raises `EntryError` unless all of it can be played."""
    entry = msgspec.structs.replace(
        entry,
        name=" ".join(entry.name.split()),
        summary=" ".join(entry.summary.split()),
        prompt=entry.prompt.replace("\r\n", "\n").strip(),
    )
    for field, words, most in (
        ("name", entry.name, MAX_NAME_CHARS),
        ("summary", entry.summary, MAX_SUMMARY_CHARS),
        ("prompt", entry.prompt, MAX_PROMPT_CHARS),
    ):
        if not words:
            raise EntryError(field, f"The {field} is empty.")
        if len(words) > most:
            raise EntryError(field, f"The {field} has {len(words)} characters; {most} are allowed.")
        if not is_text(words) or "\0" in words:
            raise EntryError(field, f"The {field} holds something that is no text.")
    known = tuple(config.name for config in backends.configured())
    if entry.backend not in known:
        raise EntryError(
            "backend",
            f"This server has no back end {entry.backend!r}. It has: {', '.join(known)}."
            if known
            else "This server has no language model.",
        )
    if entry.protocol not in CODECS:
        raise EntryError("protocol", f"There is no protocol {entry.protocol!r}. There are: {', '.join(CODECS)}.")
    if not entry.roles or len(set(entry.roles)) != len(entry.roles):
        raise EntryError("roles", "Say whether it sells, buys, or does either.")
    if entry.persona and entry.persona not in set(Persona):
        raise EntryError("persona", f"There is no persona {entry.persona!r}. The personas are: {', '.join(Persona)}.")
    return entry


def version_label(number: int, entry: Entry) -> str:
    """The version as records keep it: its number and a digest of all that makes it play as it does."""
    model = next((config.model for config in backends.configured() if config.name == entry.backend), "")
    labels = [f"{prompts.load(name).label}:{prompts.load(name).digest}" for name in (entry.protocol, "personas")]
    made_of = (msgspec.json.encode(entry).decode(), model, str(TEMPERATURE), *labels)
    return f"{number}-{hashlib.sha256(chr(10).join(made_of).encode()).hexdigest()[:10]}"


def number_of(version: str) -> int | None:
    """The number in a version label; None where there is none."""
    number = version.partition("-")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 7 else None


def spec_of(slug: str, number: int, entry: Entry) -> AgentSpec:
    """The agent that a version is."""
    guard = "it cannot lose money" if entry.regulated else "nothing keeps it from losing money"
    return AgentSpec(
        slug=slug,
        title=entry.name,
        summary=entry.summary,
        kind=Kind.MODEL,
        roles=entry.roles,
        families=tuple(Family),
        build=partial(_build, entry, entry.persona),
        version=version_label(number, entry),
        source=f"Entered by a person: a prompt for the back end {entry.backend!r}, protocol {entry.protocol}; {guard}.",
        asks_models=True,
        remark="weak" if entry.backend == backends.EMBEDDED else "",
        persona=entry.persona,
        speak_as=partial(_build, entry),
    )


def told(entry: Entry, persona: str) -> str:
    """What a model is told besides the table: its author's prompt, and how to talk."""
    lines = [as_data(line, longest=MAX_PROMPT_CHARS) for line in entry.prompt.splitlines()]
    return "\n".join((*lines, *filter(None, [persona_lines(persona)])))


def _build(entry: Entry, persona: str) -> Agent:
    return ModelAgent(
        backend=entry.backend,
        codec=CODECS[entry.protocol](),
        regulated=entry.regulated,
        persona=told(entry, persona),
    )
