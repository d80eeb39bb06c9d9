"""A GGUF file on llama.cpp, through its bindings: batches several answers, keeps prompts that begin alike.

Threads and contexts are fixed at the start, so what it takes of the machine is known. Adapters share the
model's weights and slots; each is a model of its own to whoever asks (`Taught`).
"""

import secrets
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.inference import embedded
from agents.inference.engine import Chunk, Emit, EngineError


class LlamaEngine:
    """One model file."""

    def __init__(
        self, path: Path, *, name: str, threads: int, slots: int, adapters: Sequence[tuple[str, Path]] = ()
    ) -> None:
        self.name = name
        self.slots = slots
        self.taught = tuple(Taught(self, name=name, number=k) for k, (name, _file) in enumerate(adapters))
        """The same model with each of its adapters (GGUF files)."""
        self._adapters = [file for _name, file in adapters]
        self._path = path
        self._threads = threads
        self._server: Any = None
        self._loading = threading.Lock()

    def load(self) -> None:
        """Read the weights and answer once, so that the first person does not wait for either."""
        with self._loading:
            if self._server is None:
                self._load()

    def _load(self) -> None:
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
        params.lora_init_without_apply = True
        params.lora_adapters = [self._adapter(xllamacpp.CommonAdapterLoraInfo(), file) for file in self._adapters]
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise EngineError(500, f"{self._path} cannot be loaded: {error}") from error
        self.complete({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1})

    @staticmethod
    def _adapter(info: Any, file: Path) -> Any:
        info.path, info.scale = str(file), 0.0
        return info

    def _with(self, request: dict[str, Any], adapter: int | None) -> dict[str, Any]:
        """The request with one adapter switched on and the others off."""
        scales = [{"id": k, "scale": float(k == adapter)} for k in range(len(self._adapters))]
        return request | ({"lora": scales} if scales else {})

    def complete(self, request: dict[str, Any], *, adapter: int | None = None) -> Chunk:
        """One whole answer."""
        try:
            answer: Chunk = self._server.handle_chat_completions(self._with(request, adapter) | {"stream": False})
        except (RuntimeError, ValueError) as error:
            raise EngineError(400, str(error)) from error
        _raise_if_refused(answer)
        return answer

    def stream(self, request: dict[str, Any], emit: Emit, *, adapter: int | None = None) -> None:
        """The answer piece by piece."""
        refusals: list[Chunk] = []

        def hear(chunk: Chunk) -> bool:
            if "error" in chunk:
                refusals.append(chunk)
                return True
            return emit(chunk)

        try:
            self._server.handle_chat_completions(self._with(request, adapter) | {"stream": True}, hear)
        except (RuntimeError, ValueError) as error:
            raise EngineError(400, str(error)) from error
        for refusal in refusals:
            _raise_if_refused(refusal)


class Taught:
    """A model with one of its adapters."""

    def __init__(self, model: LlamaEngine, *, name: str, number: int) -> None:
        self.name = name
        self.slots = model.slots
        self._model = model
        self._number = number

    def load(self) -> None:
        """The model's weights are its own."""
        self._model.load()

    def complete(self, request: dict[str, Any]) -> Chunk:
        """One whole answer."""
        return self._model.complete(request, adapter=self._number)

    def stream(self, request: dict[str, Any], emit: Emit) -> None:
        """The answer piece by piece."""
        self._model.stream(request, emit, adapter=self._number)


def _raise_if_refused(answer: Chunk) -> None:
    refusal = answer.get("error")
    if refusal is not None:
        raise EngineError(int(refusal.get("code", 500)), str(refusal.get("message", "The model did not answer.")))
