"""Dialogues that a small model imitates, as they lie in a run's folder: JSON lines of compact messages.

Here: writing and reading `data/dialogues.jsonl`, and what recorded negotiations are in the compact dialogue or the ledger.
Not here: which negotiations they are (`training.datasets`), the words themselves (`agents.learned`).

Contract: a line is one dialogue, a list of `[role, words]`. A dialogue is kept only when each of the
learner's answers is one that it may give itself: no refused move, nothing that was only said. What is read
has the hash that the run's configuration names. No Django, no torch.
"""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from agents.learned import dialogue, ledger
from agents.learned.dialogue import Message, NoDialogue
from markets.engine.observation import observe, seen_events
from markets.engine.protocol import SELLER, LogEntry, Party, PartyLeft, Role, buyer_party
from markets.engine.scenarios import MAX_BUYERS, EventDriven, Family, Scenario, SellerTurns
from markets.engine.state import replay
from training import run_data

FILE = "dialogues.jsonl"
READABLE = ("ask", "accept", "leave")
"""First words of answers in the compact dialogue."""
WRITTEN = ("ask", "bid", "accept", "wait", "leave")
"""The same in the ledger."""


def compact(scenario: Scenario, log: Sequence[LogEntry]) -> tuple[Message, ...] | None:
    """A seller's side of a finished negotiation; None where the compact dialogue has no words for it."""
    if (
        scenario.family is not Family.MULTI_BUYER
        or not isinstance(scenario.mechanism, SellerTurns)
        or len(scenario.products) != 1
        or scenario.buyers > MAX_BUYERS
    ):
        return None
    seat = observe(replay(scenario, log), SELLER)
    try:
        messages = dialogue.transcript(seat, list(seen_events(scenario, log, SELLER)))
    except NoDialogue:
        return None
    own = [message for message in messages if message.role == "assistant"]
    if not own or any(message.words[0] not in READABLE for message in own):
        return None
    return messages[: max(k for k, message in enumerate(messages) if message.role == "assistant") + 1]


def told_anew(scenario: Scenario, log: Sequence[LogEntry], party: Party) -> tuple[Message, ...] | None:
    """One seat's side of a finished negotiation in the ledger; None where it did what the ledger has no words for."""
    clocked = isinstance(scenario.mechanism, EventDriven)
    own = observe(replay(scenario, log), party, now_ms=log[-1].at_ms if clocked and log else 0)
    past = list(seen_events(scenario, log, party))
    _told, messages = ledger.conversation(own, past)
    if any(isinstance(seen.event, PartyLeft) and _is_of(seen.event, party) for seen in past):
        messages = (*messages, Message("assistant", ("leave",)))
    answers = [k for k, message in enumerate(messages) if message.role == "assistant"]
    if not answers or any(messages[k].words[0] not in WRITTEN for k in answers):
        return None
    return messages[: answers[-1] + 1]


def _is_of(event: PartyLeft, party: Party) -> bool:
    return party == (SELLER if event.by is Role.SELLER else buyer_party(event.buyer))


def encode(dialogues: Iterable[Sequence[Message]]) -> bytes:
    """The lines of a file."""
    lines = (json.dumps([[message.role, *message.words] for message in messages]) for messages in dialogues)
    return "".join(f"{line}\n" for line in lines).encode()


def write(folder: Path, content: bytes) -> None:
    """Put the lines into a run's folder, whole or not at all."""
    run_data.write(folder, FILE, content)


def read(folder: Path, *, sha256: str) -> list[tuple[Message, ...]]:
    """The dialogues of a run. Raises `ConfigError` where they are not those that it was launched with."""
    content = run_data.read(folder, FILE, sha256=sha256)
    return [
        tuple(Message(role, tuple(words)) for role, *words in json.loads(line))
        for line in content.decode().splitlines()
    ]


def tokens(dialogues: Iterable[Sequence[Message]]) -> int:
    """Exact number of tokens: a word is one, and so are a message's role and its end marker."""
    return sum(len(message.words) + 2 for messages in dialogues for message in messages)


def steps(rows: int, *, batch: int, epochs: float) -> int:
    """Steps that see `rows` so many times."""
    return max(1, math.ceil(rows * epochs / batch))
