"""What scripted agents say: one or two plain sentences for each kind of move.

Here: the sentences and the choice among them. Not here: any decision; a sentence follows a move
and binds nobody.

Contract: the only amount a sentence may name is the price of the offer it goes with, and nothing
in the choice depends on a private value, on other threads or on turns that the listener cannot
count. A product is called by the start of its title, one without a name "the item" or "Item B".
"""

import random
import re
from enum import StrEnum

from markets.engine.money import format_amount
from markets.engine.observation import Observation, SeenThread
from markets.engine.protocol import (
    AcceptOffer,
    Action,
    Leave,
    MakeOffer,
    RejectOffer,
    Role,
)
from markets.engine.scenarios import GENERIC_TITLES, Alternating

MAX_NAME_CHARS = 44
"""A longer title is cut after a whole word."""


class Situation(StrEnum):
    """What a sentence goes with."""

    OPENING = "opening"
    """An offer before the other side has said anything."""
    FIRST_REPLY = "first_reply"
    """The own first offer, after the other side has moved."""
    COUNTER = "counter"
    """A better offer than the own one before."""
    HOLDING = "holding"
    """An offer no better than the own one before."""
    LAST_TURN = "last_turn"
    """The own last message, where both sides can count the rounds."""
    ACCEPT = "accept"
    REJECT = "reject"
    INVITATION = "invitation"
    """Talk without an offer."""
    LEAVING = "leaving"


SENTENCES: dict[tuple[Role, Situation], tuple[str, ...]] = {
    (Role.SELLER, Situation.OPENING): (
        "The {item} is ready to go. I am asking {price}.",
        "Thanks for stopping by. For the {item} I would like {price}.",
        "Let us start with a number: {price} for the {item}.",
        "You will not find a better {item} around here. It is yours for {price}.",
        "I can let the {item} go for {price}.",
        "Interested in the {item}? The price is {price}.",
        "The {item} could be on its way to you today, at {price}.",
    ),
    (Role.SELLER, Situation.FIRST_REPLY): (
        "Thanks for your interest in the {item}. I had {price} in mind.",
        "I hear you. For the {item} I need more like {price}.",
        "Good to have you here. My price for the {item} is {price}.",
        "Let me tell you where I stand on the {item}: {price}.",
        "I like that you want the {item}. I would part with it for {price}.",
        "Happy to talk about the {item}. I am thinking of {price}.",
    ),
    (Role.SELLER, Situation.COUNTER): (
        "I can come down a little: {price}.",
        "Let me meet you part of the way. {price} for the {item}.",
        "All right, {price}. How does that sound?",
        "I want this to work. Make it {price}.",
        "I could do {price} for the {item}.",
        "Here is a better price: {price}.",
        "For you, {price}. Do we have a deal?",
    ),
    (Role.SELLER, Situation.HOLDING): (
        "My price is still {price}.",
        "I have thought about it, and I am staying at {price}.",
        "The {item} is worth it. {price} it is.",
        "I am afraid I cannot move from {price}.",
        "I know what the {item} is worth, so I am keeping it at {price}.",
        "Nothing has changed on my side: {price}.",
    ),
    (Role.SELLER, Situation.LAST_TURN): (
        "This is my last offer: {price} for the {item}.",
        "We are at the end. {price}, take it or leave it.",
        "My final word on the {item} is {price}.",
        "One last number from me: {price}.",
        "It is now or never: {price} for the {item}.",
        "I will not ask again. {price}.",
    ),
    (Role.SELLER, Situation.ACCEPT): (
        "Deal. The {item} is yours.",
        "Sold! Enjoy the {item}.",
        "That works for me. The {item} is yours.",
        "Agreed, I will pack up the {item} for you.",
        "You have got yourself the {item}.",
        "Fine by me. The {item} goes to you.",
    ),
    (Role.SELLER, Situation.REJECT): (
        "I cannot let the {item} go for that.",
        "Thanks, but that is too low for the {item}.",
        "I will have to pass on that one.",
        "Not at that price, I am sorry.",
        "The {item} is worth more than that to me.",
        "No, I need more than that.",
    ),
    (Role.SELLER, Situation.INVITATION): (
        "What would you give me for the {item}?",
        "Make me an offer for the {item}.",
        "I am open to offers for the {item}.",
        "Tell me what the {item} is worth to you.",
        "The {item} is still here. What do you say?",
        "I would like to hear your price for the {item}.",
    ),
    (Role.SELLER, Situation.LEAVING): (
        "I do not think we will agree. All the best.",
        "I will keep the {item} for now. Goodbye.",
        "Thanks for your time, but I am stopping here.",
        "It does not look like this will work. Take care.",
        "I am taking the {item} off the table. Goodbye.",
        "Let us leave it at that.",
    ),
    (Role.BUYER, Situation.OPENING): (
        "I am interested in the {item}. Would you take {price}?",
        "Hello! I could pay {price} for the {item}.",
        "I have had my eye on the {item}. I would start at {price}.",
        "Let me open with {price} for the {item}.",
        "How about {price} for the {item}?",
        "I like the {item}. My offer is {price}.",
        "Would {price} get me the {item}?",
    ),
    (Role.BUYER, Situation.FIRST_REPLY): (
        "I like the {item}. I was thinking of {price}.",
        "Thanks. For the {item} I would offer {price}.",
        "Let me see what I can do for the {item}. Would {price} be all right?",
        "Let me answer with {price} for the {item}.",
        "I am interested in the {item}. {price} would suit me.",
        "For the {item} I had {price} in mind.",
    ),
    (Role.BUYER, Situation.COUNTER): (
        "I can go up a little: {price}.",
        "Let us get closer. {price} for the {item}.",
        "All right, I would pay {price}.",
        "I really want this. {price}?",
        "Could we meet at {price}?",
        "Here is a better offer: {price} for the {item}.",
        "I will stretch to {price}.",
    ),
    (Role.BUYER, Situation.HOLDING): (
        "My offer is still {price}.",
        "I am staying at {price} for now.",
        "I have not changed my mind: {price}.",
        "{price} is what I can offer for the {item}.",
        "I would rather not go higher than {price} at this point.",
        "For the {item} I keep coming back to {price}.",
    ),
    (Role.BUYER, Situation.LAST_TURN): (
        "This is my last offer: {price} for the {item}.",
        "We are at the end. {price} is as far as I go today.",
        "My final offer for the {item} is {price}.",
        "One last try from me: {price}.",
        "Now or never: {price} for the {item}.",
        "I will leave it at {price}. Your call.",
    ),
    (Role.BUYER, Situation.ACCEPT): (
        "Deal! I am looking forward to the {item}.",
        "I will take it. Thanks for the {item}.",
        "Agreed. The {item} is mine then.",
        "That works for me. I will take the {item}.",
        "You have a deal on the {item}.",
        "Good, I am buying the {item}.",
    ),
    (Role.BUYER, Situation.REJECT): (
        "That is too much for me.",
        "I cannot pay that for the {item}.",
        "Thanks, but no. Not at that price.",
        "No, that is more than I want to spend on the {item}.",
        "I will have to say no to that.",
        "Too high for me, I am afraid.",
    ),
    (Role.BUYER, Situation.INVITATION): (
        "I am interested in the {item}. What would you ask for it?",
        "What is your price for the {item}?",
        "Tell me what you want for the {item}.",
        "How much would you like for the {item}?",
        "I would like to hear an offer for the {item}.",
        "The {item} caught my eye. What does it cost?",
    ),
    (Role.BUYER, Situation.LEAVING): (
        "This is not for me. Goodbye.",
        "I will look for the {item} elsewhere. Goodbye.",
        "We are too far apart. All the best.",
        "Thanks, but I am out.",
        "I do not think we will find a price for the {item}. Take care.",
        "Let us leave it. Bye.",
    ),
}


def speak(*, observation: Observation, action: Action, chance: random.Random) -> str:
    """A sentence to go with `action`, drawn with `chance`."""
    thread = _thread(observation, action)
    variants = SENTENCES[observation.role, situation(observation, thread, action)]
    return filled(variants[int(chance.random() * len(variants))], observation=observation, action=action)


def sentences(*, observation: Observation, action: Action) -> tuple[str, ...]:
    """Every sentence that may go with `action`, to be filled in."""
    return SENTENCES[observation.role, situation(observation, _thread(observation, action), action)]


def filled(sentence: str, *, observation: Observation, action: Action) -> str:
    """The sentence with its product and, beside an offer, its price."""
    title = observation.products[_product(observation, _thread(observation, action), action)].title
    sentence = worded(sentence, title=title, alone=len(observation.products) == 1)
    if isinstance(action, MakeOffer):
        return sentence.replace("{price}", format_amount(action.price_cents, observation.currency))
    return sentence


def worded(sentence: str, *, title: str, alone: bool) -> str:
    """The sentence with its product; `alone` says that there is no other on the table."""
    if title not in GENERIC_TITLES:
        return sentence.replace("{item}", short_name(title))
    if alone:
        return sentence.replace("{item}", "item")
    return re.sub(r"(?:\b[Tt]he )?\{item\}", title, sentence)


def situation(observation: Observation, thread: SeenThread | None, action: Action) -> Situation:
    """What the sentence for `action` goes with. Depends on that thread's visible past alone."""
    match action:
        case AcceptOffer():
            return Situation.ACCEPT
        case RejectOffer():
            return Situation.REJECT
        case Leave():
            return Situation.LEAVING
        case MakeOffer() if thread is not None:
            return _kind_of_offer(observation, thread, action)
        case _:
            return Situation.INVITATION


def _kind_of_offer(observation: Observation, thread: SeenThread, offer: MakeOffer) -> Situation:
    if isinstance(observation.mechanism, Alternating) and observation.turns_left == 1:
        return Situation.LAST_TURN
    before = thread.last(mine=True, product=offer.product)
    if before is None or not thread.my_messages:
        untouched = not thread.their_messages and thread.last(mine=False) is None
        return Situation.OPENING if untouched else Situation.FIRST_REPLY
    gain = before.price_cents - offer.price_cents
    conceded = gain > 0 if observation.role is Role.SELLER else gain < 0
    return Situation.COUNTER if conceded else Situation.HOLDING


def short_name(title: str) -> str:
    """The start of a product's title, as one would say it."""
    title = " ".join(title.split())
    if len(title) <= MAX_NAME_CHARS:
        return title
    words = title[: MAX_NAME_CHARS + 1].rsplit(" ", 1)
    cut = words[0] if len(words) == 2 else title[:MAX_NAME_CHARS]
    return cut.rstrip(" ,;:-–—/&(|")


def _thread(observation: Observation, action: Action) -> SeenThread | None:
    if observation.role is Role.BUYER or len(observation.threads) == 1:
        return observation.threads[0]
    return observation.threads[action.buyer - 1] if action.buyer else None


def _product(observation: Observation, thread: SeenThread | None, action: Action) -> int:
    """The product that the move is about: the offer's, else the last one talked about."""
    if isinstance(action, MakeOffer):
        return action.product
    if thread is None or not thread.offers:
        return 0
    if isinstance(action, AcceptOffer | RejectOffer) and 1 <= action.offer_id <= len(thread.offers):
        return thread.offers[action.offer_id - 1].product
    return thread.offers[-1].product
