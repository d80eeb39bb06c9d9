"""The inference application on loopback, in a thread of the test."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import uvicorn

from agents.backends import BackendConfig
from agents.backends.chat import ChatBackend
from agents.backends.config import Secret
from agents.inference.engine import Engine
from agents.inference.server import Application


@contextmanager
def running(engines: Sequence[Engine], *, key: str = "") -> Iterator[str]:
    """The base URL of a server of `engines`."""
    config = uvicorn.Config(
        Application(engines, key=key), host="127.0.0.1", port=0, lifespan="off", log_level="warning", log_config=None
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join()


def client(url: str, model: str, *, key: str = "", grammar: bool = False) -> ChatBackend:
    """The site's own client for it."""
    return ChatBackend(
        BackendConfig(name="here", url=url, model=model, key=Secret(key), attempts=1, timeout_s=60, grammar=grammar)
    )
