"""A phrase book: the sentences that a small model may put together, as a grammar that it cannot leave.

The embedded model has 135 million parameters and cannot hold a conversation of its own (measured in
`docs/language-models.md`). With a phrase book the rules here take what was heard for one of a few
kinds of remark, offer openings that answer such a remark and sentences that go with the move, and the
model picks its way through them, word by word, conditioned on what was said. So whatever it picks is
an answer, names the move's price and no other, and claims nothing about the goods.

English alone. Here: the kinds of remark, the openings, the grammar. Not here: asking the model, or
the move's sentences (`agents.scripted.talk`). Pure.
"""

import random
import re
from enum import StrEnum

from agents.base import Turn
from agents.prompts import table
from agents.scripted.talk import filled, sentences
from markets.engine.observation import Observation
from markets.engine.protocol import AcceptOffer, Action, Leave, Role
from markets.engine.talk_prices import find_prices


class Remark(StrEnum):
    """What somebody has said, as far as an answer depends on it."""

    NOTHING = "nothing"
    INSTRUCTION = "instruction"
    PROBE = "probe"
    """Asks how far one would go."""
    INSULT = "insult"
    THREAT = "threat"
    """Says that it is the end, or that there are others."""
    HARDSHIP = "hardship"
    FAMILY = "family"
    COMPARISON = "comparison"
    DELIVERY = "delivery"
    INTEREST = "interest"
    """Wants it, or asks whether one does."""
    CONDITION = "condition"
    CONCESSION = "concession"
    """Comes closer."""
    HOLDING = "holding"
    """Stays where it is."""
    COMPLAINT = "complaint"
    """Too much, for a buyer; too little, for a seller."""
    PRAISE = "praise"
    URGENCY = "urgency"
    THANKS = "thanks"
    WELL_BEING = "well_being"
    HESITATION = "hesitation"
    AGREEMENT = "agreement"
    REFUSAL = "refusal"
    GREETING = "greeting"
    OFFER = "offer"
    QUESTION = "question"
    OTHER = "other"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_COMMON: tuple[tuple[Remark, re.Pattern[str]], ...] = (
    (
        Remark.INSTRUCTION,
        _any(
            r"\b(ignore|disregard|forget)\b.{0,30}\b(instruction|rule|prompt|order|previous|above)",
            r"\bsystem\b.{0,12}\b(prompt|message|note|notice|override)\b",
            r"\b(new|updated) instructions?\b",
            r"\byou are (now |really )?(an? )?(ai|assistant|bot|language model|helpful)\b",
            r"\b(developer|debug|admin) mode\b|\bjailbreak\b|\broleplay\b|\bpretend (to be|you|that you)\b",
            r"\b(reveal|print|repeat|show|output)\b.{0,25}\b(prompt|instruction|private|secret|hidden|reservation)",
            r"^\s*(system|assistant|user)\s*:",
        ),
    ),
    (
        Remark.PROBE,
        _any(
            r"\b(lowest|highest|best|absolute|minimum|maximum|bottom|rock bottom)\b.{0,20}\b(price|offer|you|u)\b",
            r"\byour (real |true |actual |private )?(limit|budget|reservation|bottom line|minimum|maximum|max|min|cost)\b",
            r"\bhow (low|high|far|flexible|negotiable)\b|\bhow much (lower|higher|room|less)\b",
            r"\bwhat('s| is| are)? (the )?(lowest|least|most|highest|minimum|maximum|max)\b",
            r"\b(how much|what) did (you|it) (pay|cost)\b|\bis (it|this|the price) (negotiable|firm|flexible)\b",
            r"\bwiggle room\b|\bhow much (would|will|can|could|do|are) (you|u) (pay|spend|take|want|willing|accept|let|sell)",
        ),
    ),
    (
        Remark.INSULT,
        _any(
            r"\b(idiot|stupid|scam(mer)?|thief|thieves|rip[- ]?off|crook|greedy|moron|liar|lying|wtf|f+u+c*k\w*|shit|bullshit"
            r"|joke|joking|kidding|ridiculous|insult(ing)?|insane|crazy|nuts|absurd|shame(ful|less)?|pathetic)\b"
        ),
    ),
    (
        Remark.THREAT,
        _any(
            r"\b(final|last) (offer|price|word|chance|bid|try)\b|\btake it or leave it\b|\bwalk(ing)? away\b",
            r"\bi('m| am| will be|'ll be) (out|gone|leaving|done)\b|\bi('ll| will) (leave|look|find)\b",
            r"\bnow or never\b|\bwill not ask again\b|\bas far as i go\b|\bwe are at the end\b|\bor (i|we)('ll| will)? (leave|go|walk)",
            r"\b(other|another|more) (buyers?|offers?|parties|interested)\b|\b(other|more) people\b|\bsomeone else\b|\bsomebody else\b",
        ),
    ),
    (
        Remark.HARDSHIP,
        _any(
            r"\b((am|i'm|im|of|so|too|very|are) poor|student|(i am|i'm|im|are|is) broke|afford|unemployed|jobless|savings?|hospital|sick|homeless|struggling|desperate)\b",
            r"\b(tight|small|limited|low|my) budget\b|\b(no|little|not much|short on|short of|all the|all i have) (money|cash)\b",
            r"\ball i (have|got|can)\b|\blost my job\b|\bpay(ing)? (my )?(rent|bills)\b|\bplease,? (i|help)\b",
        ),
    ),
    (
        Remark.FAMILY,
        _any(
            r"\b(daughter|son|wife|husband|kids?|child(ren)?|birthday|gift|christmas|mother|father|mom|mum|dad|family"
            r"|anniversary|wedding|grandm\w+|grandf\w+|girlfriend|boyfriend|baby|brother|sister|nephew|niece)\b"
        ),
    ),
    (
        Remark.COMPARISON,
        _any(
            r"\b(elsewhere|amazon|ebay|craigslist|online|retail|competitors?)\b",
            r"\b(other|another|different) (shops?|sellers?|stores?|listings?|places?|ones?)\b|\b(seen|saw|found) (it|one|the same|similar|them)\b",
            r"\bmarket (price|value)\b|\bcheaper (one|at|on|in|than|some)|\bsame (one|thing|item)\b|\bgoing rate\b",
        ),
    ),
    (
        Remark.DELIVERY,
        _any(
            r"\bpick(ed|ing)?[ -](.{1,20} )?up\b|\bpickup\b|\bdeliver\w*|\bship(ping|ped|s)?\b|\bcollect\b|\bbring it\b"
            r"|\bmeet (up|you at|somewhere|at)\b|\bsend it\b|\baddress\b|\bwhere (are|is|do) (you|it|u)\b|\bdrive\b"
            r"|\bwhen (can|could|would|are)\b|\bcome (by|over|get|and get)\b|\btransport\b|\bhaul\b"
        ),
    ),
)

_AFTER: tuple[tuple[Remark, re.Pattern[str]], ...] = (
    (
        Remark.PRAISE,
        _any(
            r"\b(lovely|kind of you|generous|beautiful|love|perfect|amazing|awesome|wonderful|gorgeous|fantastic|nicest"
            r"|great (seller|buyer|person|item|deal|price|product)|really (nice|good|great)|looks (good|great|nice)|you are (nice|great|kind|the best))\b"
        ),
    ),
    (
        Remark.WELL_BEING,
        _any(
            r"\bhow are (you|u|things)\b|\bwhat'?s up\b|\b(and|how about) you\s*(\?|$)|, you\?|\bhow are you doing\b|\bhow('s| is) it going\b|\bhow do you do\b|\bhow have you been\b"
        ),
    ),
    (
        Remark.URGENCY,
        _any(
            r"\b(today|right now|right away|immediately|tonight|asap|hurry|urgent|quick(ly)?|tomorrow|cash"
            r"|this (morning|afternoon|evening|weekend|week))\b"
        ),
    ),
    (Remark.THANKS, _any(r"\bthanks?\b|\bthx\b|\bappreciate\b|\bgrateful\b")),
    (
        Remark.HESITATION,
        _any(
            r"\bthink (about|it over|on it)\b|\bnot sure\b|\bmaybe\b|\bconsider\b|\bhmm+\b|\bperhaps\b|\bsleep on it\b|\bi'?ll see\b(?! you)"
        ),
    ),
    (
        Remark.REFUSAL,
        _any(
            r"^\W*(no|nope|nah|never)\W*$|\b(can'?t|cannot|can not|won'?t|will not) (do|pay|accept|go|take|sell|let|agree)\b"
            r"|\bno way\b|\bnot (possible|interested|going to|gonna|for me|happening)\b|\bi('ll| will) (have to )?pass\b|\bno deal\b"
        ),
    ),
    (
        Remark.AGREEMENT,
        _any(
            r"^\W*(deal|agreed|done)\b"
            r"|\bsounds (good|fair|great|reasonable)\b|\b(have|got|it's|is) a deal\b|\bworks for me\b|\baccept (the|your) offer\b|\bit is!|\bi('ll| will) take it\b|\bi agree\b"
        ),
    ),
    (Remark.GREETING, _any(r"^\W*(hi|hello|hey|hiya|howdy|good (morning|afternoon|evening|day)|greetings|yo|sup)\b")),
)

_CONDITION = _any(
    r"\b(condition|scratch\w*|damage\w*|broken|working|works (well|fine|great|like|perfectly)|(does|do) (it|they) work|used|worn|defects?|defective|quality|dents?|stains?"
    r"|batter(y|ies)|original (box|paint|owner|packaging|parts)|box|manual|warranty|colou?rs?|size|dimensions?|how (old|big|long|heavy|many|new)|tested|clean"
    r"|rust|cracks?|functional|flaws?|issues|problems|(any|an) (issue|problem)|material|brand|model|year|accessories|includ(e|es|ed|ing)|come with|comes with|spacious|comfortable|features?|shape|bedrooms?|utilities|paint|tires|miles"
    r"|heavy|description|pictures?|photos?|smoke|pets?|repairs?|missing|tell me (more|about)|(more|any) (information|info|details)|mileage|smoking|comps)\b"
)
_SELLERS_EAR: tuple[tuple[Remark, re.Pattern[str]], ...] = (
    (
        Remark.HOLDING,
        _any(
            r"\bstay(ing)? at\b|\b(best|highest|most) (i|we) (can|could|will|would)\b|\bhigh as i (can|could)\b|\b(no|not|never) (any )?(higher|more) than\b|\bstill (at )?\W?\d|\bstill is?\b|\bnot (go|going) higher\b|\bnot changed my mind\b|\bkeep coming back\b|\bwhat i can offer\b"
        ),
    ),
    (
        Remark.INTEREST,
        _any(
            r"\bstill (available|for sale|there|have)\b|\bis (it|this|that|the \w+) (available|for sale|taken|gone|sold)\b",
            r"\b(i'm|i am|im|very|really|yes,?) interested\b|\binterested in (your|the|this|that|buying|it)\b|\bsaw your (ad|listing|post)\b",
        ),
    ),
    (
        Remark.COMPLAINT,
        _any(
            r"(?<!not )\btoo (much|high|expensive|steep|pricey|rich|far)\b|(?<!not too )\b(expensive|overpriced|pricey|steep)\b|\bthat much\b|\bso much\b|\bnegotia\w+",
            r"\b(bit|little|any|go|come) (lower|less|cheaper|down)\b|\bdiscount\b|\breduce\b|\blower (the|your|it)\b|\btake less\b",
            r"\b(is|that's|thats) a lot\b|\btoo fast\b|\bmore than i\b|\bknock (off|some)\b|\bworth (it|that|less)\b|\btake (something|anything) off\b|\bless than\b",
        ),
    ),
    (
        Remark.CONCESSION,
        _any(
            r"\b(go|come|went|coming) up\b|\bstretch\b|\braise\b|\bbetter offer\b|\bget(ting)? closer\b|\bmeet (you )?(at|in the|half)"
            r"|\bsplit (the|it)\b|\bhalfway\b|\bcompromise\b|\bi would pay\b|\bi really want this\b"
        ),
    ),
)
_BUYERS_EAR: tuple[tuple[Remark, re.Pattern[str]], ...] = (
    (
        Remark.HOLDING,
        _any(
            r"\bstay(ing)? at\b|\b(price|asking) is still\b|\bstill \W?\d|\bcannot move\b|\bkeeping it\b|\bnothing has changed\b|\bfirm\b"
            r"|\bnot (go|going) lower\b|\b(best|lowest|least) (i|we) (can|could|will|would)\b|\blow as i (can|could)\b|\b(no|not|never) (any )?(lower|less) than\b"
        ),
    ),
    (
        Remark.INTEREST,
        _any(
            r"\bare you (still )?interested\b|\b(any|have|what) questions\b|\bwhat (can|may) i (tell|do|help)\b|\b(can|may) i (help|answer|tell)\b",
            r"\b(would|do) you (like|want)\b|\b(like|want|need) to know\b|\bmake (me )?an? offer\b|\bsubmit (your|an) offer\b|\binterested in\b",
        ),
    ),
    (
        Remark.COMPLAINT,
        _any(
            r"\btoo (low|little|cheap|far)\b|\bnot enough\b|\blow[- ]?ball\w*\b|\bworth (more|it|every|a lot)\b|\bneed (more|at least)\b"
            r"|\bcan(no|')t let\b|\bcannot let\b|\b(go|come|bit|little) (higher|up|more)\b|\bmore (than|like|for)\b|\bless than\b"
        ),
    ),
    (
        Remark.CONCESSION,
        _any(
            r"\b(come|go|went|coming) down\b|\bmeet you\b|\bbetter price\b|\bfor you\b|\bi could do\b|\blower\b|\bdiscount\b|\bsplit (the|it)\b"
            r"|\bhalfway\b|\bcompromise\b|\bmake it\b|\bi want this to work\b|\bhow does that sound\b"
        ),
    ),
)


_IN_A_WORD = (
    (Remark.REFUSAL, _any(r"^\W*(no|nope|nah|never|not)\b")),
    (
        Remark.AGREEMENT,
        _any(r"^\W*(ok(ay)?|yes|yeah|yep|yup|sure|fine|deal|great|alright|all right|good|cool|perfect|definitely)\b"),
    ),
)
"""What says yes or no only where hardly anything follows: "Yes, there is a park nearby" agrees to nothing."""
LONGEST_WORD_OF_ASSENT = 5
_ASKS_TO_TAKE = _any(r"\b(take|accept|do|sell it|let it go|how about|what about|go for|consider|would|settle)\b")
_BEFORE_PRICES = 4
"""Of the common remarks, those that matter more than a price in the same breath."""
_QUESTION = re.compile(
    r"\?|\btell me\b|\b(how|what) (many|much|old|big|long|kind|about|is|are|size|colou?r)\b|\b(does|do|is) (it|they) (have|come|work)\b",
    re.IGNORECASE,
)


def remark(heard: str, *, role: Role, currency: str) -> Remark:
    """What kind of remark the words are, to a listener of `role`."""
    if not heard.strip():
        return Remark.NOTHING
    own = _SELLERS_EAR if role is Role.SELLER else _BUYERS_EAR
    condition = ((Remark.CONDITION, _CONDITION),)
    question = bool(_QUESTION.search(heard))
    priced = find_prices(heard, currency=currency).cents is not None
    if question and priced and _ASKS_TO_TAKE.search(heard):
        order: tuple[tuple[Remark, re.Pattern[str]], ...] = (*_COMMON[:_BEFORE_PRICES], (Remark.OFFER, _ASKS_TO_TAKE))
    elif question:  # "Great, would you take 90?" is no agreement, and "Hello, is it new?" more than a greeting.
        after = tuple(pair for pair in _AFTER if pair[0] not in (Remark.AGREEMENT, Remark.GREETING))
        interest = tuple(pair for pair in own if pair[0] is Remark.INTEREST)
        moving = tuple(pair for pair in own if pair[0] is not Remark.INTEREST)
        order = (*_COMMON, *moving, *condition, *interest, *after)
    elif role is Role.BUYER:
        order = (*_COMMON, *own, *condition, *_AFTER)
    else:  # What a buyer says of the condition is no question about it.
        order = (*_COMMON, *own, *_AFTER)
    for kind, pattern in order:
        if pattern.search(heard):
            return kind
    if not question and len(heard.split()) <= LONGEST_WORD_OF_ASSENT:
        for kind, pattern in _IN_A_WORD:
            if pattern.search(heard):
                return kind
    if priced or re.search(r"[$€£]\s?\d", heard):
        return Remark.OFFER
    return Remark.QUESTION if question else Remark.OTHER


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
        "Let us find a price together instead.",
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
        "We can surely find a time that suits us both.",
        "The handover is easy to arrange.",
        "I am flexible about when and where.",
        "Once we agree, the rest is quickly arranged.",
    ),
    Remark.THANKS: ("You are welcome.", "My pleasure.", "And thank you for your time.", "Thank you as well."),
    Remark.WELL_BEING: ("I am fine, thank you.", "All is well here, thanks.", "Very well, thank you for asking."),
    Remark.HESITATION: (
        "Take the time you need.",
        "I can see that you are not sure yet.",
        "No need to rush.",
        "Think it over by all means.",
    ),
    Remark.AGREEMENT: (
        "Good, we are getting there.",
        "I am glad that we understand each other.",
        "Good to hear.",
        "Then let us settle it.",
    ),
    Remark.REFUSAL: (
        "I see that this does not work for you.",
        "Fair enough.",
        "That is a clear answer.",
        "All right, I respect that.",
    ),
    Remark.GREETING: ("Hello to you too.", "Hi, good to meet you.", "Hello, nice of you to write.", "Hi there."),
    Remark.OTHER: ("I hear you.", "I see.", "I understand.", "Thanks for telling me."),
    Remark.URGENCY: ("Quick would suit me too.", "I am glad that you can be quick.", "That would suit me."),
}
_SELLER: dict[Remark, tuple[str, ...]] = {
    Remark.HARDSHIP: (
        "I understand that money is tight.",
        "I can see that it is not easy.",
        "I would like to make it possible for you.",
        "I do not want to make it hard for you.",
    ),
    Remark.FAMILY: (
        "What a nice idea.",
        "That is a lovely reason.",
        "I like the thought of that.",
        "That sounds lovely.",
    ),
    Remark.COMPARISON: (
        "There are others, that is true.",
        "I know what others ask.",
        "You may well find another one.",
        "This one is here now, though.",
    ),
    Remark.INTEREST: (
        "Yes, it is still here.",
        "I am glad that you are interested.",
        "Good that you ask, it is still for sale.",
        "Yes, you can still have it.",
    ),
    Remark.CONDITION: (
        "It is just as the description says.",
        "You are welcome to look at it first.",
        "All I know about it is in the description.",
        "Have a good look at the description.",
    ),
    Remark.CONCESSION: (
        "Thank you for coming closer.",
        "I see that you are moving, thank you.",
        "We are getting closer.",
        "I appreciate that step.",
    ),
    Remark.HOLDING: (
        "I see that you are staying where you are.",
        "You are holding firm, I see.",
        "I notice that you have not moved.",
    ),
    Remark.COMPLAINT: (
        "I see that it is more than you had in mind.",
        "I know that it is not little money.",
        "I understand that you would like to pay less.",
        "I can see why you hesitate at that price.",
    ),
    Remark.PRAISE: ("Thank you, I am glad you like it.", "Thanks for the kind words.", "I am glad to hear that."),
    Remark.QUESTION: (
        "I know no more than the description says.",
        "I cannot say more than the description does.",
        "A fair question, but I only know what the description says.",
    ),
    Remark.OFFER: (
        "Thank you for the offer.",
        "I have seen your offer.",
        "That is a start.",
        "Thanks for naming a price.",
    ),
}
_BUYER: dict[Remark, tuple[str, ...]] = {
    Remark.HARDSHIP: ("I am sorry to hear that.", "I can see that it is not easy.", "I do not want to be unfair."),
    Remark.FAMILY: ("That is nice to hear.", "I can see that it means something to you.", "That sounds lovely."),
    Remark.COMPARISON: (
        "There are others, that is true.",
        "I have looked around a little.",
        "It is yours that I am interested in.",
    ),
    Remark.INTEREST: (
        "Yes, I am interested.",
        "It interests me, yes.",
        "I know enough about it, thank you.",
        "I would like to have it, yes.",
    ),
    Remark.CONDITION: (
        "It does sound good.",
        "Thanks for telling me about it.",
        "I believe you about that.",
        "That is good to know.",
    ),
    Remark.CONCESSION: (
        "Thank you for coming closer.",
        "I see that you are moving, thank you.",
        "We are getting closer.",
        "I appreciate that step.",
    ),
    Remark.HOLDING: (
        "I see that you are staying where you are.",
        "You are holding firm, I see.",
        "I notice that you have not moved.",
    ),
    Remark.COMPLAINT: (
        "I see that you had more in mind.",
        "I understand that you would like more.",
        "I know that it is worth something to you.",
        "I did not mean to offend you with my offer.",
    ),
    Remark.QUESTION: (
        "Let us come to that once we have a price.",
        "I would rather settle the price first.",
        "A fair question, but the price comes first for me.",
    ),
    Remark.PRAISE: ("I do like it.", "It does look good.", "Thanks for the kind words."),
    Remark.OFFER: ("Thank you for the price.", "I have seen your price.", "Thanks for naming a price."),
}

_ALREADY_OPEN = re.compile(
    r"^(?:thanks|thank you|i hear you|good to have|happy to|i like|i am interested|hello)\b", re.IGNORECASE
)
"""Beginnings of a move's sentence that would follow badly on an opening."""

CHOICE = 3
"""Openings, and sentences for the move, that the model may choose among: drawn anew each turn, so that a
model with one favourite does not say the same in every room."""


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
    kind = remark(table.last_heard(turn, thread), role=observation.role, currency=observation.currency)
    openings = _openings(observation, action, kind)
    if openings:
        moves = tuple(_without_opening(sentence) for sentence in moves)
    return Book(_drawn(openings, said, draw), _drawn(_filled(moves, turn, action), said, draw))


def _filled(templates: tuple[str, ...], turn: Turn, action: Action) -> tuple[str, ...]:
    return tuple(filled(template, observation=turn.observation, action=action) for template in templates)


def _openings(observation: Observation, action: Action, kind: Remark) -> tuple[str, ...]:
    own = _SELLER if observation.role is Role.SELLER else _BUYER
    found = own.get(kind) or _BOTH.get(kind, ())
    return tuple(filled(sentence, observation=observation, action=action) for sentence in found)


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
