"""From a seat's turn to messages for a model, and from the model's reply to actions: the two protocols.

`FourPart` is text in labelled parts (Thought, Target, Talk, Action), `Tools` are function calls. Both
grammars are published in `docs/language-models.md`. Not here: asking a model or asking it again
(`agents.llm`).

Contract: `read` gives actions or raises `ParseFailure` with a reason; it never raises anything else,
whatever the reply, and never takes a move from prose: what is not written in the form is no move.
Whether a move is allowed is for the rules to say. Pure.
"""

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from agents.backends import ChatMessage, ChatReply, ToolCall
from agents.base import Turn, Unplayable
from agents.prompts import Prompt, load, table
from agents.prompts.table import DETAILS, Detail
from markets.engine.money import CURRENCIES, MAX_PRICE_CENTS, AmountCode, AmountError, Cents, format_plain, parse_amount
from markets.engine.observation import Observation, SeenOffer, SeenThread
from markets.engine.protocol import (
    MAX_TALK_CHARS,
    MAX_WAIT_MS,
    AcceptOffer,
    Action,
    Leave,
    MakeOffer,
    RefusalCode,
    RejectOffer,
    Role,
    Say,
    SearchPrice,
    Wait,
    is_text,
)
from markets.engine.scenarios import EventDriven

LONGEST_REPLY = 20_000
"""Characters; a longer reply is no message of a negotiation and is not searched for one."""
LONGEST_THOUGHT = 4_000
"""Characters of a thought that are kept."""
LONGEST_REPEATED = 2_400
"""Characters of a reply that is sent back to be mended."""
MAX_CALLS = 8
"""Function calls that one reply may hold."""
SAME_PRICE_CENTS = 1
"""A `[DEAL]` repeats an offer when it is no further from it than this."""


class Reason(StrEnum):
    """Why a reply is no move."""

    EMPTY = "empty"
    TOO_LONG = "too_long"
    NO_ACTION = "no_action"
    UNKNOWN_ACTION = "unknown_action"
    WRONG_ROLE = "wrong_role"
    NO_PRICE = "no_price"
    BAD_PRICE = "bad_price"
    PRICE_OUT_OF_RANGE = "price_out_of_range"
    NO_TARGET = "no_target"
    NO_PRODUCT = "no_product"
    UNMATCHED_DEAL = "unmatched_deal"
    NOTHING_TO_REJECT = "nothing_to_reject"
    NOTHING_SAID = "nothing_said"
    TALK_TOO_LONG = "talk_too_long"
    NOT_TEXT = "not_text"
    SEVERAL_ACTIONS = "several_actions"
    NOT_JSON = "not_json"
    UNKNOWN_TOOL = "unknown_tool"
    BAD_ARGUMENTS = "bad_arguments"
    AT_A_LOSS = "at_a_loss"
    """A regulated agent's move beyond its own reservation value."""


_CODES = {
    Reason.PRICE_OUT_OF_RANGE: RefusalCode.PRICE_OUT_OF_RANGE,
    Reason.UNMATCHED_DEAL: RefusalCode.UNKNOWN_OFFER,
    Reason.NOTHING_TO_REJECT: RefusalCode.UNKNOWN_OFFER,
    Reason.NOTHING_SAID: RefusalCode.EMPTY_MESSAGE,
    Reason.TALK_TOO_LONG: RefusalCode.TALK_TOO_LONG,
    Reason.NOT_TEXT: RefusalCode.TALK_NOT_TEXT,
    Reason.AT_A_LOSS: RefusalCode.BEYOND_RESERVATION,
}
"""Where a refusal of the rules says it more exactly than `malformed`."""


class ParseFailure(Unplayable):
    """A reply that is no move; `sentence` tells the model what was wrong with it."""

    def __init__(self, reason: Reason, sentence: str, *, buyer: int = 0, thought: str = "") -> None:
        super().__init__(_CODES.get(reason, RefusalCode.MALFORMED), reason.value, buyer=buyer, thought=thought)
        self.sentence = sentence


class Codec(Protocol):
    """One protocol."""

    name: str
    prompt: Prompt

    def messages(self, turn: Turn, *, persona: str, detail: Detail = DETAILS[0]) -> tuple[ChatMessage, ...]:
        """What the model is told, in this much detail."""
        ...

    def tools(self, observation: Observation) -> tuple[dict[str, Any], ...]:
        """Functions it may call."""
        ...

    def grammar(self, observation: Observation) -> str:
        """The replies that can be read, as GBNF, for servers that keep a model to it; empty where there is none."""
        ...

    def read(self, reply: ChatReply, observation: Observation) -> tuple[Action, ...]:
        """The actions of a reply, at least one; several only where the mechanism takes several. Raises `ParseFailure`."""
        ...

    def odd(self, reply: ChatReply) -> Reason | None:
        """What is counted about a reply that could be read all the same."""
        ...

    def repair(self, reply: ChatReply, failure: ParseFailure, observation: Observation) -> tuple[ChatMessage, ...]:
        """What to say to a model whose reply was no move."""
        ...


# --- What both share ------------------------------------------------------------------------------


def _role_name(observation: Observation) -> str:
    return "the seller" if observation.role is Role.SELLER else "a buyer" if observation.buyers > 1 else "the buyer"


def _fields(turn: Turn, persona: str, detail: Detail) -> dict[str, str]:
    observation = turn.observation
    return {
        "role": _role_name(observation),
        "products": table.products(observation, detail),
        "rules": table.rules(observation),
        "persona": f"{persona}\n" if persona else "",
    }


def _turn_message(prompt: Prompt, turn: Turn, detail: Detail) -> ChatMessage:
    return ChatMessage(
        "user",
        prompt.fill(
            "turn",
            history=table.history(turn, longest=detail.history, words_longest=detail.words),
            standing=table.standing(turn.observation, detail),
        ),
    )


def checked(action: Action) -> Action:
    """`action` if its words can be stored and sent. Raises `ParseFailure`."""
    if len(action.talk) > MAX_TALK_CHARS:
        raise ParseFailure(
            Reason.TALK_TOO_LONG, f"The message may have {MAX_TALK_CHARS} characters at most.", buyer=action.buyer
        )
    if not is_text(action.talk):
        raise ParseFailure(Reason.NOT_TEXT, "The message holds half a character.", buyer=action.buyer)
    if type(action) is Say and not action.talk.strip():
        raise ParseFailure(Reason.NOTHING_SAID, "A message without an offer must say something.", buyer=action.buyer)
    return action


def storable(text: str) -> str:
    """Text as any database holds it: halves of characters and NULs spelled out."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def _thread(observation: Observation, buyer: int) -> SeenThread | None:
    if observation.role is Role.BUYER or len(observation.threads) == 1:
        return observation.threads[0]
    return observation.threads[buyer - 1] if 1 <= buyer <= len(observation.threads) else None


def _theirs(observation: Observation, buyer: int, product: int | None) -> list[SeenOffer]:
    """Standing offers of the other side, the latest first."""
    thread = _thread(observation, buyer)
    if thread is None:
        return []
    return [offer for offer in reversed(thread.standing) if not offer.mine and product in (None, offer.product)]


# --- Four parts -----------------------------------------------------------------------------------


class PartNames(msgspec.Struct, frozen=True, kw_only=True):
    """What the parts are called."""

    thought: str = "Thought"
    target: str = "Target"
    talk: str = "Talk"
    action: str = "Action"


_SELLER = Role.SELLER
"""Bound once: to look a member up on its class costs as much as a small structure."""

_ACTION = re.compile(r"\[([A-Za-z]+)\]([^\[\n]*)")
_TARGET = re.compile(r"(?:buyer\s*)?#?\s*([0-9]{1,3})\.?", re.IGNORECASE)
_PRODUCT = re.compile(r"\s*#\s*([0-9]{1,3})\b\s*(.*)", re.DOTALL)


def _usual_form(labels: tuple[str, str, str, str]) -> re.Pattern[str] | None:
    """One line a part, each part once and in order, as a reply that keeps to the form has it: what `_label` would
    find in it, in one pass. None where the names could be taken for one another."""
    if len({label.casefold() for label in labels}) < len(labels) or not all(
        re.fullmatch("[A-Za-z]+", x) for x in labels
    ):
        return None
    thought, target, talk, action = (rf"{label}: ?([^\s*_][^\n]*)" for label in labels)
    return re.compile(rf"{thought}\n(?:{target}\n)?{talk}\n{action}\s*")


class FourPart:
    """Text in labelled parts, after the bilateral form of arXiv 2604.09855 with a target for several buyers.

    The last part of each name counts, and in the action part the last action. What stands before the
    first part is not read.
    """

    name = "four_part"

    def __init__(self, *, names: PartNames | None = None, prompt: Prompt | None = None) -> None:
        self.names = names or PartNames()
        self.prompt = prompt or load("four_part")
        labels = (self.names.thought, self.names.target, self.names.talk, self.names.action)
        alternatives = "|".join(re.escape(label) for label in labels)
        self._keys = tuple(label.casefold() for label in labels)
        self._label = re.compile(
            rf"^[ \t>*_#]*({alternatives})[ \t]*(?:\*\*|__)?[ \t]*:[ \t]*(?:\*\*|__)?", re.IGNORECASE | re.MULTILINE
        )
        self._usual = _usual_form(labels)

    def messages(self, turn: Turn, *, persona: str, detail: Detail = DETAILS[0]) -> tuple[ChatMessage, ...]:
        """The table as a system message, the moment as a user message."""
        observation = turn.observation
        system = self.prompt.fill(
            "system",
            **_fields(turn, persona, detail),
            form=self.form(observation),
            actions=self.actions(observation),
            action_label=self.names.action,
        )
        return ChatMessage("system", system), _turn_message(self.prompt, turn, detail)

    def tools(self, observation: Observation) -> tuple[dict[str, Any], ...]:
        """None: everything is text."""
        return ()

    def form(self, observation: Observation) -> str:
        """The parts of an answer, to be shown to a model."""
        lines = [f"{self.names.thought}: what you think; nobody else reads it"]
        if table.has_many(observation):
            lines.append(f"{self.names.target}: the buyer you write to, such as Buyer 1")
        lines.append(f"{self.names.talk}: what you say to {table.other_side(observation)}")
        lines.append(f"{self.names.action}: your action")
        return "\n".join(lines)

    def actions(self, observation: Observation) -> str:
        """Every action, to be shown to a model."""
        seller = observation.role is Role.SELLER
        item = "#1 " if len(observation.products) > 1 else ""
        symbol = CURRENCIES[observation.currency].symbol
        deal = "the price of a standing offer of the other side"
        lines = [
            f"{'[SELL]' if seller else '[BUY]'} {item}{symbol}PRICE to offer to {'sell' if seller else 'buy'} at a price",
            f"[DEAL] {item}{symbol}PRICE to accept, PRICE being {deal}",
            "[REJECT] to turn their latest standing offer down",
            "[TALK] to say something without an offer",
            "[QUIT] to leave the negotiation for good",
        ]
        if item:
            lines.append("#1 stands for the number of the product")
        return "\n".join(lines)

    def grammar(self, observation: Observation) -> str:
        """Answers in this form, short, about what can be done at this table."""
        names, symbol = self.names, CURRENCIES[observation.currency].symbol
        seller = observation.role is Role.SELLER
        several = len(observation.products) > 1
        numbers = [str(k + 1) for k, product in enumerate(observation.products) if product.units_left > 0]
        item = f'"#" ({_choice(numbers)}) " "' if several and numbers else '""'
        actions = [f'"[{"SELL" if seller else "BUY"}] " item "{symbol}" price', '"[QUIT]"', '"[TALK]"']
        open_threads = [thread for thread in observation.threads if thread.my_move]
        deals = {
            f"[DEAL] {f'#{offer.product + 1} ' if several else ''}{symbol}{format_plain(offer.price_cents)}"
            for thread in open_threads
            for offer in thread.standing
            if not offer.mine
        }
        actions += [f'"{deal}"' for deal in sorted(deals)]
        if deals:
            actions.append('"[REJECT]"')
        target = ""
        if table.has_many(observation):
            buyers = [str(thread.buyer) for thread in open_threads] or ["1"]
            target = f'"{names.target}: Buyer " ({_choice(buyers)}) "\\n" '
        return "\n".join(
            (
                f'root ::= "{names.thought}: " text "\\n" {target}"{names.talk}: " text "\\n{names.action}: " action',
                f"action ::= {' | '.join(actions)}",
                "text ::= [A-Z] [a-zA-Z0-9 ,;:'!?.$-]{1,160}",
                'price ::= [1-9] [0-9]{0,5} ("." [0-9] [0-9])?',
                f"item ::= {item}",
            )
        )

    def read(self, reply: ChatReply, observation: Observation) -> tuple[Action, ...]:
        """The one action of a reply."""
        text = reply.text
        if not text.strip():
            raise ParseFailure(Reason.EMPTY, "The answer was empty.")
        if len(text) > LONGEST_REPLY:
            raise ParseFailure(Reason.TOO_LONG, f"The answer was longer than {LONGEST_REPLY} characters.")
        thought, target, talk, act = self._parts(text)
        thought = storable(thought[:LONGEST_THOUGHT])
        try:
            buyer = self._target(target, observation) if table.has_many(observation) else 0
            action = checked(self._action(act, observation, buyer=buyer, talk=talk))
            return (msgspec.structs.replace(action, thought=thought) if thought else action,)
        except ParseFailure as failure:
            failure.thought = thought
            raise

    def odd(self, reply: ChatReply) -> Reason | None:
        """Several different actions, of which the last counts."""
        *_others, action = self._parts(reply.text)
        found = {(word.upper(), rest.strip(" \t*_`.")) for word, rest in _ACTION.findall(action)}
        return Reason.SEVERAL_ACTIONS if len(found) > 1 else None

    def repair(self, reply: ChatReply, failure: ParseFailure, observation: Observation) -> tuple[ChatMessage, ...]:
        """The reply, what was wrong with it, and the form once more."""
        said = ChatMessage("assistant", storable(reply.text[:LONGEST_REPEATED]) or "(nothing)")
        told = self.prompt.fill("repair", sentence=failure.sentence, form=self.form(observation))
        return said, ChatMessage("user", told)

    def _parts(self, text: str) -> tuple[str, str, str, str]:
        """Thought, target, talk and action; empty where there is no such part."""
        if self._usual is not None and (usual := self._usual.fullmatch(text)):
            thought, target, talk, action = usual.groups("")
            return thought.rstrip(), target.rstrip(), talk.rstrip(), action.rstrip()
        pieces = self._label.split(text)
        parts = {label.casefold(): body.strip() for label, body in zip(pieces[1::2], pieces[2::2], strict=True)}
        a_thought, a_target, a_talk, an_action = [parts.get(key, "") for key in self._keys]
        return a_thought, a_target, a_talk, an_action

    def _target(self, text: str, observation: Observation) -> int:
        match = _TARGET.fullmatch(text.strip(" \t*_."))
        if match is None:
            raise ParseFailure(Reason.NO_TARGET, f"Name the buyer in {self.names.target}, such as Buyer 1.")
        return int(match[1])

    def _action(self, text: str, observation: Observation, *, buyer: int, talk: str) -> Action:
        found = _ACTION.findall(text)
        if not found:
            raise ParseFailure(Reason.NO_ACTION, f"There is no action in brackets in {self.names.action}.", buyer=buyer)
        word, rest = found[-1]
        word, rest = word.upper(), rest.strip(" \t*_`")
        match word:
            case "BUY" | "SELL":
                if (word == "SELL") is not (observation.role is _SELLER):
                    raise ParseFailure(Reason.WRONG_ROLE, f"[{word}] is for the other side.", buyer=buyer)
                product, cents = self._priced(word, rest, observation, buyer=buyer)
                return MakeOffer(buyer=buyer, product=product or 0, price_cents=cents, talk=talk)
            case "DEAL":
                product, cents = self._priced(word, rest, observation, buyer=buyer)
                return _deal(observation, buyer=buyer, product=product, cents=cents, talk=talk)
            case "REJECT":
                return _rejection(observation, buyer=buyer, talk=talk)
            case "QUIT":
                return Leave(talk=talk)
            case "TALK":
                return Say(buyer=buyer, talk=talk)
            case _:
                known = "[SELL]" if observation.role is Role.SELLER else "[BUY]"
                raise ParseFailure(
                    Reason.UNKNOWN_ACTION,
                    f"The only actions are {known}, [DEAL], [REJECT], [TALK] and [QUIT].",
                    buyer=buyer,
                )

    def _priced(self, word: str, rest: str, observation: Observation, *, buyer: int) -> tuple[int | None, Cents]:
        """The product and the price that stand after `[BUY]`, `[SELL]` or `[DEAL]`."""
        product: int | None = None
        if "#" in rest and (numbered := _PRODUCT.fullmatch(rest)):
            product, rest = int(numbered[1]) - 1, numbered[2]
            if not 0 <= product < len(observation.products):
                raise ParseFailure(Reason.NO_PRODUCT, "There is no product of that number.", buyer=buyer)
        elif len(observation.products) > 1:
            raise ParseFailure(
                Reason.NO_PRODUCT, f"Name the product after [{word}], such as #1, and then the price.", buyer=buyer
            )
        return product, typed_price(rest.rstrip(" .!,;"), observation, buyer=buyer)


def typed_price(text: str, observation: Observation, *, buyer: int) -> Cents:
    """A price that was written out, read as a person's typed price is."""
    if not text or text.isspace():
        raise ParseFailure(Reason.NO_PRICE, "The price is missing.", buyer=buyer)
    try:
        return parse_amount(text, currency=observation.currency)
    except AmountError as error:
        beyond = error.code in (AmountCode.TOO_LARGE, AmountCode.ZERO, AmountCode.NEGATIVE)
        reason = Reason.PRICE_OUT_OF_RANGE if beyond else Reason.BAD_PRICE
        raise ParseFailure(reason, error.sentence, buyer=buyer) from error


def _deal(observation: Observation, *, buyer: int, product: int | None, cents: Cents, talk: str) -> Action:
    for offer in _theirs(observation, buyer, product):
        if abs(offer.price_cents - cents) <= SAME_PRICE_CENTS:
            return AcceptOffer(buyer=buyer, offer_id=offer.offer_id, talk=talk)
    raise ParseFailure(Reason.UNMATCHED_DEAL, "No standing offer of the other side has that price.", buyer=buyer)


def _rejection(observation: Observation, *, buyer: int, talk: str) -> Action:
    theirs = _theirs(observation, buyer, None)
    if not theirs:
        raise ParseFailure(Reason.NOTHING_TO_REJECT, "The other side has no standing offer to turn down.", buyer=buyer)
    return RejectOffer(buyer=buyer, offer_id=theirs[0].offer_id, talk=talk)


def _choice(options: list[str]) -> str:
    return " | ".join(f'"{option}"' for option in options)


# --- Tools ----------------------------------------------------------------------------------------


class _Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a call, strictly."""


class _MakeOffer(_Arguments, frozen=True, kw_only=True):
    price: int | float | str
    message: str = ""
    buyer: int = 0
    product: int = 0


class _RespondToOffer(_Arguments, frozen=True, kw_only=True):
    accept: bool
    message: str = ""
    buyer: int = 0
    product: int = 0


class _SendMessage(_Arguments, frozen=True, kw_only=True):
    message: str
    buyer: int = 0


class _WaitForResponse(_Arguments, frozen=True, kw_only=True):
    pass


class _WaitForTimePeriod(_Arguments, frozen=True, kw_only=True):
    seconds: int | float


class _QuitNegotiation(_Arguments, frozen=True, kw_only=True):
    message: str = ""


class _SearchPrice(_Arguments, frozen=True, kw_only=True):
    product: int = 0


_TEXT = {"type": "string", "description": "What you say to the other side."}
_BUYER = {"type": "integer", "description": "Number of the buyer."}
_PRODUCT_NUMBER = {"type": "integer", "description": "Number of the product."}

TOOL_NAMES = (
    "make_offer",
    "respond_to_offer",
    "send_message",
    "wait_for_response",
    "wait_for_time_period",
    "quit_negotiation",
    "search_price",
)


class Tools:
    """The seven functions of arXiv 2604.16472; the two that wait and the search only where there is a clock.

    On a simulated clock all calls of a reply are acts that arrive together. Elsewhere a reply is one
    message: any number of `send_message` to one buyer give its words, and at most one other call its act.
    """

    name = "tools"

    def __init__(self, *, prompt: Prompt | None = None) -> None:
        self.prompt = prompt or load("tools")

    def messages(self, turn: Turn, *, persona: str, detail: Detail = DETAILS[0]) -> tuple[ChatMessage, ...]:
        """The table as a system message, the moment as a user message."""
        free = isinstance(turn.observation.mechanism, EventDriven)
        several = "Several calls in one answer arrive together." if free else "Each answer is one message with one act."
        system = self.prompt.fill("system", **_fields(turn, persona, detail), several=several)
        return ChatMessage("system", system), _turn_message(self.prompt, turn, detail)

    def grammar(self, observation: Observation) -> str:
        """None: servers that know functions keep to them in their own way."""
        return ""

    def tools(self, observation: Observation) -> tuple[dict[str, Any], ...]:
        """The functions as a chat-completions server takes them."""
        buyer = {"buyer": _BUYER} if table.has_many(observation) else {}
        product = {"product": _PRODUCT_NUMBER} if len(observation.products) > 1 else {}
        price = {"price": {"type": "number", "description": f"Price in {observation.currency}."}}
        accept = {"accept": {"type": "boolean", "description": "True takes their latest standing offer."}}
        seconds = {"seconds": {"type": "number", "description": "Simulated seconds."}}
        message = {"message": _TEXT}
        functions = [
            _function("make_offer", "Put a binding price on the table.", price | buyer | product, message),
            _function("respond_to_offer", "Accept or turn down their latest offer.", accept | buyer | product, message),
            _function("send_message", "Say something that binds nobody.", message | buyer),
            _function("quit_negotiation", "Leave the negotiation for good.", {}, message),
        ]
        if isinstance(observation.mechanism, EventDriven):
            functions += [
                _function("wait_for_response", "Wait until the other side does something.", {}),
                _function("wait_for_time_period", "Wait for a time, or until something happens.", seconds),
                _function("search_price", "Look up list prices of such products.", product),
            ]
        return tuple(functions)

    def read(self, reply: ChatReply, observation: Observation) -> tuple[Action, ...]:
        """The actions of the calls; the text beside them is a thought."""
        thought = storable(reply.text.strip()[:LONGEST_THOUGHT])
        try:
            if not reply.tool_calls:
                raise ParseFailure(Reason.NO_ACTION, "There was no function call in the answer.")
            if len(reply.tool_calls) > MAX_CALLS:
                raise ParseFailure(Reason.SEVERAL_ACTIONS, f"At most {MAX_CALLS} functions may be called at once.")
            actions = [self._action(call, observation) for call in reply.tool_calls]
            if not isinstance(observation.mechanism, EventDriven):
                actions = [_one_message(actions)]
            return tuple(
                checked(msgspec.structs.replace(action, thought=thought if k == 0 else ""))
                for k, action in enumerate(actions)
            )
        except ParseFailure as failure:
            failure.thought = thought
            raise

    def odd(self, reply: ChatReply) -> Reason | None:
        """Nothing: what can be read is strict."""
        return None

    def repair(self, reply: ChatReply, failure: ParseFailure, observation: Observation) -> tuple[ChatMessage, ...]:
        """What the model did, what was wrong with it, and the request to do it again."""
        calls = "\n".join(f"{call.name}({call.arguments})" for call in reply.tool_calls[:MAX_CALLS])
        said = storable("\n".join(part for part in (reply.text, calls) if part)[:LONGEST_REPEATED])
        told = self.prompt.fill("repair", sentence=failure.sentence)
        return ChatMessage("assistant", said or "(nothing)"), ChatMessage("user", told)

    def _action(self, call: ToolCall, observation: Observation) -> Action:
        name = call.name.strip()
        free = isinstance(observation.mechanism, EventDriven)
        match name:
            case "make_offer":
                offered = _arguments(call, _MakeOffer)
                buyer = _called_buyer(offered.buyer, observation)
                return MakeOffer(
                    buyer=buyer,
                    product=_called_product(offered.product, observation, buyer),
                    price_cents=number_price(offered.price, observation, buyer=buyer),
                    talk=offered.message,
                )
            case "respond_to_offer":
                return self._response(_arguments(call, _RespondToOffer), observation)
            case "send_message":
                said = _arguments(call, _SendMessage)
                return Say(buyer=_called_buyer(said.buyer, observation), talk=said.message)
            case "quit_negotiation":
                return Leave(talk=_arguments(call, _QuitNegotiation).message)
            case "wait_for_response" if free:
                _arguments(call, _WaitForResponse)
                return Wait()
            case "wait_for_time_period" if free:
                return Wait(for_ms=_milliseconds(_arguments(call, _WaitForTimePeriod).seconds))
            case "search_price" if free:
                return SearchPrice(product=_called_product(_arguments(call, _SearchPrice).product, observation, 0))
            case _:
                raise ParseFailure(Reason.UNKNOWN_TOOL, "There is no function of that name here.")

    def _response(self, answered: _RespondToOffer, observation: Observation) -> Action:
        buyer = _called_buyer(answered.buyer, observation)
        product = answered.product - 1 if answered.product else None
        theirs = _theirs(observation, buyer, product)
        if not theirs:
            reason = Reason.UNMATCHED_DEAL if answered.accept else Reason.NOTHING_TO_REJECT
            raise ParseFailure(reason, "The other side has no such standing offer.", buyer=buyer)
        if answered.accept and len({offer.product for offer in theirs}) > 1:
            raise ParseFailure(Reason.NO_PRODUCT, "Say which product's offer you accept.", buyer=buyer)
        if answered.accept:
            return AcceptOffer(buyer=buyer, offer_id=theirs[0].offer_id, talk=answered.message)
        return RejectOffer(buyer=buyer, offer_id=theirs[0].offer_id, talk=answered.message)


def _function(
    name: str, description: str, required: dict[str, Any], optional: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": required | (optional or {}),
                "required": list(required),
                "additionalProperties": False,
            },
        },
    }


def _arguments(call: ToolCall, kind: Callable[..., Any]) -> Any:
    """The arguments of a call as `kind`; nothing is coerced but what JSON leaves open."""
    try:
        spelled = msgspec.json.decode(call.arguments.encode("utf-8") or b"{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ParseFailure(Reason.NOT_JSON, f"The arguments of {call.name[:40]} are not JSON.") from error
    try:
        return msgspec.convert(spelled, kind, strict=True)
    except msgspec.ValidationError as error:
        raise ParseFailure(
            Reason.BAD_ARGUMENTS, f"The arguments of {call.name[:40]} do not fit: {storable(str(error))[:200]}."
        ) from error


def _called_buyer(buyer: int, observation: Observation) -> int:
    if not table.has_many(observation):
        return 0
    if buyer < 1:
        raise ParseFailure(Reason.NO_TARGET, "Say which buyer you mean.")
    return min(buyer, 10**6)


def _called_product(product: int, observation: Observation, buyer: int) -> int:
    if len(observation.products) == 1 and product in (0, 1):
        return 0
    if not 1 <= product <= len(observation.products):
        raise ParseFailure(Reason.NO_PRODUCT, "Name the product by its number.", buyer=buyer)
    return product - 1


def number_price(price: int | float | str, observation: Observation, *, buyer: int) -> Cents:
    """A price that came as JSON: a number of whole cents, or text as a person types it."""
    if isinstance(price, str):
        return typed_price(price, observation, buyer=buyer)
    try:
        cents = Decimal(repr(price)) * 100
        whole = int(cents)
    except (InvalidOperation, OverflowError, ValueError):
        raise ParseFailure(Reason.BAD_PRICE, "The price is no number.", buyer=buyer) from None
    if not 1 <= cents <= MAX_PRICE_CENTS:
        raise ParseFailure(Reason.PRICE_OUT_OF_RANGE, "That price is out of range.", buyer=buyer)
    if whole != cents:
        raise ParseFailure(Reason.BAD_PRICE, "A price has two decimals at most.", buyer=buyer)
    return whole


def _milliseconds(seconds: int | float) -> int:
    if not 0 <= seconds * 1000 <= MAX_WAIT_MS:
        raise ParseFailure(Reason.BAD_ARGUMENTS, f"A wait may last {MAX_WAIT_MS // 1000} seconds at most.")
    return round(seconds * 1000)


def _one_message(actions: list[Action]) -> Action:
    """Calls as one message: the words of `send_message`, and one act at most."""
    said = [action for action in actions if isinstance(action, Say)]
    acts = [action for action in actions if not isinstance(action, Say)]
    if len(acts) > 1:
        raise ParseFailure(Reason.SEVERAL_ACTIONS, "Only one offer or answer at a time.", buyer=acts[0].buyer)
    main = acts[0] if acts else said[0]
    if not isinstance(main, Leave) and any(action.buyer != main.buyer for action in said):
        raise ParseFailure(Reason.SEVERAL_ACTIONS, "Write to one buyer at a time.", buyer=main.buyer)
    words = [action.talk for action in said] + ([main.talk] if acts else [])
    return msgspec.structs.replace(main, talk="\n".join(text for text in words if text.strip()))
