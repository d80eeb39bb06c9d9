"""What a small model imitates, out of the sources of this server: which negotiations, and how many it can read.

Here: the sources that the compact dialogue has words for, and gathering them. Not here: the sources
themselves (`training.datasets`), the file in a run's folder (`training.dialogues`).

Contract: only the training part of a source is imitated; what is held out for evaluation never is. A
negotiation that the compact dialogue has no words for is left out and counted.
"""

from collections.abc import Callable
from dataclasses import dataclass

from agents.learned.dialogue import Message
from markets.engine.protocol import SELLER
from training import datasets, dialogues
from training.datasets import Chosen, DataError, Kind


@dataclass(frozen=True)
class Gathered:
    """The dialogues of a choice."""

    dialogues: tuple[tuple[Message, ...], ...]
    looked_at: int
    """Negotiations of the choice's training part."""

    @property
    def sentence(self) -> str:
        """What was found."""
        return (
            f"of {self.looked_at:,} negotiations chosen, {len(self.dialogues):,} are a seller's with one product in seller "
            "turns in which each of its moves can be written in the compact dialogue."
        )


def check(chosen: Chosen) -> None:
    """Raise `DataError` with a sentence unless a small model can imitate this."""
    if chosen.kind is Kind.CORPUS:
        raise DataError(
            "The tiny preset reads moves and prices, not sentences: human dialogues of a corpus are imitated by a "
            "language-model preset. Choose rooms, demonstrations, a tournament or the best games."
        )
    if chosen.perspective != "seller":
        raise DataError("The tiny preset learns to sell: choose the perspective of the seller.")
    datasets.check(chosen)


def gather(chosen: Chosen, *, progress: Callable[[], None] = lambda: None) -> Gathered:
    """Every negotiation of the choice that can be imitated. Raises `DataError`."""
    check(chosen)
    found: list[tuple[Message, ...]] = []
    looked_at = 0
    for source in datasets.played(chosen):
        progress()
        looked_at += 1
        own = dialogues.compact(source.scenario, source.log) if SELLER in source.chairs else None
        if own is not None:
            found.append(own)
    return Gathered(tuple(found), looked_at)
