"""An agent whose moves a language model makes, in one of the protocols of `agents.parsing`.

The model is told the table, answers, and its answer is read strictly. One that cannot be read is sent
back once with what was wrong; if the second cannot be read either, the move is refused and counted
(`Unplayable`). A regulated agent's move beyond its own reservation value counts as one that cannot be
read, so it never reaches the table. A prompt tells less detail, ever less of the past first, where the back end
says that it can read only so much. A back end that does not answer, and a table that is too big for one (`too_big`, which is not
asked), raise `BackendError`: whoever
runs the turn tries again or plays the default act. Pure.
"""

import re
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from agents import calls
from agents.backends import BackendError, ChatMessage, ChatReply, ChatRequest, configured
from agents.base import Turn
from agents.narrator import names_itself
from agents.parsing import Codec, ParseFailure, Reason
from agents.prompts.table import DETAILS
from markets.engine.observation import Observation
from markets.engine.protocol import AcceptOffer, Action, MakeOffer, Role

MAX_ANSWER_TOKENS = 320
REPAIR_TOKENS = 200
"""For the request to mend an answer, beside the answer itself."""
TEMPERATURE = 0.7


class ModelAgent:
    """A model on a chair; one object may sit on many."""

    def __init__(
        self,
        *,
        backend: str,
        codec: Codec,
        regulated: bool = False,
        persona: str = "",
        temperature: float = TEMPERATURE,
        max_tokens: int = MAX_ANSWER_TOKENS,
    ) -> None:
        self._backend = backend
        self._codec = codec
        self._regulated = regulated
        self._persona = persona
        self._temperature = temperature
        self._max_tokens = max_tokens

    def act(self, turn: Turn) -> Action:
        """The model's move. Raises `Unplayable` or `BackendError`."""
        return self.act_batch(turn)[0]

    def act_batch(self, turn: Turn) -> Sequence[Action]:
        """The model's moves: one, but on a simulated clock, where one answer may hold several."""
        messages = self._told(turn)
        asked = self._ask(turn, messages, "move")
        try:
            return self._read(asked, turn.observation)
        except ParseFailure as failure:
            again = (*messages, *self._codec.repair(asked.reply, failure, turn.observation))
            return self._read(self._ask(turn, again, "repair"), turn.observation)

    def _told(self, turn: Turn) -> tuple[ChatMessage, ...]:
        """The prompt in as much detail as the back end can read, an answer and its repair beside it."""
        context = next((config.context_tokens for config in configured() if config.name == self._backend), None)
        tools = self._codec.tools(turn.observation)
        for detail in DETAILS:
            messages = self._codec.messages(turn, persona=self._persona, detail=detail)
            if context is None:
                break
            told = sum(most_tokens(message.content) for message in messages)
            called = most_tokens(msgspec.json.encode(tools).decode()) if tools else 0
            if told + called + 2 * self._max_tokens + REPAIR_TOKENS <= context:
                break
        else:  # Told as tersely as can be, there is no room for a repair; if there is none for an answer, why ask?
            needed = told + called + self._max_tokens
            if context is not None and needed > context:
                self._refuse(turn, messages, needed, context)
        return messages

    def _refuse(self, turn: Turn, messages: tuple[ChatMessage, ...], needed: int, context: int) -> NoReturn:
        error = BackendError(
            "too_big",
            f"This table may need {needed:,} tokens at its tersest, and the back end reads {context:,}: it is not asked.",
        )
        request = self._request(turn, messages, "move")
        calls.not_answered(self._backend, request, error, purpose="move", prompt=self._codec.prompt.label)
        raise error

    def _request(self, turn: Turn, messages: tuple[ChatMessage, ...], purpose: str) -> ChatRequest:
        return ChatRequest(
            messages=messages,
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            seed=turn.chance.getrandbits(31) + (purpose == "repair"),
            tools=self._codec.tools(turn.observation),
            grammar=self._codec.grammar(turn.observation),
        )

    def _ask(self, turn: Turn, messages: tuple[ChatMessage, ...], purpose: str) -> calls.Asked:
        request = self._request(turn, messages, purpose)
        return calls.ask(self._backend, request, purpose=purpose, prompt=self._codec.prompt.label)

    def _read(self, asked: calls.Asked, observation: Observation) -> tuple[Action, ...]:
        try:
            actions = self._allowed(asked.reply, observation)
        except ParseFailure as failure:
            asked.note(failure.reason, failure.sentence)
            raise
        naming = [
            action for action in actions if names_itself(action.talk, model=asked.reply.model or asked.asked_model)
        ]
        if naming:  # Said and counted: its games are no blind ones.
            asked.note("names_itself", "It gave away that a model speaks.", used=True)
        elif odd := self._codec.odd(asked.reply):
            asked.note(odd.value, "It wrote several actions; the last counts.", used=True)
        else:
            asked.note()
        return actions

    def _allowed(self, reply: ChatReply, observation: Observation) -> tuple[Action, ...]:
        return tuple(allowed(self._codec, reply, observation, regulated=self._regulated))


def allowed(codec: Codec, reply: ChatReply, observation: Observation, *, regulated: bool) -> Sequence[Action]:
    """What a reply does. Raises `ParseFailure` where it cannot be read, or is beyond what is regulated."""
    actions = codec.read(reply, observation)
    if regulated:
        for action in actions:
            if loses(action, observation):
                limit = "costs you" if observation.role is Role.SELLER else "is worth to you"
                raise ParseFailure(
                    Reason.AT_A_LOSS,
                    f"That price would lose you money: compare it with what it {limit}.",
                    buyer=action.buyer,
                    thought=actions[0].thought,
                )
    return actions


_ONE_EACH = re.compile(r"[^A-Za-z ]")
LETTERS_PER_TOKEN = 3.2
"""Of English and names, for a small vocabulary; on the safe side."""


def most_tokens(text: str) -> int:
    """How many tokens a text is at most, as far as one can say without the model's tokenizer: a byte each for figures,
    marks and other scripts."""
    others = sum(len(mark.encode()) for mark in _ONE_EACH.findall(text))
    return others + round(len(_ONE_EACH.sub("", text)) / LETTERS_PER_TOKEN)


def loses(action: Action, observation: Observation) -> bool:
    """Whether an offer or acceptance is beyond the own reservation value."""
    match action:
        case MakeOffer():
            product, cents = action.product, action.price_cents
        case AcceptOffer():
            threads = [thread for thread in observation.threads if action.buyer in (0, thread.buyer)]
            offers = [offer for thread in threads for offer in thread.offers if offer.offer_id == action.offer_id]
            if not offers:
                return False
            product, cents = offers[0].product, offers[0].price_cents
        case _:
            return False
    return observation.surplus_cents(product=product, price_cents=cents) < 0
