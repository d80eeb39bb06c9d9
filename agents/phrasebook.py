"""A phrase book: the sentences that a small model may put together, as a grammar that it cannot leave.

The embedded model has 135 million parameters and cannot hold a conversation of its own (measured in
`docs/language-models.md`). With a phrase book the rules here take what was heard for one of a few
kinds of remark, offer openings that answer such a remark and sentences that go with the move, and the
model picks its way through them, word by word, conditioned on what was said. So whatever it picks is
an answer, names the move's price and no other, and claims nothing about the goods.

English alone. Here: the openings, the grammar. Not here: what a remark is taken for
(`agents.remarks`), asking the model, or the move's sentences (`agents.scripted.talk`). Pure.
"""

import hashlib
import random
import re

from agents.base import Turn
from agents.prompts import table
from agents.remarks import Heard, Remark, hear
from agents.scripted.talk import filled, sentences, short_name
from markets.engine.observation import Observation
from markets.engine.protocol import AcceptOffer, Action, Leave, MakeOffer, Role

VERSION = "3"
"""Of the sentences and the rules for remarks; a narrator's version holds it. A test has the sentences' digest."""

_BOTH: dict[Remark, tuple[str, ...]] = {
    Remark.INSTRUCTION: (
        "I would rather talk about the {item}.",
        "Let us stay with the {item}.",
        "I am only here about the {item}.",
        "That has nothing to do with the {item}.",
    ),
    Remark.PROBE: (
        "That I would rather keep to myself.",
        "I would rather not say how far I can go.",
        "I am sure you understand that I do not say that.",
        "I would not like to say how far I can go.",
    ),
    Remark.INSULT: (
        "I am sorry that you see it that way.",
        "No offence was meant.",
        "I do mean it in good faith.",
        "Let us stay friendly.",
    ),
    Remark.THREAT: (
        "I see that you mean it.",
        "I understand where you stand.",
        "That is up to you, of course.",
        "I would be sorry to see this end here.",
    ),
    Remark.DELIVERY: (
        "We can surely find a way that suits us both.",
        "The handover is easy to arrange.",
        "I am flexible about when and where.",
        "Once we agree, the handover is quickly arranged.",
    ),
    Remark.THANKS: ("You are welcome.", "My pleasure.", "And thank you for your time.", "Thank you as well."),
    Remark.WELL_BEING: ("I am fine, thank you.", "All is well here, thanks.", "Very well, thank you for asking."),
    Remark.UNSURE: ("That is all right.", "That is fine, no matter.", "No problem."),
    Remark.DEAL_ASKED: ("Not quite yet.", "We are nearly there.", "Almost, I would say."),
    Remark.HESITATION: (
        "Take the time you need.",
        "No need to rush.",
        "Think it over by all means.",
    ),
    Remark.AGREEMENT: (
        "Good, then let me put it in figures.",
        "I am glad that we understand each other.",
        "Good to hear.",
        "Good, we are getting there.",
    ),
    Remark.REFUSAL: (
        "I see that this does not work for you.",
        "Fair enough.",
        "That is a clear answer.",
        "All right, I respect that.",
    ),
    Remark.GREETING: ("Hello to you too.", "Hi, good to meet you.", "Hello, nice of you to write.", "Hi there."),
    Remark.OTHER: ("I hear you.", "I see.", "I understand."),
    Remark.URGENCY: (
        "That timing would suit me.",
        "The timing would be fine with me.",
        "I could do that, as far as the timing goes.",
    ),
    Remark.REASON: (
        "I would rather not go into the reasons.",
        "The reasons are a long story.",
        "The reasons do not matter much, I think.",
    ),
    Remark.BARTER: (
        "I would rather keep it to one payment.",
        "A plain price is easier for both of us.",
        "I would prefer plain money.",
    ),
    Remark.ANY_QUESTIONS: (
        "No questions for now, thank you.",
        "I know enough about it, thank you.",
        "Thank you, I have no questions just now.",
    ),
    Remark.ASKS_PRICE: ("Since you ask, here is my price.", "Gladly, here is a figure.", "Let me name a price, then."),
}
_SELLER: dict[Remark, tuple[str, ...]] = {
    Remark.HARDSHIP: (
        "I understand that money is tight.",
        "I can see that it is not easy.",
        "I would like to make it possible for you.",
        "I do not want to make it hard for you.",
    ),
    Remark.FAMILY: (
        "That is nice to hear.",
        "That is good to hear.",
        "That sounds lovely.",
    ),
    Remark.COMPARISON: (
        "There are others, that is true.",
        "I know that there are others.",
        "You may well find another one.",
        "This one is here now, though.",
    ),
    Remark.AVAILABLE: ("It is still here.", "It is still for sale.", "You can still have it."),
    Remark.INTEREST: (
        "I am glad that you are interested.",
        "Good to hear that it interests you.",
        "Thank you for your interest.",
    ),
    Remark.WRONG_SIDE: (
        "I am the one who sells here.",
        "I think it is the other way round: I sell.",
        "It is you who would buy it, I think.",
    ),
    Remark.CONDITION: (
        "All I can say about that is in the description.",
        "You are welcome to look at it first.",
        "For that I can only point you to the description.",
        "I can only go by the description there.",
    ),
    Remark.CONCESSION: (
        "Thank you for coming closer.",
        "I see that you are moving, thank you.",
        "We are getting closer.",
        "I appreciate that step.",
    ),
    Remark.HOLDING: (
        "I see that this is as far as you would go.",
        "I understand that you would rather not go higher.",
        "I see where you would like to stay.",
    ),
    Remark.COMPLAINT: (
        "I see that it is more than you had in mind.",
        "I know that it is not little money.",
        "I understand that you would like to pay less.",
        "I can see why you hesitate at that price.",
    ),
    Remark.ROOM: (
        "I am open to talking about the price.",
        "We can talk about the price.",
        "I am willing to talk about the price.",
    ),
    Remark.PRAISE: ("Thank you, I am glad you like it.", "Thanks for the kind words.", "I am glad to hear that."),
    Remark.QUESTION: (
        "I would have to check that.",
        "I cannot tell you that offhand.",
        "A fair question, but I would have to look into it.",
    ),
    Remark.OFFER: ("Thank you for the offer.", "Thanks for naming a price.", "Good to have a number from you."),
}
_BUYER: dict[Remark, tuple[str, ...]] = {
    Remark.HARDSHIP: ("I see your side of it.", "I do not want to be unfair.", "I understand your situation."),
    Remark.FAMILY: ("Good to know.", "Thanks for telling me.", "I see, thank you."),
    Remark.COMPARISON: (
        "There are others, that is true.",
        "I have looked around a little.",
        "It is yours that I am interested in.",
    ),
    Remark.INTEREST: (
        "Yes, I am interested.",
        "It interests me, yes.",
        "I would like to have it, yes.",
    ),
    Remark.WRONG_SIDE: (
        "I am the one who would buy it.",
        "I think it is the other way round: I would be the buyer.",
        "It is you who sells it, I think.",
    ),
    Remark.CONDITION: (
        "I see, thank you for the details.",
        "Thanks for telling me about it.",
        "Good to know, thank you.",
        "That is good to know.",
    ),
    Remark.CONCESSION: (
        "Thank you for coming closer.",
        "I see that you are moving, thank you.",
        "We are getting closer.",
        "I appreciate that step.",
    ),
    Remark.HOLDING: (
        "I see that you would rather not go lower.",
        "I understand that you are firm there.",
        "I see where you would like to stay.",
    ),
    Remark.COMPLAINT: (
        "I see that you had more in mind.",
        "I understand that you would like more.",
        "I know that it is worth something to you.",
        "I did not mean to offend you with my offer.",
    ),
    Remark.ROOM: (
        "Good to hear that we can talk about the price.",
        "I am glad that there is room to talk.",
        "Good, then let us talk about the price.",
    ),
    Remark.QUESTION: (
        "Let us come to that once we have a price.",
        "I would rather settle the price first.",
        "A fair question, but the price comes first for me.",
    ),
    Remark.PRAISE: ("I do like it.", "It does look good.", "I can see that it is a good one."),
    Remark.OFFER: ("Thank you for the price.", "Thanks for naming a price.", "Good to have a number from you."),
}
_FAR: dict[Role, tuple[str, ...]] = {
    Role.SELLER: (
        "Not quite that low, I am afraid.",
        "That is less than I was hoping for.",
        "I am not there yet.",
        "We are still a bit apart.",
    ),
    Role.BUYER: (
        "Not quite that much, I am afraid.",
        "That is more than I was hoping for.",
        "I am not there yet.",
        "We are still a bit apart.",
    ),
}
"""Where they named a price of their own and the move's is better for this side."""
_ASKED_ABOUT = (
    "As for the {topic}, I can only point you to the description.",
    "About the {topic} I know no more than the description says.",
    "For the {topic}, please have a look at the description.",
)

_AWKWARD = re.compile(
    r"^(?:a|an|the|my|brand|for|great|coming|new|beautiful|charming)\b|[!$*~\"“”:/]|\b(?:on|in|with|for|at|and|the|a|to|of|in:)$",
    re.IGNORECASE,
)
LONGEST_NAME = 26
"""Characters of a title that is said in a sentence where there is another way."""

_ALREADY_OPEN = re.compile(
    r"^(?:thanks|thank you|i hear you|good to have|happy to|i like|i am interested|hello)\b", re.IGNORECASE
)
"""Beginnings of a move's sentence that would follow badly on an opening."""

CHOICE = 3
"""Openings, and sentences for the move, that the model may choose among: drawn anew each turn, so that a
model with one favourite does not say the same in every room."""


def digest() -> str:
    """Of every sentence of the book that is its own."""
    said = (_BOTH, _SELLER, _BUYER, _FAR, _ASKED_ABOUT)
    return hashlib.sha256(repr(said).encode()).hexdigest()


class Book:
    """The openings and sentences that fit one moment."""

    def __init__(self, openings: tuple[str, ...], moves: tuple[str, ...]) -> None:
        self.openings = openings
        self.moves = moves

    @property
    def grammar(self) -> str:
        """The book as GBNF."""
        moves = " | ".join(_literal(sentence) for sentence in self.moves)
        if not self.openings:
            return f"root ::= {moves}"
        openings = " | ".join(_literal(f"{sentence} ") for sentence in self.openings)
        return f"root ::= opening move\nopening ::= {openings}\nmove ::= {moves}"

    def __contains__(self, words: str) -> bool:
        """Whether the book holds these words, however they are spaced."""
        whole = [f"{opening} {move}" for opening in self.openings for move in self.moves] or self.moves
        return words.split() in [sentence.split() for sentence in whole]


def open_for(turn: Turn, action: Action) -> Book:
    """What may be said with `action` now; what was said before is left out while there is something else."""
    observation = turn.observation
    thread = next((each for each in observation.threads if each.buyer == action.buyer), observation.threads[0])
    said = " ".join(table.own_words(turn, thread))
    draw = turn.words
    moves = sentences(observation=observation, action=action)
    if isinstance(action, AcceptOffer | Leave):
        return Book((), _drawn(_filled(moves, turn, action), said, draw))
    heard = hear(
        table.last_heard(turn, thread),
        role=observation.role,
        currency=observation.currency,
        title=observation.products[0].title if len(observation.products) == 1 else "",
    )
    openings = _openings(observation, action, heard)
    if openings:
        moves = tuple(_without_opening(sentence) for sentence in moves)
    return Book(_drawn(openings, said, draw), _drawn(_filled(_sayable(moves, observation), turn, action), said, draw))


def _filled(templates: tuple[str, ...], turn: Turn, action: Action) -> tuple[str, ...]:
    return tuple(filled(template, observation=turn.observation, action=action) for template in templates)


def _sayable(templates: tuple[str, ...], observation: Observation) -> tuple[str, ...]:
    """Without those that call a lone product by a title that is an advertisement rather than a name."""
    if len(observation.products) > 1:
        return templates
    name = short_name(observation.products[0].title)
    if len(name) <= LONGEST_NAME and not _AWKWARD.search(name):
        return templates
    return tuple(template for template in templates if "{item}" not in template) or templates


def _openings(observation: Observation, action: Action, heard: Heard) -> tuple[str, ...]:
    """Openings that answer what was heard; to two questions, two sentences."""
    first = _answers(observation, action, heard, heard.kind)
    if heard.also is not None:
        second = _answers(observation, action, heard, heard.also)
        if Remark.OFFER in (heard.kind, heard.also):  # The move's own sentence answers a price.
            first = second if heard.kind is Remark.OFFER else first
        else:
            if heard.also is Remark.WELL_BEING:
                first, second = second, first
            pairs = zip(first, second, strict=False)
            first = tuple(f"{one} {other}" for one, other in pairs) or first
    return tuple(filled(sentence, observation=observation, action=action) for sentence in first)


def _answers(observation: Observation, action: Action, heard: Heard, kind: Remark) -> tuple[str, ...]:
    role = observation.role
    own = _SELLER if role is Role.SELLER else _BUYER
    found = own.get(kind) or _BOTH.get(kind, ())
    if kind is Remark.OFFER and heard.cents is not None and isinstance(action, MakeOffer):
        short = heard.cents < action.price_cents if role is Role.SELLER else heard.cents > action.price_cents
        return _FAR[role] if short else found
    if kind is Remark.CONDITION and role is Role.SELLER and heard.topic:
        return tuple(sentence.replace("{topic}", heard.topic) for sentence in _ASKED_ABOUT)
    return found


def _without_opening(sentence: str) -> str:
    """What is left of a move's sentence that begins with an opening of its own."""
    first, mark, rest = sentence.rpartition(". ")
    return rest if mark and _ALREADY_OPEN.match(first) else sentence


def _drawn(options: tuple[str, ...], said: str, draw: random.Random) -> tuple[str, ...]:
    """A few of the options, of those not said yet while there are any."""
    fresh = [option for option in options if option not in said] or list(options)
    return tuple(draw.sample(fresh, min(CHOICE, len(fresh))))


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
