"""The dialogues that small models are trained on, by name: what a checkpoint reads and writes.

Contract: a grammar's vocabulary never changes, so a tokenizer tells which one it is for.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from agents.learned import dialogue, ledger, relative_ledger
from agents.learned.dialogue import Message
from markets.engine.observation import Observation, SeenEvent
from markets.engine.protocol import Action


class Conversation(Protocol):
    """What one seat was told of a negotiation and may answer; told and read in order."""

    def opening(self, events: Sequence[SeenEvent]) -> tuple[Message, Message]:
        """The rules of the table, and what lies on it before the first own move."""
        ...

    def heard(self, observation: Observation, events: Sequence[SeenEvent]) -> Message:
        """What the seat is told when it is asked for its next move."""
        ...

    def read(self, observation: Observation, words: Sequence[str]) -> Action | None:
        """The action that an answer (without its end marker) stands for; None if it cannot be read."""
        ...

    def write(self, observation: Observation, action: Action) -> tuple[str, ...]:
        """The words of an action. Raises `dialogue.NoDialogue`."""
        ...

    def phrase(self, *, buyer: int, product: int, number: int) -> tuple[str, ...]:
        """An own price, in hundredths of the list price, in words."""
        ...

    def acceptance(self, buyer: int) -> tuple[str, ...]:
        """Taking the other side's latest price, in words."""
        ...

    def allowed(self, observation: Observation, answer: Sequence[str]) -> Sequence[str]:
        """Words that may come next without breaking a rule or losing money; none when done."""
        ...


class Grammar(NamedTuple):
    """One dialogue."""

    name: str
    words: tuple[str, ...]
    """The vocabulary, in the order of token ids."""
    highest_number: int
    longest_answer: int
    sample: tuple[Message, ...]
    start: Callable[[Observation], Conversation]
    """A conversation in which nothing has been told yet."""
    rebuild: Callable[[Observation, Sequence[SeenEvent]], tuple[Conversation, tuple[Message, ...]]]
    """The conversation of a seat about to move, from its own past."""


LADDER = Grammar(
    name="ladder",
    words=dialogue.vocabulary(),
    highest_number=dialogue.HIGHEST_NUMBER,
    longest_answer=dialogue.LONGEST_ANSWER,
    sample=dialogue.SAMPLE,
    start=dialogue.Conversation,
    rebuild=dialogue.conversation,
)
"""What happened, as it happens: a seller of one product in seller turns."""

LEDGER = Grammar(
    name="ledger",
    words=ledger.vocabulary(),
    highest_number=ledger.HIGHEST_NUMBER,
    longest_answer=ledger.LONGEST_ANSWER,
    sample=ledger.SAMPLE,
    start=ledger.Conversation,
    rebuild=ledger.conversation,
)
"""The whole table before every move: either side, every family."""

RELATIVE_LEDGER = Grammar(
    name="relative-ledger",
    words=relative_ledger.vocabulary(),
    highest_number=relative_ledger.HIGHEST_NUMBER,
    longest_answer=ledger.LONGEST_ANSWER,
    sample=relative_ledger.SAMPLE,
    start=relative_ledger.Conversation,
    rebuild=relative_ledger.conversation,
)
"""The ledger in hundredths of the highest value that is publicly possible: a seller of several buyers."""

ALL = (LADDER, LEDGER, RELATIVE_LEDGER)


def by_name(name: str) -> Grammar:
    """The grammar called `name`. Raises `KeyError`."""
    return {grammar.name: grammar for grammar in ALL}[name]


def of_words(words: Collection[str]) -> Grammar | None:
    """The grammar with just this vocabulary, if any."""
    known = frozenset(words)
    return next((grammar for grammar in ALL if known == frozenset(grammar.words)), None)
