"""A GGUF file on llama.cpp, through its bindings: batches several answers, keeps prompts that begin alike.

Threads and contexts are fixed at the start, so what it takes of the machine is known.
"""

import secrets
from pathlib import Path
from typing import Any

from agents.inference import embedded
from agents.inference.engine import Chunk, Emit, EngineError


class LlamaEngine:
    """One model file."""

    def __init__(self, path: Path, *, name: str, threads: int, slots: int) -> None:
        self.name = name
        self.slots = slots
        self._path = path
        self._threads = threads
        self._server: Any = None

    def load(self) -> None:
        """Read the weights and answer once, so that the first person does not wait for either."""
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.model_alias = {self.name}
        params.n_ctx = embedded.CONTEXT_TOKENS * self.slots
        params.n_parallel = self.slots
        params.cache_ram_mib = 0  # Its own default keeps up to 8 GiB of old prompts.
        params.cpuparams.n_threads = self._threads
        params.cpuparams_batch.n_threads = self._threads
        params.n_threads_http = 1  # Its own listener stays on loopback, behind a key that nobody is told.
        params.api_keys = [secrets.token_urlsafe(24)]
        params.ui = False
        params.verbosity = 0
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise EngineError(500, f"{self._path} cannot be loaded: {error}") from error
        self.complete({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1})

    def complete(self, request: dict[str, Any]) -> Chunk:
        """One whole answer."""
        try:
            answer: Chunk = self._server.handle_chat_completions(request | {"stream": False})
        except (RuntimeError, ValueError) as error:
            raise EngineError(400, str(error)) from error
        _raise_if_refused(answer)
        return answer

    def stream(self, request: dict[str, Any], emit: Emit) -> None:
        """The answer piece by piece."""
        refusals: list[Chunk] = []

        def hear(chunk: Chunk) -> bool:
            if "error" in chunk:
                refusals.append(chunk)
                return True
            return emit(chunk)

        try:
            self._server.handle_chat_completions(request | {"stream": True}, hear)
        except (RuntimeError, ValueError) as error:
            raise EngineError(400, str(error)) from error
        for refusal in refusals:
            _raise_if_refused(refusal)


def _raise_if_refused(answer: Chunk) -> None:
    refusal = answer.get("error")
    if refusal is not None:
        raise EngineError(int(refusal.get("code", 500)), str(refusal.get("message", "The model did not answer.")))
