"""A strategy that decides and a language model that speaks for it (after Xia et al. 2024).

The model is told the move, never the own reservation value, and puts it into words. What it writes is
checked (`fault`): it may name no other price, contradict no move, tell of no limit, of no model and
of no instruction. Words that fail, or a back end that does not answer, are replaced by a template's
and the reason is reported; the move is the strategy's in any case. A small model does not speak
freely but chooses among sentences that fit (`agents.phrasebook`). Pure.
"""

import re
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from agents import calls, phrasebook
from agents.backends import BackendError, ChatMessage, ChatRequest
from agents.base import Agent, Turn, batch
from agents.prompts import load, table
from agents.quoting import as_data
from agents.scripted.talk import short_name, speak
from markets.engine.money import Cents, format_amount
from markets.engine.observation import Observation, SeenThread
from markets.engine.protocol import AcceptOffer, Action, Leave, MakeOffer, RejectOffer, Role, Say, is_text
from markets.engine.talk_prices import ReadingKind, find_prices

LONGEST_WORDS = 400
MAX_ANSWER_TOKENS = 96
TEMPERATURE = 0.8
LONGEST_HISTORY = 1_600


class Speech(StrEnum):
    """How a model speaks."""

    FREE = "free"
    PHRASEBOOK = "phrasebook"
    """It picks its way through a grammar of sentences."""


class Fault(StrEnum):
    """Why words are not used."""

    EMPTY = "empty"
    TOO_LONG = "too_long"
    NOT_TEXT = "not_text"
    MARKUP = "markup"
    OTHER_PRICE = "other_price"
    OTHER_NUMBER = "other_number"
    LEAK = "leak"
    CONTRADICTION = "contradiction"
    OTHER_ROLE = "other_role"
    NAMES_ITSELF = "names_itself"
    NOT_SPOKEN = "not_spoken"
    """Tells of the conversation instead of taking part in it."""
    NOT_IN_GRAMMAR = "not_in_grammar"


class Narrator:
    """A strategy with a model for a voice; one object may sit on many chairs."""

    def __init__(
        self,
        *,
        strategy: Agent,
        backend: str,
        speech: Speech = Speech.FREE,
        persona: str = "",
        temperature: float = TEMPERATURE,
    ) -> None:
        self._strategy = strategy
        self._backend = backend
        self._speech = speech
        self._persona = persona
        self._temperature = temperature

    def act(self, turn: Turn) -> Action:
        """The strategy's move with the model's words."""
        return self._spoken(self._strategy.act(turn), turn)

    def act_batch(self, turn: Turn) -> Sequence[Action]:
        """The strategy's moves; the first that is heard carries the words."""
        actions = list(batch(self._strategy, turn))
        for place, action in enumerate(actions):
            if isinstance(action, MakeOffer | AcceptOffer | RejectOffer | Say | Leave):
                actions[place] = self._spoken(action, turn)
                break
        return actions

    def _spoken(self, action: Action, turn: Turn) -> Action:
        words = self._words(action, turn) or speak(observation=turn.observation, action=action, chance=turn.words)
        return msgspec.structs.replace(action, talk=words)

    def _words(self, action: Action, turn: Turn) -> str:
        """The model's words, or none where it gave none that can be used."""
        if self._speech is Speech.PHRASEBOOK:
            book = phrasebook.open_for(turn, action)
            prompt, messages, grammar = load("phrasebook"), _small_messages(turn, action), book.grammar
        else:
            book, grammar = None, ""
            prompt, messages = load("narrator"), _messages(turn, action, self._persona)
        request = ChatRequest(
            messages=messages,
            max_tokens=MAX_ANSWER_TOKENS,
            temperature=self._temperature,
            seed=turn.words.getrandbits(31),
            grammar=grammar,
        )
        try:
            asked = calls.ask(self._backend, request, purpose="words", prompt=prompt.label)
        except BackendError:
            return ""
        words = tidy(asked.reply.text)
        found = fault(words, action, turn.observation, model=asked.reply.model or asked.asked_model)
        if book is not None and words not in book:
            found = found or Fault.NOT_IN_GRAMMAR
        if found is not None:
            asked.note(found.value, "Replaced by a template.")
            return ""
        asked.note()
        if book is None and isinstance(action, MakeOffer) and not _names(words, turn.observation):
            return f"{words} {_price_sentence(action, turn.observation)}"
        return words


# --- What the model is told -----------------------------------------------------------------------


def _thread(observation: Observation, action: Action) -> SeenThread:
    """The conversation that the words go to."""
    if observation.role is Role.BUYER or len(observation.threads) == 1:
        return observation.threads[0]
    return next((thread for thread in observation.threads if thread.buyer == action.buyer), observation.threads[0])


def _messages(turn: Turn, action: Action, persona: str) -> tuple[ChatMessage, ...]:
    observation = turn.observation
    prompt = load("narrator")
    thread = _thread(observation, action)
    product = action.product if isinstance(action, MakeOffer) else 0
    system = prompt.fill(
        "system",
        role="the seller" if observation.role is Role.SELLER else "the buyer",
        item=table.name_of_product(observation, product),
        other=table.other_side(observation),
        persona=f"{persona}\n" if persona else "",
    )
    history = table.history(turn, longest=LONGEST_HISTORY, thread=thread.buyer)
    return ChatMessage("system", system), ChatMessage(
        "user", prompt.fill("turn", history=history, move=_move(action, observation))
    )


def _small_messages(turn: Turn, action: Action) -> tuple[ChatMessage, ...]:
    observation = turn.observation
    prompt = load("phrasebook")
    heard = table.last_heard(turn, _thread(observation, action))
    system = prompt.fill(
        "system",
        role="a friendly seller" if observation.role is Role.SELLER else "an interested buyer",
        other=table.other_side(observation),
    )
    return ChatMessage("system", system), ChatMessage(
        "user", prompt.fill("turn", heard=as_data(heard, longest=200) or "Hello.")
    )


def _move(action: Action, observation: Observation) -> str:
    other = table.other_side(observation)
    match action:
        case MakeOffer():
            price = format_amount(action.price_cents, observation.currency)
            what = table.name_of_product(observation, action.product)
            verb = "sell" if observation.role is Role.SELLER else "buy"
            return f"you offer to {verb} {what} for exactly {price}."
        case AcceptOffer():
            price = format_amount(_price_of(action, observation) or 0, observation.currency)
            return f"you accept the offer of {price}: it is a deal."
        case RejectOffer():
            return f"you turn down the latest offer of {other}. Name no price."
        case Leave():
            return "you leave the negotiation for good. Name no price."
        case _:
            return f"you make no offer; ask {other} for one. Name no price."


def _price_of(action: AcceptOffer | RejectOffer, observation: Observation) -> Cents | None:
    for offer in _thread(observation, action).offers:
        if offer.offer_id == action.offer_id:
            return offer.price_cents
    return None


def _price_sentence(action: MakeOffer, observation: Observation) -> str:
    price = format_amount(action.price_cents, observation.currency)
    return f"My price is {price}." if observation.role is Role.SELLER else f"I offer {price}."


# --- What it may say ------------------------------------------------------------------------------

_LABEL = re.compile(r"^\s*(?:message|talk|reply|answer|seller|buyer|me|you)\s*:\s*", re.IGNORECASE)

_LEAK = re.compile(
    r"\b(?:my|our)\s+(?:absolute\s+|own\s+|true\s+|real\s+|private\s+|secret\s+)*"
    r"(?:limits?|minimum|maximum|max|min|costs?|reservation|bottom[ -]line|walk[ -]?away|valuation|budget|margin|profits?)\b"
    r"|\b(?:reservation (?:price|value)|break[- ]even)\b"
    r"|\b(?:lowest|least|highest|most) (?:price )?(?:that )?(?:i|we)(?: can| could|'d| would| am| will|'ll)\b"
    r"|\b(?:it |this |that )?(?:cost|costs) me\b"
    r"|\bworth (?:only |just |about |exactly )?(?:[^ ]+ )?to me\b"
    r"|\bi (?:paid|bought (?:it|this|that) for)\b",
    re.IGNORECASE,
)
_ITSELF = re.compile(
    r"\b(?:an? ai|a\.i\.|artificial intelligence|language model|llm|chat ?bots?|gpt|smollm|qwen|llama|gemini|claude|mistral"
    r"|as an assistant|virtual assistant|my (?:instructions|prompt|programming|training)|system prompt)\b",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\bthe (?:buyer|seller)(?:'s)? (?:wrote|writes|said|says|saying|replied|replies|asked|asks|explained|smiled|message)\b"
    r"|\b(?:here(?:'s| is)|this is) (?:the|a|my)(?: possible)? (?:message|reply|response)\b|\byour move\b"
    r"|\bthe conversation so far\b",
    re.IGNORECASE,
)
_AGREES = re.compile(
    r"\b(?:it'?s|it is|that'?s|we have|we'?ve got|you have|you'?ve got) a deal\b|\b(?:i|we) accept\b|\bagreed\b"
    r"|\bsold\b|\bdeal[!.]|^deal\b|\bit is yours[.!]|\bit'?s yours[.!]|\bi'?ll take it\b",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"\b(?:no deal|i (?:can(?:no|')t|cannot|won'?t|will not) (?:accept|take|do|agree)|too (?:low|high|much|little|expensive)"
    r"|i (?:must |have to )?(?:decline|refuse|reject)|not (?:enough|interested)|no,? thanks?)\b",
    re.IGNORECASE,
)
_LEAVES = re.compile(r"\b(?:goodbye|good bye|i(?:'m| am) (?:out|leaving)|i (?:will |'ll )?walk away)\b", re.IGNORECASE)
_SELLER_ONLY = re.compile(r"\b(?:i(?:'m| am) selling|i(?:'d| would)? sell|my asking price)\b", re.IGNORECASE)
_BUYER_ONLY = re.compile(
    r"\b(?:i(?:'d| would| could| can|'ll| will)? (?:pay|buy)|i(?:'m| am) (?:buying|a buyer|the buyer))\b", re.IGNORECASE
)
_CONDITIONAL = re.compile(r"\b(?:if|would|could|can we|do we|have we|shall we|make it a)\b|\?", re.IGNORECASE)
_DIGITS = re.compile(r"\d")


def names_itself(words: str, *, model: str) -> bool:
    """Whether words give away that a model speaks, or which."""
    return bool(_ITSELF.search(words)) or bool(model and model.casefold() in words.casefold())


def tidy(text: str) -> str:
    """A model's answer without a label, quotation marks around it, or lines."""
    words = " ".join(_LABEL.sub("", text.strip()).split())
    for opening, closing in (('"', '"'), ("“", "”"), ("'", "'")):
        if len(words) > 2 and words.startswith(opening) and words.endswith(closing):
            words = words[1:-1].strip()
    return words


def fault(words: str, action: Action, observation: Observation, *, model: str = "") -> Fault | None:
    """Why `words` may not go with `action`; None where they may."""
    if not words:
        return Fault.EMPTY
    if len(words) > LONGEST_WORDS:
        return Fault.TOO_LONG
    if not is_text(words):
        return Fault.NOT_TEXT
    words = _without_titles(words, observation)
    if re.search(r"[<>{}\[\]|]|\*\*|```|^#", words):
        return Fault.MARKUP
    if names_itself(words, model=model):
        return Fault.NAMES_ITSELF
    if _TELLS.search(words):
        return Fault.NOT_SPOKEN
    if _LEAK.search(words):
        return Fault.LEAK
    if wrong := _wrong_amount(words, action, observation):
        return wrong
    foreign = _SELLER_ONLY if observation.role is Role.BUYER else _BUYER_ONLY
    if foreign.search(words):
        return Fault.OTHER_ROLE
    return Fault.CONTRADICTION if _contradicts(words, action) else None


def _wrong_amount(words: str, action: Action, observation: Observation) -> Fault | None:
    """No amount but the move's, and no other figure than those of the product's own name."""
    match action:
        case MakeOffer():
            allowed: Cents | None = action.price_cents
        case AcceptOffer():
            allowed = _price_of(action, observation)
        case _:
            allowed = None
    reading = find_prices(words, currency=observation.currency)
    for mention in reading.mentions:
        if mention.kind is not ReadingKind.NON_PRICE and mention.cents != allowed:
            return Fault.OTHER_PRICE
        if isinstance(action, MakeOffer) and mention.kind in (ReadingKind.NEGATED, ReadingKind.RANGE):
            return Fault.CONTRADICTION
    rest = words
    if allowed is not None:
        symbol_price = format_amount(allowed, observation.currency)
        for written in (symbol_price, symbol_price.removesuffix(".00")):
            rest = re.sub(rf"{re.escape(written)}(?![\d.,]*\d)", " ", rest)
    for mention in reading.mentions:
        if mention.cents is not None and mention.cents == allowed and mention.kind is not ReadingKind.NON_PRICE:
            rest = rest.replace(words[slice(*mention.span)], " ")
    return Fault.OTHER_NUMBER if _DIGITS.search(rest) else None


def _without_titles(words: str, observation: Observation) -> str:
    """Words without the names of the products, which may hold figures and even prices."""
    for product in observation.products:
        for name in (" ".join(product.title.split()), as_data(product.title, longest=60), short_name(product.title)):
            if name:
                words = words.replace(name, "it")
    return words


def _contradicts(words: str, action: Action) -> bool:
    match action:
        case AcceptOffer():
            return bool(_REFUSES.search(words) or _LEAVES.search(words))
        case Leave():
            return bool(_AGREES.search(words))
        case _:
            agrees = any(
                _AGREES.search(sentence) and not _CONDITIONAL.search(sentence)
                for sentence in re.split(r"(?<=[.!?])\s+", words)
            )
            return agrees or bool(_LEAVES.search(words))


def _names(words: str, observation: Observation) -> bool:
    """Whether an amount is named."""
    mentions = find_prices(words, currency=observation.currency).mentions
    return any(mention.kind is not ReadingKind.NON_PRICE for mention in mentions)
