"""The agents that language models make possible: narrated strategies, and models that decide.

For every configured back end there are a narrator and agents that decide themselves, in either
protocol, regulated or not. `narrator-STRATEGY` narrates any scripted strategy with the embedded
model; it can be looked up and seated, and is in no list, like an agent with a persona. Without a back
end a narrator speaks from templates. The embedded model with an adapter (`adapters`) is one agent, as it was
taught. Not here: what these agents do (`narrator`, `llm`). Pure.

Contract: an agent's version is a digest of all that makes it speak and move as it does: strategy,
protocol, back end, model, prompts and sampling.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from agents import adapters, backends, phrasebook, prompts
from agents.backends import EMBEDDED, BackendConfig
from agents.base import Agent, AgentSpec, Kind
from agents.inference import embedded
from agents.llm import TEMPERATURE, ModelAgent
from agents.narrator import Narrator, Speech
from agents.parsing import Codec, FourPart, Tools
from agents.scripted.personas import Persona, with_persona
from markets.engine.protocol import Role
from markets.engine.scenarios import Family

NARRATOR = "narrator"
"""The narrator that people meet where no strategy is named: a steady bargainer with the embedded model's words."""
STRATEGY = "linear"
"""What it plays."""
PREFIX = f"{NARRATOR}-"

CODECS: dict[str, Callable[[], Codec]] = {"four_part": FourPart, "tools": Tools}
"""The protocols by name."""


def listed(strategies: Mapping[str, AgentSpec]) -> tuple[AgentSpec, ...]:
    """The agents of every configured back end, the embedded one's narrator first."""
    made: list[AgentSpec] = []
    taught = {card.slug: card for _folder, card in adapters.cards()}
    for config in sorted(backends.configured(), key=lambda config: config.name != EMBEDDED):
        if config.name == EMBEDDED:
            made += [_narrator(strategies[STRATEGY], slug=NARRATOR), *_deciders(config, protocols=("four_part",))]
        elif config.name in taught:
            made.append(_taught(config, taught[config.name]))
        else:
            made += [
                _narrated(strategies[STRATEGY], config.name, slug=f"{config.name}-{NARRATOR}", speech=Speech.FREE),
                *_deciders(config, protocols=("four_part", "tools")),
            ]
    return tuple(made)


def named(slug: str, strategies: Mapping[str, AgentSpec]) -> AgentSpec | None:
    """A narrator by its slug, whether its model is there or not; None for any other slug."""
    if slug == NARRATOR:
        return _narrator(strategies[STRATEGY], slug=NARRATOR)
    strategy = strategies.get(slug.removeprefix(PREFIX)) if slug.startswith(PREFIX) else None
    if strategy is None or strategy.kind is not Kind.SCRIPTED:
        return None
    return _narrator(strategy, slug=slug)


_OF_A_BACK_END = re.compile(rf"([a-z][a-z0-9-]*?)-(?:model(?:-tools)?(?:-unregulated)?|{NARRATOR})")


def why_missing(slug: str) -> str:
    """Why the agent of this slug, which a language model would make possible, is not there; empty for any other slug."""
    taught = {card.slug: folder for folder, card in adapters.cards()}
    match = _OF_A_BACK_END.fullmatch(slug)
    name = slug if slug in taught else match[1] if match else ""
    if not name or any(config.name == name for config in backends.configured()):
        return ""
    variable = f"PARLEY_LLM_{name.replace('-', '_').upper()}"
    if name != EMBEDDED and name not in taught:
        return (
            f"The agent {slug!r} needs the language-model back end {name!r}, which is not configured: "
            f"set {variable}_URL and {variable}_MODEL."
        )
    serve, model = "python -m agents.inference", embedded.NAME
    if name in taught:
        serve, model = f"{serve} --adapter {taught[name]}", taught[name].name
    return (
        f"The agent {slug!r} needs the model server, which does not run. `make run` starts it, and commands with the same "
        f"PARLEY_VAR find it there; or start `{serve}` and set {variable}_URL=http://127.0.0.1:8091/v1 "
        f"{variable}_MODEL={model}."
    )


def narrated_slug(slug: str, strategies: Mapping[str, AgentSpec]) -> str:
    """The narrator of a scripted agent where the embedded model is there to speak; else the agent itself."""
    there = any(config.name == EMBEDDED for config in backends.configured())
    return f"{PREFIX}{slug}" if there and named(f"{PREFIX}{slug}", strategies) else slug


def _narrator(strategy: AgentSpec, *, slug: str) -> AgentSpec:
    return _narrated(strategy, EMBEDDED, slug=slug, speech=Speech.PHRASEBOOK)


def _narrated(strategy: AgentSpec, backend: str, *, slug: str, speech: Speech) -> AgentSpec:
    config = _config(backend)
    own = backend == EMBEDDED
    voice = "the small language model of this server" if own else config.model
    return AgentSpec(
        slug=slug,
        title=f"{strategy.title}, narrated" if own else f"{strategy.title}, in the words of {config.model}",
        summary=f"{strategy.summary} A language model puts its moves into words.",
        kind=Kind.NARRATOR,
        roles=strategy.roles,
        families=strategy.families,
        build=partial(_build_narrator, strategy.build, backend, speech),
        speak_as=partial(_build_narrator, strategy.build, backend, speech),
        version=_version("narrator", strategy.slug, strategy.version, config, ("narrator", "phrasebook"), _way(speech)),
        source=f"{strategy.source} Words: {voice} (after Xia et al. 2024).",
        plays_as=strategy.slug,
        asks_models=True,
    )


def _way(speech: Speech) -> str:
    """The way of speaking, with the version of its sentences."""
    return f"{speech.value} {phrasebook.VERSION}" if speech is Speech.PHRASEBOOK else speech.value


def _build_narrator(strategy: Callable[[], Agent], backend: str, speech: Speech, persona: str = "") -> Agent:
    if persona and speech is Speech.PHRASEBOOK:  # Its grammar takes no instruction: the persona joins in.
        return with_persona(partial(_build_narrator, strategy, backend, speech), Persona(persona), speaks=True)
    return Narrator(strategy=strategy(), backend=backend, speech=speech, persona=persona_lines(persona))


def persona_lines(persona: str) -> str:
    """What a model is told of a way of talking; nothing of `neutral` or none."""
    prompt = prompts.load("personas")
    return prompt.fill(persona) if persona in prompt.sections else ""


def _deciders(config: BackendConfig, *, protocols: tuple[str, ...]) -> list[AgentSpec]:
    """The model itself on a chair, regulated and not, in each protocol."""
    weak = config.name == EMBEDDED
    made = []
    for protocol in protocols:
        for regulated in (True, False):
            ways = (["tools"] if protocol == "tools" else []) + ([] if regulated else ["unregulated"])
            how = "by calling functions" if protocol == "tools" else "in its own words"
            guard = "it cannot lose money" if regulated else "nothing keeps it from losing money"
            made.append(
                AgentSpec(
                    slug="-".join((f"{config.name}-model", *ways)),
                    title=f"{config.model}{', ' if ways else ''}{', '.join(ways)}",
                    summary=f"{'Weak: a' if weak else 'A'} language model that decides {how}; {guard}.",
                    kind=Kind.MODEL,
                    roles=(Role.SELLER, Role.BUYER),
                    families=tuple(Family),
                    build=partial(_build_decider, config.name, protocol, regulated),
                    speak_as=partial(_build_decider, config.name, protocol, regulated),
                    version=_version("model", protocol, str(regulated), config, (protocol,), str(TEMPERATURE)),
                    source=f"The model {config.model} of the back end {config.name!r}, protocol {protocol}.",
                    asks_models=True,
                    remark="weak" if weak else "",
                )
            )
    return made


def _taught(config: BackendConfig, card: adapters.Card) -> AgentSpec:
    """The embedded model as training left it: one agent, in the words that it was taught."""
    build = partial(_build_taught, config.name, card)
    return AgentSpec(
        slug=card.slug,
        title=card.title,
        summary=card.summary,
        kind=Kind.MODEL,
        roles=card.roles,
        families=card.families,
        build=build,
        speak_as=build,
        version=_version("taught", card.protocol, card.weights_sha256, config, (card.protocol,), str(card.temperature)),
        source=f"{card.base}, taught here: {card.trained_on}",
        asks_models=True,
    )


def _build_taught(backend: str, card: adapters.Card, persona: str = "") -> Agent:
    return ModelAgent(
        backend=backend,
        codec=CODECS[card.protocol](),
        regulated=True,
        persona=persona_lines(persona),
        temperature=card.temperature,
        max_tokens=card.longest,
    )


def _build_decider(backend: str, protocol: str, regulated: bool, persona: str = "") -> Agent:
    return ModelAgent(backend=backend, codec=CODECS[protocol](), regulated=regulated, persona=persona_lines(persona))


def _config(name: str) -> BackendConfig:
    """The configuration of a back end; of one that is not configured, what is known of it."""
    for config in backends.configured():
        if config.name == name:
            return config
    return BackendConfig(name=name, url="", model=name)


def _version(kind: str, what: str, how: str, config: BackendConfig, used: tuple[str, ...], sampling: str) -> str:
    labels = [f"{prompts.load(name).label}:{prompts.load(name).digest}" for name in used]
    made_of = [kind, what, how, config.name, config.model, msgspec.json.encode(config.options).decode(), sampling]
    return hashlib.sha256("\n".join((*made_of, *labels)).encode()).hexdigest()[:10]
