"""What a run will take before it is launched: rows, tokens, time, memory, each with what it is based on.

Here: counting what will be imitated, and scaling what earlier runs measured. Not here: launching
(`training.services`), what a language model needs of a machine (`training.capacity`), words for people (the site). No torch.

Contract: writes nothing. An estimate is scaled from one measured run, which is named: the newest finished
one of this server that noted its time, else `MEASURED`, a run of the `tiny` preset on the developers'
machine. Each stage is scaled by its own work (`work`), memory by the weights alone. Counts are exact where
they can be counted, else a mean over games played now times a number. A language model's time is its floating-point work over
the pace of the newest finished run of its kind here, else of `MEASURED_LANGUAGE`; on a graphics processor, where nothing was
measured yet, over an assumed pace, and said to be that. Nothing asks a language model: in the place of opponents that do
their strategies play.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agents.learned import grammars
from training import capacity, datasets, dialogues, imitation, model_opponents, presets, runs, services
from training.capacity import Shape, stored_weights
from training.config import Evaluation, Exploits, Game, Grpo, RunConfig, Sft
from training.datasets import CHARACTERS_A_TOKEN, Chosen
from training.demonstrations import demonstrate
from training.language import demonstrations as language
from training.language.config import LanguageRun
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
        quiet = model_opponents.quiet(config.game.opponents)
        played = list(
            demonstrate(
                msgspec.structs.replace(config.game, opponents=quiet),
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
        gathered = imitation.gather(source, config.game)
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


def measured_before() -> Measured:
    """The newest finished run that noted what it took, else the one that comes with the code."""
    for run in Run.objects.filter(status=RunStatus.DONE, preset__in=presets.SMALL).order_by("-ended_at")[:20]:
        folder, config = runs.folder(run.name), services.config_of(run)
        stages = {stage: runs.figures(folder, stage) or {} for stage in runs.STAGES}
        resumed = stages["grpo"].get("resumed_from")
        whole = not resumed and all("wall_seconds" in figures for figures in stages.values())
        if whole and isinstance(config, RunConfig):
            return Measured(
                name=run.name,
                config=config,
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


# --- Language models ----------------------------------------------------------------------------------

COUNTED = 200
"""Conversations of a source whose moves are all made before a launch; of a larger one the rest is scaled."""
PROBED_LESSONS = 12
"""Games of the teachers that are played to estimate how long a lesson is."""
CARD_FLOPS = 1.5e14
"""Operations a second that a graphics processor is taken to do where none was measured: some 40 % of what one of the year
2023 is sold for. An assumption."""
CARD_WORDS = 1_500.0
"""Tokens a second that such a processor is taken to write for many games together with eight billion weights. An assumption."""


class Pace(msgspec.Struct, frozen=True):
    """How fast a device reads, learns and writes."""

    name: str
    """Of the run that it was measured in; empty where it was none of this server."""
    assumed: bool
    flops: float
    """Operations a second."""
    words: float
    """Tokens a second that are written for many games together, times weights."""


@dataclass(frozen=True, kw_only=True)
class LanguageExpected:
    """What teaching a language model is expected to take."""

    rows: int
    looked_at: int
    """Moves of the source, or of the games played now, those included that cannot be taught."""
    tokens: int
    tokens_counted: bool
    """Whether the rows were all made, or scaled from some; tokens are four characters each either way."""
    games: int
    """Games that reinforcement plays."""
    title: str
    """Of the base."""
    parameters: int | None
    """None where nothing tells."""
    learned: int
    device: str
    seconds: Mapping[str, float]
    """By stage; empty where the size of the base is not known."""
    peak_bytes: int | None
    disk_bytes: int | None
    pace: Pace
    sample: tuple[str, ...]

    @property
    def all_seconds(self) -> float:
        """Of all stages."""
        return sum(self.seconds.values())


def expect_language(config: LanguageRun, source: Chosen | None) -> LanguageExpected:
    """What teaching a language model will take. Raises `DataError` where its source cannot be read."""
    times = 1.0
    if source is None:
        games, share = _probed(config)
        own = sum(map(len, games))
        rows, looked_at = config.sft.rows, round(config.sft.rows / max(share, 1e-9))
        tokens = round(sum(map(_tokens, _flat(games))) * rows / max(1, own))
    else:
        taught = imitation.lessons(msgspec.structs.replace(source, most=min(source.most, COUNTED)), config)
        times = max(1.0, conversations(source) / COUNTED)
        games = [list(game) for game in taught.games]
        rows, looked_at = round(taught.rows * times), round(taught.moves * times)
        tokens = round(sum(map(_tokens, _flat(games))) * times)
    shown = list(_flat(games))
    answers = sum(_characters(row.answer) for row in shown) / CHARACTERS_A_TOKEN / max(1, len(shown))
    model, device = capacity.shape(config.base), services.device_of(config)
    if model is not None and device == "cpu" and model.parameters > capacity.WITHOUT_A_CARD:
        device = "cuda:0"  # What it would take where there is one: here it cannot be run.
    pace = pace_before(device)
    row_tokens = tokens / max(1, rows)
    return LanguageExpected(
        rows=rows,
        looked_at=looked_at,
        tokens=tokens,
        tokens_counted=source is not None and times == 1.0,
        games=config.grpo.rollouts * config.grpo.games * config.grpo.group,
        title=model.title if model else config.base,
        parameters=model.parameters if model else None,
        learned=capacity.learned_weights(config, model) if model else 0,
        device=device,
        seconds=_seconds(config, model, pace, tokens=tokens, row=row_tokens, answer=answers) if model else {},
        peak_bytes=_peak(config, model, row_tokens, answers) if model else None,
        disk_bytes=capacity.disk_bytes(config, model) if model else None,
        pace=pace,
        sample=tuple(_read(row) for row in shown[:2]),
    )


def conversations(source: Chosen) -> int:
    """How many conversations a choice comes to at most."""
    offered = next(each for each in datasets.list_sources() if each.kind is source.kind)
    there = sum(option.conversations for option in offered.options if option.name == source.name)
    return min(source.most, there)


def _peak(config: LanguageRun, model: Shape, row: float, answer: float) -> int:
    return capacity.needed_bytes(config, model, row_tokens=round(row), answer_tokens=round(answer) + 1)


def _probed(config: LanguageRun) -> tuple[list[list[language.Row]], float]:
    """Lessons of some games of the teachers, and the share of the games that are kept."""
    market = msgspec.structs.replace(config.market, opponents=model_opponents.quiet(config.market.opponents))
    shown = [
        language.demonstrate(msgspec.structs.replace(config, market=market), number) for number in range(PROBED_LESSONS)
    ]
    kept = [each for each in shown if each.share is None or each.share >= config.sft.least_share] or shown
    return [list(language.rows_of(config, each)) for each in kept], len(kept) / len(shown)


def _flat(games: Sequence[Sequence[language.Row]]) -> Iterator[language.Row]:
    for game in games:
        yield from game


def _characters(message: Mapping[str, object]) -> int:
    return len(str(message["content"])) + len(json.dumps(message["tool_calls"]) if message.get("tool_calls") else "")


def _tokens(row: language.Row) -> int:
    told = sum(len(str(message["content"])) for message in row.messages)
    tools = len(json.dumps(row.tools)) if row.tools else 0
    return -(-(told + tools + _characters(row.answer)) // CHARACTERS_A_TOKEN)


def _read(row: language.Row) -> str:
    """A row as people read it: the end of what is asked, and the answer."""
    calls = row.answer.get("tool_calls")
    answer = (
        f"{row.answer['content']}\n{json.dumps(calls, ensure_ascii=False)}" if calls else str(row.answer["content"])
    )
    return "\n\n".join([*(str(message["content"]) for message in row.messages), answer.strip()])


def _seconds(
    config: LanguageRun, model: Shape, pace: Pace, *, tokens: int, row: float, answer: float
) -> dict[str, float]:
    learning = capacity.flops_a_token(config, model)
    reading = 2.0 * model.parameters
    write = model.parameters / pace.words  # Seconds for a token, many games together.
    passes = config.sft.passes
    if config.sft.steps:
        passes = (
            config.sft.steps
            * config.sft.batch
            * config.sft.accumulate
            * capacity.ROWS_OF_A_GAME
            * row
            / max(1.0, tokens)
        )
    a_turn = reading * row / pace.flops + answer * write
    found = {"sft": passes * tokens * capacity.PACKED * learning / pace.flops}
    if every := config.judging.watch_every:
        updates = config.sft.steps or passes * tokens / max(1.0, row * capacity.ROWS_OF_A_GAME) / (
            config.sft.batch * config.sft.accumulate
        )
        found["sft"] += updates // every * config.judging.watch_games * config.judging.rounds * a_turn
    if config.grpo.rollouts:
        turns = config.grpo.rollouts * config.grpo.games * config.grpo.group * config.grpo.turns
        found["grpo"] = turns * (a_turn + learning * row / pace.flops)
    judged = 3 if config.grpo.rollouts else 2
    found["judge"] = judged * config.judging.scenarios * config.judging.rounds * a_turn
    return found


def pace_before(device: str) -> Pace:
    """The pace of the newest finished run of a language model on such a device; else what comes with the code."""
    kind = device.partition(":")[0]
    done = Run.objects.filter(status=RunStatus.DONE, preset__in=presets.LANGUAGE).order_by("-ended_at")
    for run in done[:20]:
        config, folder = services.config_of(run), runs.folder(run.name)
        figures = runs.figures(folder, "sft") or {}
        if not isinstance(config, LanguageRun) or run.device.partition(":")[0] != kind or figures.get("resumed_from"):
            continue
        model = capacity.shape(config.base)
        if model is None or not figures.get("seconds") or "tokens" not in figures:
            continue
        seen = figures["tokens"] * figures.get("rows_seen", figures["rows"]) / max(1, figures["rows"])
        flops = seen * capacity.PACKED * capacity.flops_a_token(config, model) / figures["seconds"]
        start = CARD if kind == "cuda" else PROCESSOR
        return Pace(run.name, False, flops, start.words)
    return CARD if kind == "cuda" else PROCESSOR


PROCESSOR = Pace("", False, 7e10, 300.0 * 134_515_008)
"""One thread of a developers' machine: 60 updates of two games with an adapter of the embedded model took 720 s of
processor time (docs/experiments.md), and it wrote 297 tokens a second for 32 games."""
CARD = Pace("", True, CARD_FLOPS, CARD_WORDS * 8_190_735_360)
