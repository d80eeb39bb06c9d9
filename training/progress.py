"""How far a run is, and when its stage may end, from what it has written down so far.

Here: steps done and the pace of the last ones. Not here: expectations before a launch
(`training.expectations`). Pure.

Contract: an end is given once a stage that counts its steps has made three; the pace is the median of the
last `PACE` of them, so that a pause (a look at kept-apart games, a machine that slept) does not move it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from training.config import RunConfig
from training.language.config import LanguageRun

PACE = 20


@dataclass(frozen=True)
class Progress:
    """A stage that is under way."""

    done: int
    total: int
    """Steps of imitation or rollouts of reinforcement; 0 where a stage counts none."""
    seconds_left: float | None
    """Until the stage ends; None while it cannot be told."""

    @property
    def share(self) -> float:
        """Done / total."""
        return self.done / self.total if self.total else 0.0


def progress(config: RunConfig | LanguageRun, lines: Sequence[Mapping[str, Any]], *, stage: str) -> Progress:
    """How far the stage under way is."""
    if stage == "sft":
        own = [line for line in lines if line["kind"] == "imitate"]
        # A language model's steps follow from its lessons: the stage says how many there are.
        steps = int(own[-1]["steps"]) if own and "steps" in own[-1] else config.sft.steps
        return _paced([(int(line["step"]), float(line["at"])) for line in own], steps)
    if stage == "grpo":
        own = [line for line in lines if line["kind"] == "train"]
        return _paced([(int(line["rollout"]), float(line["at"])) for line in own], config.grpo.rollouts)
    if stage == "judge" and isinstance(config, LanguageRun):
        own = [line for line in lines if line["kind"] == "judged"]
        models = 3 if config.grpo.rollouts else 2
        marks = [(number, float(line["at"])) for number, line in enumerate(own, start=1)]
        return _paced(marks, models * config.judging.scenarios)
    return Progress(0, 0, None)


def _paced(marks: Sequence[tuple[int, float]], total: int) -> Progress:
    done = marks[-1][0] if marks else 0
    recent = marks[-PACE - 1 :]
    paces = [
        (after - before) / (step - earlier)
        for (earlier, before), (step, after) in pairwise(recent)
        if step > earlier and after > before
    ]
    left = median(paces) * (total - done) if len(paces) >= 2 else None
    return Progress(done, total, left)
