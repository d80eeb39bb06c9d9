"""`python -m agents.inference`: serve the embedded model, and checkpoint folders that are named.

    python -m agents.inference --port 8091
    python -m agents.inference --port 8091 --adapter training/adapters/smollm2-haggler
    python -m agents.inference --port 8091 --checkpoint var/checkpoints/my-run --no-embedded

With the environment variable PARLEY_INFERENCE_KEY set, only requests with that key are answered.
"""

import argparse
import asyncio
import logging
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from agents.inference import adapter, embedded
from agents.inference.checkpoint import CheckpointEngine
from agents.inference.engine import Engine, EngineError
from agents.inference.llama import LlamaEngine
from agents.inference.server import Application

SLOTS = 3
"""Answers of the embedded model at the same time: three buyers of one room do not wait for one another."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s inference %(message)s")
    options = _parser().parse_args(arguments)
    try:
        engines = chosen_engines(options)
    except EngineError as error:
        print(error.sentence, file=sys.stderr)  # noqa: T201  (a command's own message)
        return 2
    application = Application(engines, key=os.environ.get("PARLEY_INFERENCE_KEY", ""))
    return asyncio.run(serve(application, host=options.host, port=options.port, descriptor=options.fd))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m agents.inference", description=__doc__.split("\n")[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8091)
    parser.add_argument("--fd", type=int, help="descriptor of a socket that listens already, instead of host and port")
    parser.add_argument("--checkpoint", action="append", default=[], metavar="FOLDER", help="may be named repeatedly")
    parser.add_argument(
        "--adapter",
        action="append",
        default=[],
        metavar="FOLDER",
        help="of the embedded model; may be named repeatedly",
    )
    parser.add_argument("--no-embedded", action="store_true", help="serve checkpoints only")
    parser.add_argument("--threads", type=int, default=default_threads(), help="for each model")
    return parser


def default_threads() -> int:
    """One on small machines: threads of one model wait for one another, so on cores that others use as well two
    are many times slower than one."""
    return max(1, (os.cpu_count() or 1) // 4)


def chosen_engines(options: argparse.Namespace) -> list[Engine]:
    """The models to serve. Raises `EngineError` where there is none, or one is not there."""
    engines: list[Engine] = []
    if not options.no_embedded and not embedded.missing():
        path = embedded.model_file()
        assert path is not None
        model = LlamaEngine(
            path,
            name=embedded.NAME,
            threads=options.threads,
            slots=SLOTS,
            adapters=[adapter.ready(Path(text).expanduser().resolve()) for text in options.adapter],
        )
        engines += [model, *model.taught]
    elif options.adapter:
        raise EngineError(500, "An adapter is nothing without the embedded model, which is not served.")
    for text in options.checkpoint:
        folder = Path(text).expanduser().resolve()
        if not (folder / "config.json").is_file():
            raise EngineError(500, f"{folder} holds no checkpoint: there is no config.json in it.")
        engines.append(CheckpointEngine(folder, name=folder.name, threads=options.threads))
    if not engines:
        lacking = " and ".join(embedded.missing()) or "a checkpoint"
        raise EngineError(500, f"There is no model to serve. Install {lacking}, or name a folder with --checkpoint.")
    names = [engine.name for engine in engines]
    if len(set(names)) < len(names):
        raise EngineError(500, f"Two models would have one name: {', '.join(sorted(names))}.")
    return engines


async def serve(application: Application, *, host: str, port: int, descriptor: int | None = None) -> int:
    """Listen, load the first model at once, the others when they are first asked."""
    import uvicorn

    listening = socket.socket(fileno=os.dup(descriptor)) if descriptor is not None else None
    config = uvicorn.Config(
        application, host=host, port=port, lifespan="off", log_level="warning", access_log=False, log_config=None
    )
    server = uvicorn.Server(config)
    loading = asyncio.create_task(_load_first(application))
    await server.serve([listening] if listening else None)
    loading.cancel()
    return 0 if server.started else 1


async def _load_first(application: Application) -> None:
    desk = next(iter(application.desks.values()))
    try:
        await desk.load()
    except EngineError:
        pass  # Logged there, and told by /health; a later request tries again.


if __name__ == "__main__":
    sys.exit(main())
