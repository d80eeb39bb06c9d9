"""What a run will take before it is launched: rows, tokens, time, memory, each with what it is based on.

Here: counting what will be imitated, and scaling what earlier runs measured. Not here: launching
(`training.services`), words for people (the site). No torch.

Contract: writes nothing. An estimate is scaled from one measured run, which is named: the newest finished
one of this server that noted its time, else `MEASURED`, a run of the `tiny` preset on the developers'
machine. Each stage is scaled by its own work (`work`), memory by the weights alone. Counts are exact where
they can be counted, else a mean over games played now times a number.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agents.learned import grammars
from training import dialogues, imitation, runs, services
from training.config import Evaluation, Exploits, Game, Grpo, RunConfig, Sft
from training.datasets import Chosen
from training.demonstrations import demonstrate
from training.models import Run, RunStatus

PROBED = 40
"""Demonstrations that are played to estimate how long one is."""
BYTES_A_WEIGHT = 20
"""Weight, gradient and two moments of the optimiser in single precision, and the imitator kept beside."""


class Measured(msgspec.Struct, frozen=True):
    """A run that was measured."""

    name: str
    """Empty for the one that comes with the code."""
    config: RunConfig
    seconds: Mapping[str, float]
    """By stage."""
    peak_bytes: int


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a run is expected to take."""

    rows: int
    looked_at: int
    """Negotiations of the source, those included that cannot be imitated."""
    tokens: int
    tokens_counted: bool
    """Whether tokens were counted, or scaled from games played now."""
    games: int
    """Games that reinforcement plays."""
    parameters: int
    seconds: Mapping[str, float]
    """By stage."""
    peak_bytes: int
    basis: Measured
    sample: tuple[str, ...]
    """The first dialogues, as the model reads them."""

    @property
    def all_seconds(self) -> float:
        """Of all stages."""
        return sum(self.seconds.values())


def expect(config: RunConfig, source: Chosen | None) -> Expected:
    """What a run will take. Raises `DataError` where its source cannot be read."""
    if source is None:
        played = list(
            demonstrate(
                config.game,
                episodes=min(PROBED, config.sft.demonstrations),
                seed=config.seed,
                habits=config.sft.habits,
                teachers=config.sft.teachers,
            )
        )
        found = [each.messages for each in played]
        rows = looked_at = config.sft.demonstrations
        tokens = round(dialogues.tokens(found) * rows / max(1, len(found)))
    else:
        gathered = imitation.gather(source)
        found, rows, looked_at = list(gathered.dialogues), len(gathered.dialogues), gathered.looked_at
        tokens = dialogues.tokens(found)
    basis, parameters = measured_before(), weights(config)
    ratio = {stage: amount / work(basis.config)[stage] for stage, amount in work(config).items()}
    return Expected(
        rows=rows,
        looked_at=looked_at,
        tokens=tokens,
        tokens_counted=source is not None,
        games=config.grpo.rollouts * config.grpo.games * config.grpo.group,
        parameters=parameters,
        seconds={stage: basis.seconds[stage] * ratio[stage] for stage in runs.STAGES},
        peak_bytes=max(0, basis.peak_bytes + BYTES_A_WEIGHT * (parameters - weights(basis.config))),
        basis=basis,
        sample=tuple("\n".join(message.content for message in own) for own in found[:2]),
    )


def work(config: RunConfig) -> dict[str, float]:
    """How much each stage has to do, in games of equal length, imitated ones weighed as what they cost."""
    length = sum(turns for _buyers, turns in config.game.sizes) / len(config.game.sizes)
    effort, sft, grpo, look = config.exploits, config.sft, config.grpo, config.evaluation
    looks = grpo.rollouts / look.every * 2 * look.episodes if look.every else 0.0
    size = weights(config)
    return {
        "exploits": length * (effort.games * 4 + effort.climb_games * effort.climb_steps + 1),
        "sft": length * size * (sft.steps * sft.batch + 0.2 * look.final_episodes + 1),
        "grpo": length * size * (grpo.rollouts * grpo.games * grpo.group * (1 + 2 * grpo.updates) / 3 + 0.3 * looks),
        "evaluate": length * size * (4 * look.final_episodes + 2 * look.axis_episodes + 1),
    }


def weights(config: RunConfig) -> int:
    """Number of weights of the run's model."""
    if config.base:
        return stored_weights(Path(config.base))
    model = config.model
    layer = 4 * model.hidden**2 + 3 * model.hidden * model.feed_forward + 2 * model.hidden
    return 2 * len(grammars.by_name(config.game.dialogue).words) * model.hidden + model.layers * layer + model.hidden


def stored_weights(folder: Path) -> int:
    """Number of weights in a folder's safetensors, read off their headers; 0 where there are none."""
    return sum(count for file in sorted(folder.glob("*.safetensors")) for count in _shapes(file))


def _shapes(file: Path) -> Iterator[int]:
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if length > file.stat().st_size:
            return
        header = json.loads(opened.read(length))
    for name, about in header.items():
        if name != "__metadata__":
            count = 1
            for size in about["shape"]:
                count *= size
            yield count


def measured_before() -> Measured:
    """The newest finished run that noted what it took, else the one that comes with the code."""
    for run in Run.objects.filter(status=RunStatus.DONE).order_by("-ended_at")[:20]:
        folder = runs.folder(run.name)
        stages = {stage: runs.figures(folder, stage) or {} for stage in runs.STAGES}
        resumed = stages["grpo"].get("resumed_from")
        if not resumed and all("wall_seconds" in figures for figures in stages.values()):
            return Measured(
                name=run.name,
                config=services.config_of(run),
                seconds={stage: figures["wall_seconds"] for stage, figures in stages.items()},
                peak_bytes=max(figures["peak_bytes"] for figures in stages.values()),
            )
    return MEASURED


MEASURED = Measured(
    name="",
    config=RunConfig(
        name="tiny",
        game=Game(sizes=((4, 8),)),
        exploits=Exploits(games=200, climb_games=50, climb_steps=10),
        sft=Sft(demonstrations=1_500, steps=60),
        grpo=Grpo(rollouts=20),
        evaluation=Evaluation(every=5, episodes=128, final_episodes=400),
    ),
    seconds={"exploits": 3.5, "sft": 49.7, "grpo": 254.4, "evaluate": 10.7},
    peak_bytes=1_220_000_000,
)
"""A small run of the `tiny` preset with one thread, at low priority on two processor cores that other programs shared
(89 s of processor time in 337 s)."""
