"""Writes to training runs: launching, watching, cancelling, reaping, publishing.

A run is started at most once: its row is claimed by compare-and-swap, and a device is held by a row
that is unique for it. The stages run in a process group of their own (`training.stages`), so that
cancelling ends everything and all memory goes back; nothing here imports torch.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from agents import registry
from markets.engine import priors
from markets.engine.scenarios import Family, SellerTurns, decode_recipe
from markets.models import Market
from training import runs
from training.config import Game, RunConfig
from training.models import DeviceLock, Run, RunStatus
from training.presets import preset

HEARTBEAT_LIMIT = timedelta(seconds=60)
"""A run whose watcher has been silent for this long has lost it."""
GRACE_S = 8.0
"""Seconds between asking a cancelled run to end and ending it."""
LOG_NAME = "log.txt"
DEVICE = "cpu"

_CLAIMABLE = (RunStatus.QUEUED,)


class RunError(ValueError):
    """Something that cannot be done with a run; the sentence says why."""


def create_run(*, name: str, preset_name: str, market: Market, overrides: tuple[str, ...] = ()) -> Run:
    """Write a run down, not started yet. Raises `RunError` or `ConfigError` with a sentence."""
    if Run.objects.filter(name=name).exists():
        raise RunError(f"There is already a run {name!r}; choose another name.")
    if name in {spec.slug for spec in registry.all_specs()}:
        raise RunError(f"There is already an agent {name!r}; choose another name for the run.")
    config = preset(preset_name, name=name, game=game_of(market), overrides=overrides)
    return Run.objects.create(name=name, preset=preset_name, market=market, config=msgspec.json.encode(config).decode())


def game_of(market: Market) -> Game:
    """The games that a market draws, as training knows them. Raises `RunError` where it cannot learn them."""
    recipe = decode_recipe(market.recipe)
    if recipe.family is not Family.MULTI_BUYER or not isinstance(recipe.mechanism, SellerTurns):
        raise RunError(
            f"The tiny preset learns to sell one product to several buyers; {market.slug!r} is a "
            f"{recipe.family.value} market."
        )
    if not recipe.unit_is_money:
        raise RunError(
            f"The tiny preset learns in markets whose values are in money; {market.slug!r} has shares "
            "of a list price. Make one with create_market --unit money."
        )
    if not isinstance(recipe.cost_spec, priors.ConstantSpec):
        raise RunError(f"The tiny preset needs a constant cost, not {priors.format_spec(recipe.cost_spec)!r}.")
    return Game(
        sizes=((recipe.buyers, recipe.mechanism.turns),),
        costs=(recipe.cost_spec.value,),
        values=priors.format_spec(recipe.value_spec),
        opponents=tuple(dict.fromkeys(market.buyer_agents.split(","))),
    )


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
            DeviceLock.objects.create(device=DEVICE, run=run)
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
            env=os.environ | {"PARLEY_VAR": str(settings.VAR)},
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
    """Ask a process group to end, and end it when it does not."""
    deadline = time.monotonic() + GRACE_S
    try:
        os.killpg(process_group, signal.SIGTERM)
        while time.monotonic() < deadline:
            time.sleep(0.1)
            if _reaped(process_group):
                return
        os.killpg(process_group, signal.SIGKILL)
    except ProcessLookupError:
        return


def _reaped(process_group: int) -> bool:
    """Whether the group's leader has ended (and, where it is our child, is collected)."""
    try:
        pid, _status = os.waitpid(process_group, os.WNOHANG)
    except ChildProcessError:
        os.killpg(process_group, 0)
        return False
    return pid == process_group


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
        if run.process_group:
            end_group(run.process_group)
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
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return RunStatus.FAILED, f"Ended with status {returncode}.\n" + "\n".join(lines[-12:])


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
    folder = runs.folder(run.name)
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "training.publish",
            str(folder / "run.json"),
            "--run",
            str(folder),
            "--slug",
            run.name,
            "--title",
            run.name.replace("-", " ").capitalize(),
            "--to",
            str(settings.VAR / "checkpoints"),
            "--replace",
        ],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise RunError(f"The model could not be published: {result.stderr.strip().splitlines()[-1:]}")
    Run.objects.filter(pk=run.pk).update(published_slug=run.name)
    return run.name


def config_of(run: Run) -> RunConfig:
    """The configuration of a run."""
    return msgspec.json.decode(run.config, type=RunConfig)


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
        "figures": {stage: found for stage in runs.STAGES if (found := runs.figures(folder, stage)) is not None},
    }
