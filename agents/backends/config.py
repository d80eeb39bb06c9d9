"""Which back ends there are, read from environment variables.

For every name there is a `PARLEY_LLM_<NAME>_URL`; the other variables of that name refine it:

    PARLEY_LLM_<NAME>_URL          base URL of an OpenAI-compatible server, such as http://127.0.0.1:11434/v1
    PARLEY_LLM_<NAME>_MODEL        name of the model there
    PARLEY_LLM_<NAME>_KEY          key, sent as a bearer token (none)
    PARLEY_LLM_<NAME>_TIMEOUT      seconds that one call may take (30)
    PARLEY_LLM_<NAME>_ATTEMPTS     tries of one call, the first included (3)
    PARLEY_LLM_<NAME>_CONCURRENCY  calls at the same time, in all processes together (4)
    PARLEY_LLM_<NAME>_CONTEXT      tokens of a prompt and its answer together (no limit known)
    PARLEY_LLM_<NAME>_PRICE        price of a million tokens read and written, such as 0.15/0.60
    PARLEY_LLM_<NAME>_OPTIONS      JSON object that is added to every request, such as {"top_k": 20}
    PARLEY_LLM_<NAME>_GRAMMAR      true where the server takes llama.cpp's grammars (false)

Pure: takes a mapping and returns configurations, or raises `BackendConfigError` with a sentence.
"""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

EMBEDDED = "embedded"
"""The back end that serves the model of the project's own packages."""

_URL = re.compile(r"PARLEY_LLM_([A-Z][A-Z0-9_]*)_URL")
_FIELDS = ("URL", "MODEL", "KEY", "TIMEOUT", "ATTEMPTS", "CONCURRENCY", "CONTEXT", "PRICE", "OPTIONS", "GRAMMAR")
_NAMED = re.compile(rf"PARLEY_LLM_([A-Z][A-Z0-9_]*)_({'|'.join(_FIELDS)})")


class BackendConfigError(ValueError):
    """A variable that cannot be read; the message is a sentence that names it and never quotes a key."""


class Secret:
    """A key that shows itself to whoever asks for it by name, and to no log."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The key."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(…)" if self._text else "Secret()"


class BackendConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One back end."""

    name: str
    """As in agents' slugs: lower case, words joined with hyphens."""
    url: str
    model: str
    key: Secret = Secret("")
    timeout_s: float = 30.0
    attempts: int = 3
    concurrency: int = 4
    context_tokens: int | None = None
    """Longest prompt and answer together; None where no limit is known."""
    input_price: float | None = None
    """Price of a million tokens read."""
    output_price: float | None = None
    """Price of a million tokens written."""
    options: dict[str, Any] = {}
    grammar: bool = False

    def cost_micros(self, input_tokens: int | None, output_tokens: int | None) -> int | None:
        """What a call costs, in millionths of the price's currency."""
        if self.input_price is None or self.output_price is None or input_tokens is None or output_tokens is None:
            return None
        return round(self.input_price * input_tokens + self.output_price * output_tokens)


def read(environment: Mapping[str, str]) -> dict[str, BackendConfig]:
    """Every back end that `environment` names. Raises `BackendConfigError`."""
    named = [match[1] for variable in sorted(environment) if (match := _URL.fullmatch(variable))]
    _refuse_orphans(environment, set(named))
    configs = [_one(name, environment) for name in named if environment[f"PARLEY_LLM_{name}_URL"].strip()]
    return {config.name: config for config in configs}


def variables(config: BackendConfig) -> dict[str, str]:
    """The environment that `read` makes `config` of: for a process that starts others."""
    prefix = f"PARLEY_LLM_{config.name.replace('-', '_').upper()}_"
    return {
        f"{prefix}URL": config.url,
        f"{prefix}MODEL": config.model,
        f"{prefix}KEY": config.key.reveal(),
        f"{prefix}TIMEOUT": str(config.timeout_s),
        f"{prefix}ATTEMPTS": str(config.attempts),
        f"{prefix}CONCURRENCY": str(config.concurrency),
        f"{prefix}CONTEXT": "" if config.context_tokens is None else str(config.context_tokens),
        f"{prefix}GRAMMAR": "true" if config.grammar else "false",
    }


def _refuse_orphans(environment: Mapping[str, str], named: set[str]) -> None:
    """A misspelt name would silently mean no model: say so."""
    for variable in sorted(environment):
        match = _NAMED.fullmatch(variable)
        if match and match[1] not in named:
            raise BackendConfigError(f"{variable} is set, but PARLEY_LLM_{match[1]}_URL is not.")


def _one(name: str, environment: Mapping[str, str]) -> BackendConfig:
    def text(field: str) -> str:
        return environment.get(f"PARLEY_LLM_{name}_{field}", "").strip()

    url, model = text("URL"), text("MODEL")
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", url):
        raise BackendConfigError(f"PARLEY_LLM_{name}_URL is no address of a server, such as http://127.0.0.1:11434/v1.")
    if "@" in url.split("//", 1)[1].split("/", 1)[0]:
        raise BackendConfigError(f"PARLEY_LLM_{name}_URL holds a password; give it as PARLEY_LLM_{name}_KEY.")
    if not model:
        raise BackendConfigError(f"PARLEY_LLM_{name}_MODEL is not set: which model of that server is meant?")
    input_price, output_price = _price(name, text("PRICE"))
    return BackendConfig(
        name=name.lower().replace("_", "-"),
        url=url.rstrip("/"),
        model=model,
        key=Secret(text("KEY")),
        timeout_s=_number(name, "TIMEOUT", text("TIMEOUT"), 30.0, lowest=0.1, highest=600.0),
        attempts=int(_number(name, "ATTEMPTS", text("ATTEMPTS"), 3, lowest=1, highest=10)),
        concurrency=int(_number(name, "CONCURRENCY", text("CONCURRENCY"), 4, lowest=1, highest=256)),
        context_tokens=_tokens(name, text("CONTEXT")),
        input_price=input_price,
        output_price=output_price,
        options=_options(name, text("OPTIONS")),
        grammar=_switch(name, text("GRAMMAR")),
    )


def _number(name: str, field: str, text: str, default: float, *, lowest: float, highest: float) -> float:
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not lowest <= number <= highest:
        raise BackendConfigError(f"PARLEY_LLM_{name}_{field} must be a number from {lowest:g} to {highest:g}.")
    return number


def _tokens(name: str, text: str) -> int | None:
    return int(_number(name, "CONTEXT", text, 0, lowest=512, highest=10_000_000)) if text else None


def _price(name: str, text: str) -> tuple[float | None, float | None]:
    if not text:
        return None, None
    try:
        read_price, write_price = (float(Decimal(part.strip())) for part in text.split("/"))
    except (ValueError, InvalidOperation):
        read_price = write_price = -1.0
    if not (0 <= read_price < 1e6 and 0 <= write_price < 1e6):
        raise BackendConfigError(
            f"PARLEY_LLM_{name}_PRICE must be two prices of a million tokens, read and written, such as 0.15/0.60."
        )
    return read_price, write_price


def _options(name: str, text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        options = msgspec.json.decode(text)
    except msgspec.DecodeError:
        options = None
    if not isinstance(options, dict):
        raise BackendConfigError(f'PARLEY_LLM_{name}_OPTIONS must be a JSON object, such as {{"top_k": 20}}.')
    return options


def _switch(name: str, text: str) -> bool:
    if text.lower() in ("", "0", "false", "no", "off"):
        return False
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    raise BackendConfigError(f"PARLEY_LLM_{name}_GRAMMAR may be true or false.")
