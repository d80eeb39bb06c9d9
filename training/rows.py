"""Stored episodes as data for training: the formats that `datasets` and TRL load.

Here: the decisions of one seat with the very messages that a model on that seat is given
(`agents.parsing`), and rows made of them: conversations (`sft_rows`), prompt and completion
(`completion_rows`), two endings of one state (`preference_rows`), steps with rewards (`step_rows`). Not
here: which episodes there are, files, splits. Pure: no Django, no torch.

Contract: a completion is text (or calls) that the protocol's own reader reads back as the very move;
a move that it cannot say is left out and counted. Moves that the rules refused and moves that were
played for somebody who ran out of time are nobody's to imitate. Every conversation begins with a
system message and then alternates between user and assistant, and only the chosen seat's moves stand
under `assistant`. The same episodes give the same rows.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from agents.backends import ChatMessage, ChatReply, ToolCall
from agents.base import Turn
from agents.parsing import Codec, FourPart, ParseFailure, Tools
from agents.prompts import table
from markets.engine import rewards
from markets.engine.legal import legal_moves
from markets.engine.money import CURRENCIES, Cents, format_plain
from markets.engine.observation import Observation, observe
from markets.engine.protocol import (
    SELLER,
    AcceptOffer,
    Action,
    DeadlinePassed,
    Event,
    Leave,
    LogEntry,
    MakeOffer,
    MessageSent,
    MoveRefused,
    OfferAccepted,
    OfferMade,
    OfferRejected,
    Party,
    PartyLeft,
    PriceSearched,
    RejectOffer,
    Role,
    Say,
    SearchPrice,
    Wait,
    Waited,
    buyer_party,
    encode,
    role_of,
)
from markets.engine.scenarios import EventDriven, Family, Scenario
from markets.engine.state import State, evolve, initial
from markets.export_times import moments, sender
from training import behavior


class Format(StrEnum):
    """What rows are for."""

    SFT = "sft"
    PROMPT_COMPLETION = "prompt-completion"
    PREFERENCE = "preference"
    RL = "rl"


class Unit(StrEnum):
    """What one row of `sft` is."""

    TURN = "turn"
    """One move: exactly what a model is asked, and the answer."""
    EPISODE = "episode"
    """All moves of one seat as one conversation."""


class Chair(NamedTuple):
    """Who sat on a seat and what it came to for them."""

    policy: str
    """`AGENT@VERSION`, or `person`."""
    surplus_cents: Cents
    surplus_share: float | None


class Source(NamedTuple):
    """A stored episode as plain values."""

    episode: str
    market: str
    scenario: Scenario
    log: tuple[LogEntry, ...]
    talk: Mapping[int, str]
    """By event number, masked where that was asked for."""
    thoughts: Mapping[int, str]
    chairs: Mapping[Party, Chair]
    """The seats whose moves are exported."""
    timed: bool
    """Whether `at_ms` is a wall clock's."""
    limits_known: bool = True
    """Whether the scenario's own values are limits; people of a corpus may have been told a target alone."""


class Decision(NamedTuple):
    """One moment at which a seat moved."""

    step: int
    """Number among the seat's own decisions, from 1."""
    n: int
    """Number of its first event."""
    turn: Turn
    actions: tuple[Action, ...]
    """What it did; nothing where the rules refused it."""
    chosen: bool
    """Whether the seat itself chose it: not refused, and not played for it when its time was up."""
    think_ms: int | None


class Options(NamedTuple):
    """How rows are written."""

    codec: Codec
    role: Role
    """Whose moves are learned: the perspective."""
    thoughts: bool = False
    unit: Unit = Unit.TURN


class Tally:
    """What became of the decisions that were looked at."""

    def __init__(self) -> None:
        self.decisions = 0
        self.written = 0
        """Decisions that are in a row, as an answer to learn."""
        self.not_chosen = 0
        """Refused, or played by the clock."""
        self.not_sayable = 0
        """Moves that the protocol has no words for."""


def codec(protocol: str) -> Codec:
    """The protocol of a name: `four_part` or `tools`."""
    return {"four_part": FourPart, "tools": Tools}[protocol]()


# --- Decisions --------------------------------------------------------------------------------------


def decisions(source: Source, party: Party) -> Iterator[Decision]:
    """Every decision of one seat, in order, each with what the seat knew just before."""
    scenario, log = source.scenario, source.log
    free = isinstance(scenario.mechanism, EventDriven)
    times = moments(scenario, log, ended_at=None) if free else None
    seen_ms = _seen_ms(log, party) if source.timed else None
    state, step, k = initial(scenario), 0, 0
    late = False
    while k < len(log):
        entry = log[k]
        if isinstance(entry.event, DeadlinePassed):
            late = _is_of(entry.event, party)
        if isinstance(entry.event, DeadlinePassed) or sender(entry.event) != party:
            state = evolve(state, entry.event)
            k += 1
            continue
        step += 1
        turn = _turn(source, state, party, k)
        batch = [entry]
        while free and k + len(batch) < len(log):
            following = log[k + len(batch)]
            if following.at_ms != entry.at_ms or sender(following.event) != party:
                break
            batch.append(following)
        many = table.has_many(turn.observation)
        actions = [_action(item, source, many=many) for item in batch]
        refused = any(action is None for action in actions)
        think = seen_ms[k] if seen_ms else times[k].think_ms if times else None
        yield Decision(
            step=step,
            n=entry.n,
            turn=turn,
            actions=() if refused else tuple(action for action in actions if action is not None),
            chosen=not refused and not late,
            think_ms=think,
        )
        late = False
        for item in batch:
            state = evolve(state, item.event)
        k += len(batch)


def _is_of(event: DeadlinePassed, party: Party) -> bool:
    return party == (SELLER if event.by is Role.SELLER else buyer_party(event.buyer))


def _seen_ms(log: Sequence[LogEntry], party: Party) -> list[int]:
    """Milliseconds since `party` last saw something, at each event."""
    found, last = [], 0
    buyer = None if party == SELLER else int(party.removeprefix("buyer-"))
    for entry in log:
        found.append(entry.at_ms - last)
        if buyer is None or getattr(entry.event, "buyer", 0) in (0, buyer):
            last = entry.at_ms
    return found


def _turn(source: Source, state: State, party: Party, k: int) -> Turn:
    """The turn that a model on the seat would be given."""
    free = isinstance(source.scenario.mechanism, EventDriven)
    return Turn(
        observation=observe(state, party, now_ms=source.log[k].at_ms if free else 0),
        seed=source.scenario.seed,
        party=party,
        slug="",
        position=0,
        log=(source.scenario, source.log[:k]),
        words_at=lambda n: source.talk.get(n, ""),
    )


def _action(entry: LogEntry, source: Source, *, many: bool) -> Action | None:
    """The action behind an event, as its sender wrote it; None for one that was refused."""
    event: Event = entry.event
    about: dict[str, Any] = {
        "buyer": getattr(event, "buyer", 0) if many else 0,
        "talk": source.talk.get(entry.n, ""),
        "thought": source.thoughts.get(entry.n, ""),
    }
    match event:
        case OfferMade():
            return MakeOffer(price_cents=event.price_cents, product=event.product, **about)
        case OfferAccepted():
            return AcceptOffer(offer_id=event.offer_id, **about)
        case OfferRejected():
            return RejectOffer(offer_id=event.offer_id, **about)
        case MessageSent():
            return Say(**about)
        case Waited():
            return Wait(for_ms=0 if event.until_ms is None else event.until_ms - entry.at_ms, **about)
        case PriceSearched():
            return SearchPrice(product=event.product, **about)
        case PartyLeft():
            return Leave(talk=about["talk"], thought=about["thought"])
        case MoveRefused():
            return None
        case _:
            raise ValueError(f"{type(event).__name__} is no move.")


# --- Answers in a protocol --------------------------------------------------------------------------


def answer(decision: Decision, options: Options) -> dict[str, Any] | None:
    """The assistant message that says the decision; None where the protocol cannot say it."""
    observation = decision.turn.observation
    actions = decision.actions
    thought = " ".join(actions[0].thought.split()) if options.thoughts and actions else ""
    if options.codec.name == "tools":
        calls = [call for action in actions for call in _calls(action, observation)]
        reply = ChatReply(text=thought, tool_calls=tuple(calls))
        message: dict[str, Any] = {
            "role": "assistant",
            "content": thought,
            "tool_calls": [
                {"type": "function", "function": {"name": call.name, "arguments": json.loads(call.arguments)}}
                for call in calls
            ],
        }
    elif len(actions) == 1 and (text := _four_part(actions[0], observation, thought)):
        reply = ChatReply(text=text)
        message = {"role": "assistant", "content": text}
    else:
        return None
    return message if _reads_back(reply, actions, observation, options.codec) else None


def _reads_back(reply: ChatReply, actions: Sequence[Action], observation: Observation, protocol: Codec) -> bool:
    """Whether the protocol takes the answer for these very actions; words may differ in their white space."""
    try:
        read = protocol.read(reply, observation)
    except ParseFailure:
        return False
    return [_plain(action) for action in read] == [_plain(action) for action in actions]


def _plain(action: Action) -> Action:
    return msgspec.structs.replace(action, thought="", talk=" ".join(action.talk.split()))


def _four_part(action: Action, observation: Observation, thought: str) -> str:
    """An action in labelled parts; empty where there are none for it."""
    symbol = CURRENCIES[observation.currency].symbol
    several = len(observation.products) > 1
    match action:
        case MakeOffer():
            word = "SELL" if observation.role is Role.SELLER else "BUY"
            item = f"#{action.product + 1} " if several else ""
            said = f"[{word}] {item}{symbol}{format_plain(action.price_cents)}"
        case AcceptOffer():
            offer = _offer(action, observation)
            if offer is None:
                return ""
            item = f"#{offer[0] + 1} " if several else ""
            said = f"[DEAL] {item}{symbol}{format_plain(offer[1])}"
        case RejectOffer():
            said = "[REJECT]"
        case Say():
            said = "[TALK]"
        case Leave():
            said = "[QUIT]"
        case _:
            return ""
    lines = [f"Thought: {thought}"] if thought else []
    if table.has_many(observation):
        # Who leaves does so from every conversation, and still names one, as the form wants.
        lines.append(f"Target: Buyer {action.buyer or 1}")
    lines += [f"Talk: {' '.join(action.talk.split())}".rstrip(), f"Action: {said}"]
    return "\n".join(lines)


def _offer(action: AcceptOffer | RejectOffer, observation: Observation) -> tuple[int, Cents] | None:
    """Product and price of the offer that is answered."""
    for thread in observation.threads:
        if action.buyer in (0, thread.buyer):
            for offer in thread.offers:
                if offer.offer_id == action.offer_id:
                    return offer.product, offer.price_cents
    return None


def _calls(action: Action, observation: Observation) -> list[ToolCall]:
    """An action as a function call."""
    talk = action.talk
    words = {"message": talk} if talk else {}
    buyer = {"buyer": action.buyer} if table.has_many(observation) else {}
    several = len(observation.products) > 1
    match action:
        case MakeOffer():
            product = {"product": action.product + 1} if several else {}
            return [_call("make_offer", {"price": _price(action.price_cents), **buyer, **product, **words})]
        case AcceptOffer() | RejectOffer():
            offer = _offer(action, observation)
            product = {"product": offer[0] + 1} if several and offer is not None else {}
            taken = {"accept": isinstance(action, AcceptOffer)}
            return [_call("respond_to_offer", {**taken, **buyer, **product, **words})]
        case Say():
            return [_call("send_message", {"message": talk, **buyer})]
        case Leave():
            return [_call("quit_negotiation", words)]
        case Wait():
            timed = {"seconds": _price(action.for_ms, parts=1000)}
            return [_call("wait_for_time_period", timed) if action.for_ms else _call("wait_for_response", {})]
        case SearchPrice():
            return [_call("search_price", {"product": action.product + 1} if several else {})]


def _call(name: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(name=name, arguments=json.dumps(arguments, ensure_ascii=False))


def _price(amount: int, *, parts: int = 100) -> int | float:
    whole, rest = divmod(amount, parts)
    return amount / parts if rest else whole


# --- Rows -------------------------------------------------------------------------------------------


def sft_rows(source: Source, options: Options, tally: Tally) -> Iterator[dict[str, Any]]:
    """Conversations: one a move, or one a seat."""
    for party in _parties(source, options):
        asked = list(_answered(source, party, options, tally))
        if options.unit is Unit.TURN:
            for decision, prompt, said in asked:
                if said is not None:
                    yield _row(source, party, decision.step, options, {"messages": [*prompt, said]}, decision)
            continue
        messages = merged(
            message
            for k, (_decision, prompt, said) in enumerate(asked)
            for message in (*(prompt if k == 0 else prompt[1:]), *(() if said is None else (said,)))
        )
        while messages and messages[-1]["role"] != "assistant":
            messages.pop()
        if messages:
            check_turns(messages)
            yield _row(source, party, len(asked), options, {"messages": messages}, asked[0][0])


def completion_rows(source: Source, options: Options, tally: Tally) -> Iterator[dict[str, Any]]:
    """One move a row: what a model is asked, and the answer."""
    for party in _parties(source, options):
        for decision, prompt, said in _answered(source, party, options, tally):
            if said is not None:
                columns = {"prompt": list(prompt), "completion": [said]}
                yield _row(source, party, decision.step, options, columns, decision)


def preference_rows(sources: Sequence[Source], options: Options, tally: Tally) -> Iterator[dict[str, Any]]:
    """Pairs of answers given in one state, of episodes that share their scenario.

    A state is everything that the seat was told. Of the answers given in it the one with the highest
    mean realised surplus is chosen; each that ended lower is rejected once.
    """
    states: dict[str, dict[str, _Ending]] = {}
    for source in sources:
        for party in _parties(source, options):
            for decision, prompt, said in _answered(source, party, options, tally):
                if said is None:
                    continue
                state = json.dumps([party, prompt], ensure_ascii=False)
                text = json.dumps(said, ensure_ascii=False, sort_keys=True)
                endings = states.setdefault(state, {})
                if text not in endings:
                    endings[text] = _Ending(source, party, decision, prompt, said)
                endings[text].surpluses.append(source.chairs[party].surplus_cents)
    for endings in states.values():
        ranked = sorted(endings.values(), key=lambda ending: -ending.mean_cents)
        best = ranked[0]
        for other in ranked[1:]:
            if other.mean_cents == best.mean_cents:
                continue
            columns = {
                "prompt": list(best.prompt),
                "chosen": [best.said],
                "rejected": [other.said],
                "chosen_surplus_cents": best.mean_cents,
                "rejected_surplus_cents": other.mean_cents,
                "chosen_endings": len(best.surpluses),
                "rejected_endings": len(other.surpluses),
                "rejected_episode": other.source.episode,
            }
            yield _row(best.source, best.party, best.decision.step, options, columns, best.decision)


class _Ending:
    """One answer in a state, and what it came to in every episode that went on with it."""

    def __init__(
        self,
        source: Source,
        party: Party,
        decision: Decision,
        prompt: tuple[dict[str, Any], ...],
        said: dict[str, Any],
    ) -> None:
        self.source, self.party, self.decision = source, party, decision
        self.prompt, self.said = prompt, said
        self.surpluses: list[Cents] = []

    @property
    def mean_cents(self) -> float:
        return sum(self.surpluses) / len(self.surpluses)


def step_rows(source: Source, options: Options, tally: Tally) -> Iterator[dict[str, Any]]:
    """One row a step of the learner: what it saw, did, could have done, and was paid.

    The reward is paid at the last step; the return of a step is what follows from it, undiscounted.
    """
    for party in _parties(source, options):
        name, worth = reward_of(source, party)
        steps = list(_answered(source, party, options, tally))
        for k, (decision, prompt, said) in enumerate(steps):
            observation = decision.turn.observation
            policy = source.chairs[party].policy
            chance = (
                behavior.chance_of(policy, decision.turn, decision.actions) if decision.chosen else behavior.NOT_CHOSEN
            )
            columns = {
                "prompt": list(prompt),
                "observation": encode(observation).decode(),
                "action": encode(_bare(decision.actions, options)).decode() if decision.actions else None,
                "action_text": None if said is None else _text_of(said),
                "legal_actions": encode(legal_moves(observation)).decode(),
                "reward": worth if k == len(steps) - 1 else 0.0,
                "return": worth,
                "done": k == len(steps) - 1,
                "mask": int(said is not None),
                "reward_name": name,
                "behavior_policy": policy,
                "behavior_log_probability": chance.log_probability,
                "behavior_note": chance.note,
                "think_ms": decision.think_ms,
            }
            yield _row(source, party, decision.step, options, columns, decision)


def _bare(actions: Sequence[Action], options: Options) -> list[Action]:
    return list(actions) if options.thoughts else [msgspec.structs.replace(act, thought="") for act in actions]


def _text_of(said: dict[str, Any]) -> str:
    calls = [call["function"] for call in said.get("tool_calls", ())]
    return said["content"] if not calls else json.dumps(calls, ensure_ascii=False, separators=(",", ":"))


def reward_of(source: Source, party: Party) -> tuple[str, float]:
    """What the episode was worth to a seat, by the reward that fits its family, and its name.

    A buyer among several has no published reward: its own surplus share, 0 where there was nothing to share.
    """
    role, family = role_of(party), source.scenario.family
    if family is Family.BILATERAL:
        name = "bilateral_share"
    elif role is Role.SELLER:
        name = "rlvr_seller_multi" if family is Family.MULTI_BUYER else "rlvr_seller_catalogue"
    else:
        share = source.chairs[party].surplus_share or 0.0
        return "surplus_share", max(-1.0, min(1.0, share))
    return name, rewards.by_name(name, role=role)(source.scenario, source.log)


def _parties(source: Source, options: Options) -> list[Party]:
    return [party for party in source.chairs if role_of(party) is options.role]


def _answered(
    source: Source, party: Party, options: Options, tally: Tally
) -> Iterator[tuple[Decision, tuple[dict[str, Any], ...], dict[str, Any] | None]]:
    """Decisions with what a model is told and what it would answer; None where there is nothing to learn."""
    for decision in decisions(source, party):
        tally.decisions += 1
        said = answer(decision, options) if decision.chosen else None
        if said is not None:
            tally.written += 1
        elif decision.chosen:
            tally.not_sayable += 1
        else:
            tally.not_chosen += 1
        prompt = tuple(map(_message, options.codec.messages(decision.turn, persona="")))
        yield decision, prompt, said


def _message(message: ChatMessage) -> dict[str, Any]:
    return {"role": message.role, "content": message.content}


def _row(
    source: Source, party: Party, step: int, options: Options, columns: dict[str, Any], decision: Decision
) -> dict[str, Any]:
    tools = options.codec.tools(decision.turn.observation)
    called = {"tools": json.dumps(tools, ensure_ascii=False, separators=(",", ":"))} if tools else {}
    return {
        **columns,
        **called,
        "episode": source.episode,
        "market": source.market,
        "family": source.scenario.family.value,
        "party": party,
        "step": step,
        "policy": source.chairs[party].policy,
        "surplus_share": source.chairs[party].surplus_share,
    }


def merged(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages with those of one role that follow one another made one, as chat templates want them."""
    kept: list[dict[str, Any]] = []
    for message in messages:
        if not kept or kept[-1]["role"] != message["role"]:
            kept.append(dict(message))
            continue
        kept[-1]["content"] = "\n\n".join(text for text in (kept[-1]["content"], message["content"]) if text)
        calls = [*kept[-1].get("tool_calls", ()), *message.get("tool_calls", ())]
        if calls:
            kept[-1]["tool_calls"] = calls
    return kept


def check_turns(messages: Sequence[Mapping[str, Any]]) -> None:
    """Raise `ValueError` unless any chat template takes these: a system message, then user and assistant in turn."""
    roles = [message["role"] for message in messages]
    rest = roles[1:] if roles[:1] == ["system"] else roles
    wanted = [("user", "assistant")[k % 2] for k in range(len(rest))]
    if rest != wanted or rest[-1:] != ["assistant"]:
        raise ValueError(f"Roles that no chat template takes: {', '.join(roles)}.")


ROWS: dict[Format, Callable[[Source, Options, Tally], Iterator[dict[str, Any]]]] = {
    Format.SFT: sft_rows,
    Format.PROMPT_COMPLETION: completion_rows,
    Format.RL: step_rows,
}
"""Formats whose rows come from one episode at a time."""


# --- Columns ----------------------------------------------------------------------------------------


class Field(NamedTuple):
    """A column of a format, as `datasets` declares it."""

    name: str
    feature: Any
    meaning: str


def _conversation(protocol: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"name": "role", "dtype": "string"}, {"name": "content", "dtype": "string"}]
    if protocol == "tools":
        call = [{"name": "name", "dtype": "string"}, {"name": "arguments", "dtype": "json"}]
        parts.append(
            {"name": "tool_calls", "list": [{"name": "type", "dtype": "string"}, {"name": "function", "struct": call}]}
        )
    return parts


def fields(form: Format, protocol: str) -> tuple[Field, ...]:
    """The columns of a format in a protocol."""
    told, full = {"list": _conversation("four_part")}, {"list": _conversation(protocol)}
    text, whole, real, flag = ({"dtype": kind} for kind in ("string", "int64", "float64", "bool"))
    prompt = Field("prompt", told, "what the model on the seat is told: a system and a user message")
    own: tuple[Field, ...]
    match form:
        case Format.SFT:
            own = (Field("messages", full, "the conversation; the chosen seat's moves are the assistant's"),)
        case Format.PROMPT_COMPLETION:
            own = (prompt, Field("completion", full, "the move, as one assistant message"))
        case Format.PREFERENCE:
            own = (
                prompt,
                Field("chosen", full, "the answer with the highest mean realised surplus in this state"),
                Field("rejected", full, "an answer given in the same state that ended lower"),
                Field("chosen_surplus_cents", real, "mean surplus of the seat in episodes that went on with `chosen`"),
                Field("rejected_surplus_cents", real, "the same for `rejected`"),
                Field("chosen_endings", whole, "number of such episodes"),
                Field("rejected_endings", whole, "number of such episodes"),
                Field("rejected_episode", text, "one episode with `rejected`; `episode` is one with `chosen`"),
            )
        case Format.RL:
            own = (
                prompt,
                Field("observation", text, "JSON of everything that the seat knew"),
                Field("action", text, "JSON list of what it did; null for a move that was refused"),
                Field("action_text", text, "the move in the protocol; null where `mask` is 0"),
                Field("legal_actions", text, "JSON of what the rules allowed it to do"),
                Field("reward", real, "paid at the last step, 0 before"),
                Field("return", real, "sum of the rewards from this step on, undiscounted"),
                Field("done", flag, "whether it is the seat's last step"),
                Field("mask", whole, "1 where the seat chose the move itself and the protocol can say it, else 0"),
                Field("reward_name", text, "the reward function"),
                Field("behavior_policy", text, "who moved: AGENT@VERSION or person"),
                Field("behavior_log_probability", real, "log-probability of the move under it; null where unknown"),
                Field("behavior_note", text, "how that is known, or why it is not"),
                Field("think_ms", whole, "milliseconds since the seat last saw something; null where no clock ran"),
            )
    tools = (Field("tools", text, "JSON list of the functions that may be called"),) if protocol == "tools" else ()
    return (
        *own,
        *tools,
        Field("episode", text, "public identifier of the episode"),
        Field("market", text, "slug of the market"),
        Field("family", text, "bilateral, multi_buyer or catalogue"),
        Field("party", text, "the seat: seller, buyer-1, …"),
        Field("step", whole, "number of the move among the seat's own, from 1; their count where a row is an episode"),
        Field("policy", text, "who sat there: AGENT@VERSION or person"),
        Field("surplus_share", real, "own surplus / what could be shared; null where nothing could"),
    )
