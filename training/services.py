"""Writes to training runs: launching, watching, cancelling, reaping, publishing.

A run is started at most once: its row is claimed by compare-and-swap, and a device is held by a row
that is unique for it. The stages run in a process group of their own (`training.stages`), so that
cancelling ends everything and all memory goes back; nothing here imports torch.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from agents import backends, entering, registry
from agents.backends.config import variables
from agents.base import AgentSpec, Kind
from agents.learned import published
from agents.models import EnteredAgent
from markets.engine import rewards
from markets.engine.protocol import Role
from markets.engine.scenarios import Family
from markets.models import Market
from training import (
    capacity,
    datasets,
    dialogues,
    entered_opponents,
    guards,
    imitation,
    market_games,
    presets,
    publishing,
    run_data,
    runs,
)
from training.config import ConfigError, RunConfig, load
from training.entered_opponents import Opponent
from training.language import lessons
from training.language.config import EMBEDDED, LanguageRun, is_language_run
from training.language.config import load as load_language
from training.language.publish import publish as publish_adapter
from training.models import DeviceLock, Run, RunStatus
from training.presets import preset

Config: TypeAlias = RunConfig | LanguageRun
"""A run of a small model, or of a language model."""

HEARTBEAT_LIMIT = timedelta(seconds=45)
"""A run whose watcher has been silent for this long has lost it; the watcher beats every second."""
GRACE_S = 6.0
"""Seconds between asking a cancelled run to end and ending it."""
LOG_NAME = "log.txt"
DEVICE = "cpu"
RESERVED = ("new", "compare", "quality", "preview")
"""Addresses beside those of runs."""

_CLAIMABLE = (RunStatus.QUEUED,)


class RunError(ValueError):
    """Something that cannot be done with a run; the sentence says why."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A run as it is asked for; what is left out is the preset's."""

    name: str
    preset_name: str
    market: Market
    overrides: tuple[str, ...] = ()
    """`key.key=value`, as on the command line."""
    opponents: tuple[str, ...] = ()
    """Slugs; empty: the market's own."""
    weights: tuple[float, ...] = ()
    model_calls: int = 0
    model_tokens: int = 0
    """Tokens that those answers may read and write in all; 0 for no limit of their own."""
    reward: str = ""
    base: str = ""
    """A published checkpoint's slug, or a folder."""
    source: datasets.Chosen | None = None
    """What is imitated; None: the preset's own demonstrators."""
    device: str = "auto"
    role: Role | None = None
    """The learner's side; None: the seller's of a small model, either of a language model."""


def create_run(*, name: str, preset_name: str, market: Market, overrides: tuple[str, ...] = (), **more: Any) -> Run:
    """Write a run down, not started yet. Raises `RunError` or `ConfigError` with a sentence; `more` as in `Wish`."""
    return launch(Wish(name=name, preset_name=preset_name, market=market, overrides=overrides, **more))


def launch(wish: Wish) -> Run:
    """Write a run down for the next free device. Raises `RunError` or `ConfigError` with a sentence."""
    config = planned(wish)
    source = msgspec.json.encode(wish.source).decode() if wish.source else ""
    try:
        return Run.objects.create(
            name=wish.name,
            preset=wish.preset_name,
            market=wish.market,
            config=msgspec.json.encode(config).decode(),
            source=source,
            device=device_of(config),
        )
    except IntegrityError as error:
        raise RunError(f"There is already a run {wish.name!r}; choose another name.") from error


def planned(wish: Wish) -> Config:
    """The configuration that a wish comes to, checked; writes nothing of a run. Raises `RunError` or `ConfigError`."""
    config = drafted(wish)
    check(config, wish)
    return config


def drafted(wish: Wish) -> Config:
    """The configuration that a wish comes to, before anybody asks whether this machine can run it."""
    name = wish.name
    if name in RESERVED:
        raise RunError(f"{name!r} is the address of a page; choose another name for the run.")
    if Run.objects.filter(name=name).exists():
        raise RunError(f"There is already a run {name!r}; choose another name.")
    if name in {spec.slug for spec in registry.all_specs()}:
        raise RunError(f"There is already an agent {name!r}; choose another name for the run.")
    if wish.preset_name in presets.LANGUAGE:
        return _language(wish)
    game = market_games.game_of(wish.market, role=wish.role or Role.SELLER)
    changes: dict[str, Any] = {
        "weights": wish.weights,
        "model_calls": wish.model_calls,
        "model_tokens": wish.model_tokens,
    }
    if wish.opponents:
        changes["opponents"] = wish.opponents
    if wish.reward:
        changes["reward"] = wish.reward
    config = preset(
        wish.preset_name, name=name, game=msgspec.structs.replace(game, **changes), overrides=wish.overrides
    )
    base = base_folder(wish.base)
    # A device that is named on the command line (--set device=…) goes before the form's.
    device = config.device if config.device != "auto" else wish.device
    config = msgspec.structs.replace(config, base=str(base) if base else config.base, device=device)
    if config.game.mechanism != "turns" and not config.sft.teachers:
        # The preset's own demonstrators only know seller's turns.
        teachers = datasets.MEDIOCRE[config.game.family, config.game.role]
        config = msgspec.structs.replace(config, sft=msgspec.structs.replace(config.sft, teachers=teachers))
    return config


def _language(wish: Wish) -> LanguageRun:
    """The configuration of a language model's run."""
    roles = (wish.role,) if wish.role else (Role.SELLER, Role.BUYER)
    market = msgspec.structs.replace(
        market_games.haggling_of(wish.market, roles=roles),
        weights=wish.weights,
        model_calls=wish.model_calls,
        model_tokens=wish.model_tokens,
    )
    if wish.opponents:
        market = msgspec.structs.replace(market, opponents=wish.opponents)
    config = presets.language_preset(wish.preset_name, name=wish.name, market=market, overrides=wish.overrides)
    named = wish.base or (presets.base_named(wish.preset_name) if config.base != EMBEDDED else "")
    changes: dict[str, Any] = {"device": config.device if config.device != "auto" else wish.device}
    if named and (base := _folder(named)) is not None:
        changes |= {"base": str(base), "download": False}
    if wish.reward:
        changes["grpo"] = msgspec.structs.replace(config.grpo, reward=wish.reward)
    return msgspec.structs.replace(config, **changes)


def check(config: Config, wish: Wish) -> None:
    """What a configuration alone cannot know. Raises `RunError` or `DataError`."""
    if isinstance(config, LanguageRun):
        _check_language(config, wish)
        return
    opposite = Role.BUYER if config.game.role is Role.SELLER else Role.SELLER
    _check_opponents(config.game.opponents, {opposite}, config.game.family, config.game.model_calls)
    try:
        rewards.by_name(config.game.reward, role=config.game.role)
    except rewards.UnknownReward as error:
        raise RunError(str(error)) from error
    if config.base and (problem := guards.base_problem(Path(config.base))):
        raise RunError(problem)
    if problem := guards.missing_device(config.device):
        raise RunError(problem)
    if wish.source is not None:
        imitation.check(wish.source, config.game)


def _check_language(config: LanguageRun, wish: Wish) -> None:
    opposite = {Role.BUYER if role is Role.SELLER else Role.SELLER for role in config.market.roles}
    _check_opponents(config.market.opponents, opposite, Family.BILATERAL, config.market.model_calls)
    for role in config.market.roles:
        try:
            rewards.by_name(config.grpo.reward, role=role)
        except rewards.UnknownReward as error:
            raise RunError(str(error)) from error
    server = config.sampling.vllm
    if server and server.rstrip("/") not in presets.servers_named():
        raise RunError(
            f"This machine does not let a run ask {server!r}; whoever runs it names such servers in {presets.SERVERS_VARIABLE}."
        )
    if problem := guards.missing_device(config.device):
        raise RunError(problem)
    model, device = capacity.shape(config.base), device_of(config)
    needed = 0 if model is None else capacity.needed_bytes(config, model)
    variable = presets.base_variable(wish.preset_name)
    if problem := capacity.problem(config, preset_variable=variable, device=device, needed=needed, model=model):
        raise RunError(problem)
    if config.base != EMBEDDED and (problem := guards.base_problem(Path(config.base))):
        raise RunError(problem)
    if wish.source is not None:
        imitation.check_lessons(wish.source, config)


def _check_opponents(slugs: tuple[str, ...], opposite: set[Role], family: Family, model_calls: int) -> None:
    seats = [registry.get_open(slug) for slug in slugs]
    for spec in seats:
        for role in opposite:
            if not spec.can_play(role=role, family=family):
                raise RunError(f"{spec.slug!r} cannot sit opposite: it plays no {role.value} in {family.value} games.")
    if model_calls <= 0 and (asking := [spec.slug for spec in seats if asks_models(spec)]):
        raise RunError(
            f"{asking[0]!r} asks a language model: say how many answers it may ask for in all (model_calls)."
        )


def asks_models(spec: AgentSpec) -> bool:
    """Whether an agent's moves or words come from a language model."""
    return spec.kind in (Kind.MODEL, Kind.NARRATOR)


def base_folder(base: str) -> Path | None:
    """The folder of a base: a published checkpoint by its slug, or a folder by its path. Raises `RunError`."""
    if not base:
        return None
    for folder in (published.SHIPPED, published.own_folder()):
        for path, card in published.cards(folder):
            if card.slug == base:
                return path
    return _folder(base)


def _folder(base: str) -> Path:
    """A model's folder by its path. Raises `RunError`."""
    if "\0" in base:
        raise RunError("A folder's name holds no such character.")
    path = Path(base).expanduser()
    if not path.is_absolute():
        path = Path(settings.BASE_DIR) / path
    if problem := guards.base_problem(path):
        raise RunError(problem)
    return path


def device_of(config: Config) -> str:
    """Which device a run has for itself: the one it names, else the one that it will find."""
    if config.device != "auto":
        return "cuda:0" if config.device == "cuda" else config.device
    return DEVICE if guards.missing_device("cuda:0") else "cuda:0"


def claim(*, run: Run, owner: str) -> bool:
    """Take the run and its device. False when somebody else has the run, or the device is busy."""
    try:
        with transaction.atomic():
            taken = Run.objects.filter(pk=run.pk, status__in=_CLAIMABLE, cancel_asked=False).update(
                status=RunStatus.RUNNING,
                owner=owner,
                started_at=timezone.now(),
                heartbeat_at=timezone.now(),
                error="",
            )
            if not taken:
                return False
            DeviceLock.objects.create(device=run.device, run=run)
    except IntegrityError:
        return False
    return True


def execute(*, run: Run, owner: str, pause: Callable[[float], None] = time.sleep, show: bool = False) -> RunStatus:
    """Run the stages in a process group of their own and watch them to the end.

    The watcher writes a heartbeat every second, so that its death is noticed, and obeys a request to
    cancel. `show` lets the output through to this terminal as well as to the log.
    """
    folder = runs.folder(run.name)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        prepare(run, folder, lambda: _beat(run, owner, stage="data"))
    except Interrupted:
        _close(run, owner, RunStatus.CANCELLED, "")
        return RunStatus.CANCELLED
    except (RunError, ConfigError, datasets.DataError, registry.UnknownAgent, OSError) as problem:
        _close(run, owner, RunStatus.FAILED, str(problem))
        return RunStatus.FAILED
    config = folder / "run.json"
    config.write_text(run.config, encoding="utf-8")
    with (folder / LOG_NAME).open("ab") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "training.stages",
                str(config),
                "--out",
                str(folder),
                "--resume",
                "--watcher",
                str(os.getpid()),
            ],
            cwd=settings.BASE_DIR,
            env=_environment(),
            stdout=None if show else log,
            stderr=None if show else subprocess.STDOUT,
            start_new_session=True,
        )
        _beat(run, owner, process_group=process.pid)
        try:
            cancelled = _watch(run, owner, process, folder, pause)
        except BaseException:
            end_group(process.pid)
            raise
    status, error = _verdict(process.returncode, cancelled, folder / LOG_NAME)
    _close(run, owner, status, error)
    return status


class Interrupted(Exception):
    """The run was cancelled, or taken over, while its data were being written."""


def prepare(run: Run, folder: Path, beat: Callable[[], bool]) -> None:
    """Write what the run imitates, once, and its hash into the configuration. Raises `RunError`, `DataError`, `Interrupted`."""
    config = config_of(run)
    entered_opponents.write(folder, opponents_of(config), _entered)
    if not run.source or config.data:
        return
    chosen = msgspec.json.decode(run.source, type=datasets.Chosen)
    last = time.monotonic()

    def progress() -> None:
        nonlocal last
        if time.monotonic() - last >= 1.0:
            last = time.monotonic()
            if not beat() or Run.objects.filter(pk=run.pk, cancel_asked=True).exists():
                raise Interrupted

    if isinstance(config, LanguageRun):
        taught = imitation.lessons(chosen, config, progress=progress)
        if not taught.games:
            raise RunError(f"The data set to imitate is empty: {taught.sentence}")
        content = lessons.encode(taught.games)
        lessons.write(folder, content)
    else:
        found = imitation.gather(chosen, config.game, progress=progress)
        if not found.dialogues:
            raise RunError(f"The data set to imitate is empty: {found.sentence}")
        content = dialogues.encode(found.dialogues)
        dialogues.write(folder, content)
    config = msgspec.structs.replace(config, data=run_data.digest(content))
    run.config = msgspec.json.encode(config).decode()
    Run.objects.filter(pk=run.pk).update(config=run.config)


def _entered(slug: str) -> Opponent | None:
    """The newest version of an agent that somebody entered."""
    agent = EnteredAgent.objects.filter(slug=slug).first()
    if agent is None:
        return None
    version = entering.newest_version(agent)
    return Opponent(slug, version.number, entering.entry_of(version))


def _environment() -> dict[str, str]:
    """What the stages' process is given: this one's, the language models that this site knows, its folder."""
    told: dict[str, str] = {}
    for each in backends.configured():
        told |= variables(each)
    return dict(os.environ) | told | {"PARLEY_VAR": str(settings.VAR)}


def _watch(
    run: Run, owner: str, process: "subprocess.Popen[bytes]", folder: Path, pause: Callable[[float], None]
) -> bool:
    """Wait for the end, beating; true when it was cancelled or the run was taken from this watcher."""
    while process.poll() is None:
        pause(1.0)
        held = _beat(run, owner, stage=runs.stage(folder))
        if not held or Run.objects.filter(pk=run.pk, cancel_asked=True).exists():
            end_group(process.pid)
            process.wait()
            return True
    return False


def end_group(process_group: int) -> None:
    """Ask a process group to end, and end whatever of it does not within the grace."""
    deadline = time.monotonic() + GRACE_S
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process_group, signal.SIGTERM)
        while time.monotonic() < deadline:
            time.sleep(0.1)
            _collect(process_group)
            os.killpg(process_group, 0)  # Raises once nobody of the group is left.
        os.killpg(process_group, signal.SIGKILL)


def _collect(process_group: int) -> None:
    """Let go of the group's leader where it is a child of ours that has ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process_group, os.WNOHANG)


def is_ours(process_group: int) -> bool:
    """Whether a group may be a run's: its leader runs our stages, or has ended and left its children behind.

    A number belongs to nobody else while a group of that number lives; after that it may be given anew.
    """
    try:
        command = Path(f"/proc/{process_group}/cmdline").read_bytes()
    except OSError:
        return True
    return not command or b"training." in command


def cancel(run: Run) -> None:
    """Ask for a run to stop. One that waits is over at once."""
    Run.objects.filter(pk=run.pk, status=RunStatus.QUEUED).update(status=RunStatus.CANCELLED, ended_at=timezone.now())
    Run.objects.filter(pk=run.pk, status=RunStatus.RUNNING).update(cancel_asked=True)


def resume(run: Run) -> None:
    """Queue a failed or cancelled run again; it goes on from its last checkpoint."""
    changed = Run.objects.filter(pk=run.pk, status__in=(RunStatus.FAILED, RunStatus.CANCELLED)).update(
        status=RunStatus.QUEUED, owner="", cancel_asked=False, error="", ended_at=None
    )
    if not changed:
        raise RunError(f"Only a failed or cancelled run can go on; {run.name!r} is {run.status}.")


def sweep(now: datetime) -> int:
    """Fail runs whose watcher died, end what they left, and free their device. Idempotent."""
    lost = Run.objects.filter(status=RunStatus.RUNNING, heartbeat_at__lte=now - HEARTBEAT_LIMIT)
    count = 0
    for run in lost:
        here = run.owner.split(":")[0] in (socket.gethostname(), "foreground")
        if run.process_group and here and is_ours(run.process_group):
            with contextlib.suppress(ProcessLookupError):  # At once: the clock has other things to do than to wait.
                os.killpg(run.process_group, signal.SIGKILL)
        if run.cancel_asked:
            _close(run, run.owner, RunStatus.CANCELLED, "")
        else:
            _close(run, run.owner, RunStatus.FAILED, "Whoever watched this run died. Resume it to go on.")
        count += 1
    return count


def _beat(run: Run, owner: str, **fields: object) -> bool:
    return bool(
        Run.objects.filter(pk=run.pk, owner=owner, status=RunStatus.RUNNING).update(
            heartbeat_at=timezone.now(), **fields
        )
    )


def _verdict(returncode: int | None, cancelled: bool, log: Path) -> tuple[RunStatus, str]:
    if cancelled:
        return RunStatus.CANCELLED, ""
    if returncode == 0:
        return RunStatus.DONE, ""
    lines = log_tail(log, lines=12)
    if returncode == 2 and lines and lines[-1].startswith(STOPPED):
        return RunStatus.FAILED, lines[-1].removeprefix(STOPPED)
    if returncode is not None and returncode < 0:
        return RunStatus.FAILED, (
            f"It was ended by signal {-returncode} ({signal.Signals(-returncode).name}): by somebody, or for want of memory. "
            "Resume it to go on from its last checkpoint."
        )
    return RunStatus.FAILED, f"Ended with status {returncode}.\n" + "\n".join(lines)


STOPPED = "Stopped: "
"""As in `training.stages`, which may not be imported here."""
TAIL_BYTES = 64_000


def log_tail(log: Path, *, lines: int) -> list[str]:
    """The last lines of a log, read from its end."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return text.splitlines()[-lines:]


def _close(run: Run, owner: str, status: RunStatus, error: str) -> None:
    with transaction.atomic():
        Run.objects.filter(pk=run.pk, owner=owner, status=RunStatus.RUNNING).update(
            status=status, error=error, ended_at=timezone.now(), process_group=None
        )
        DeviceLock.objects.filter(run=run).delete()


def publish(run: Run) -> str:
    """Make the finished run's model an agent; gives its slug. Raises `RunError`."""
    if run.status != RunStatus.DONE:
        raise RunError(f"Only a finished run can be published; {run.name!r} is {run.status}.")
    folder, config = runs.folder(run.name), config_of(run)
    if isinstance(config, LanguageRun):
        return _publish_language(run, config, folder)
    evaluated = runs.figures(folder, "evaluate")
    if evaluated is None:
        raise RunError(f"The run {run.name!r} was not measured; its folder {folder} is not whole.")
    try:
        publishing.write(
            config,
            folder,
            settings.VAR / "checkpoints",
            file=folder / "run.json",
            slug=run.name,
            title=run.name.replace("-", " ").capitalize(),
            measured=evaluated["grpo"],
            replace=True,
        )
    except (ConfigError, OSError) as error:
        raise RunError(f"The model could not be published: {error}") from error
    Run.objects.filter(pk=run.pk).update(published_slug=run.name)
    return run.name


def _publish_language(run: Run, config: LanguageRun, folder: Path) -> str:
    try:
        publish_adapter(
            config,
            folder,
            settings.VAR / "adapters",
            file=folder / "run.json",
            slug=run.name,
            title=run.name.replace("-", " ").capitalize(),
            replace=True,
        )
    except (ConfigError, OSError) as error:
        raise RunError(f"The model could not be published: {error}") from error
    Run.objects.filter(pk=run.pk).update(published_slug=run.name)
    return run.name


def config_of(run: Run) -> Config:
    """The configuration of a run, for reading. Fields that only another release knew are left out.

    Whoever carries a run out reads the configuration itself and refuses what it does not know.
    """
    kind: type[Config] = LanguageRun if is_language(run) else RunConfig
    try:
        return msgspec.json.decode(run.config, type=kind)
    except msgspec.ValidationError:
        return msgspec.convert(_known(msgspec.json.decode(run.config), kind), kind, strict=False)


def _known(told: dict[str, Any], kind: type) -> dict[str, Any]:
    """What of `told` the struct `kind` has a field for, and so on inwards."""
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    return {
        name: _known(value, fields[name]) if isinstance(value, dict) and _is_struct(fields[name]) else value
        for name, value in told.items()
        if name in fields
    }


def _is_struct(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def is_language(run: Run) -> bool:
    """Whether a run teaches a language model."""
    return run.preset in presets.LANGUAGE


def opponents_of(config: Config) -> tuple[str, ...]:
    """Slugs of whoever sits opposite."""
    return config.market.opponents if isinstance(config, LanguageRun) else config.game.opponents


def stages_of(config: Config) -> tuple[str, ...]:
    """The stages that a run goes through, in order."""
    if not isinstance(config, LanguageRun):
        return runs.STAGES
    return tuple(stage for stage in runs.LANGUAGE_STAGES if stage != "grpo" or config.grpo.rollouts)


def config_in(folder: Path) -> dict[str, Any]:
    """The configuration that lies beside a published checkpoint, as plain data; empty where there is none."""
    for file in (folder / "run.json", folder / "run.toml"):
        if file.exists():
            return msgspec.to_builtins(load_language(file) if is_language_run(file) else load(file))
    return {}


def known_run(name: str) -> Run:
    """The run of a name. Raises `RunError`."""
    run = Run.objects.filter(name=name).select_related("market").first()
    if run is None:
        known = ", ".join(Run.objects.values_list("name", flat=True)[:20]) or "none yet"
        raise RunError(f"There is no run {name!r}; there is: {known}.")
    return run


def report(run: Run) -> dict[str, object]:
    """A run as plain data, with the figures of the stages that are done."""
    folder = runs.folder(run.name)
    return {
        "name": run.name,
        "preset": run.preset,
        "market": run.market.slug,
        "status": run.status,
        "stage": run.stage,
        "folder": str(folder),
        "error": run.error,
        "figures": {
            stage: found for stage in stages_of(config_of(run)) if (found := runs.figures(folder, stage)) is not None
        },
    }
