"""What somebody has said, as far as an answer depends on it: rules that take words for a kind of remark.

Here: the kinds, the patterns, and the thing that a question is about. Not here: what is answered
(`agents.phrasebook`). English alone; words that no rule knows are `OTHER`, or `QUESTION` where they
ask. Pure.
"""

import re
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from markets.engine.money import Cents
from markets.engine.protocol import Role
from markets.engine.talk_prices import ReadingKind, find_prices


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
    AVAILABLE = "available"
    """Asks whether it is still for sale."""
    WRONG_SIDE = "wrong_side"
    """Speaks as if the listener had the other role."""
    UNSURE = "unsure"
    """Does not know."""
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
    DEAL_ASKED = "deal_asked"
    """Asks whether that is agreed, and names no price."""
    REASON = "reason"
    """Asks why."""
    BARTER = "barter"
    """Wants to pay with something else, or later."""
    ROOM = "room"
    """Says, or asks whether, the price can be talked about."""
    ASKS_PRICE = "asks_price"
    ANY_QUESTIONS = "any_questions"
    """Offers to answer some."""
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
            r"\bbest (price|offer|deal|you (can|could|would|will do))\b|\b(lowest|highest|absolute|minimum|maximum|bottom|rock bottom)\b(?!.{0,16}\b(i|we)(\b|'))(.{0,16}\b(price|offer|amount|you('d|'ll| can| could| would| will| are)|u)\b)(?!.{0,12}\bI (can|could)\b)",
            r"\b(what|what'?s|tell|give|say|reveal|know|share|disclose|name)\b[^.!]{0,40}\byour (real |true |actual |private )?(limit|budget|reservation|bottom line|minimum|maximum|max|min|cost)\b|\byour (real |true |actual |private )?(limit|budget|reservation|bottom line|minimum|maximum|max|min|cost)\b[^.!]*\?",
            r"\bhow (low|high|flexible|negotiable)\b|\bhow far (can|could|would|will|do|are) (you|u) (go|willing|prepared|able|ready|come)\b|\bhow much (lower|higher|room|less)\b",
            r"\bwhat('s| is| are)? (the )?(lowest|least|most|highest|minimum|maximum|max)\b",
            r"\b(how much|what) did (you|it) (pay|cost)\b",
            r"\b(original|purchase|retail) price\b[^.!]*\?",
            r"\bhow (low|high|firm)\b|\bhow much (would|will|can|could|do|are) (you|u) (pay|spend|take|willing|accept|let|sell)",
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
            r"(?<!the )(?<!your )\b(final|last) (offer|price|word|chance|bid|try)\b|\b(final|last) (offer|word|chance)\b(?!\?)|\btake it or leave it\b|\bwalk(ing)? away\b",
            r"\bi('m| am| will be|'ll be) (out|gone|leaving|done)\b|\bi('ll| will)( have to)? (leave|quit|look|find)\b",
            r"\bnow or never\b|\b(gotta|got to|going to|have to) (quit|leave|go elsewhere|walk)\b|\bwill not ask again\b|\bas far as i go\b|\bwe are at the end\b|\bor (i|we)('ll| will)? (leave|go|walk)",
            r"\b(other|another|more) (buyers?|parties|interested)\b|\bother offers\b|\b(good ?bye|good day then|never ?mind|forget it|good luck)\b|(?<!business with you and )\bhave a (good|nice|great) (day|one|evening)\b(?!.{0,20}(thank|appreciate))|\b(other|more) people\b|\bsomeone else\b|\bsomebody else\b",
        ),
    ),
    (
        Remark.HARDSHIP,
        _any(
            r"\b((am|i'm|im|of|so|too|very|are) poor|student|(i am|i'm|im|are|is) broke|afford|unemployed|jobless|savings?|hospital|sick|homeless|struggling|desperate)\b",
            r"\b(tight|small|limited|low|my) budget\b|\b(no|little|not much|short on|short of|all the|all i have) (money|cash)\b",
            r"\ball i (have|got)\b|\ball i can (pay|afford|spend|do|offer|give)\b|\blost my job\b|\bpay(ing)? (my )?(rent|bills)\b|\bplease,? (i|help)\b",
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
            r"(?<!with )\b(other|another|different) (shops?|sellers?|stores?|listings?|places?|ones?)\b|\b(seen|saw|found) (it|one|the same|similar|them)\b",
            r"\bmarket (price|value)\b|\bcheaper (one|at|on|in|than|some)|\bsame (one|thing|item|model) (for|at|on|cheaper|online|from|elsewhere)\b|\bgoing rate\b",
        ),
    ),
    (
        Remark.DELIVERY,
        _any(
            r"\bpick(ed|ing)?[ -](.{1,20} )?up\b|\bpickup\b(?! trucks?)|\bdeliver\w*|\bship(ping|ped|s)?\b|\bcollect\b|\bbring it\b"
            r"|\bmeet (up|you at|somewhere|at|right now|now|today|tonight|tomorrow)\b(?! \W?\d)|\bsend it\b|\baddress\b|\bwhere (are|is|do) (you|it|u)\b|\bdrive (over|down|up|there|out|to (you|your|get|pick))\b"
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
            r"\bhow are (you|u|things)\b|\bwhat'?s up\b|\b(and|how about|what about) (you|yourself)\s*(\?|$)|^\W*yourself\W*$|, you\?|\bhow are you doing\b|\bhow('s| is) it going\b|\bhow do you do\b|\bhow have you been\b"
        ),
    ),
    (
        Remark.URGENCY,
        _any(
            r"\b(today|right now|right away|immediately|tonight|asap|hurry|urgent|quickly|tomorrow"
            r"|this (morning|afternoon|evening|weekend|week))\b"
        ),
    ),
    (
        Remark.UNSURE,
        _any(
            r"^\W*(no,? )?((i'?m|i am) )?(just |really |honestly |still |actually )*not (really |so |too |quite |entirely )?(sure|certain)( about (that|this|it))?\W*$",
            r"\b(do not|don'?t|dunno|wouldn'?t) (really |actually |even )?know\b(?! (if|about|whether|that i|what to))|\bno idea\b|\bnot sure (what|how|when|who|where)\b",
        ),
    ),
    (
        Remark.HESITATION,
        _any(
            r"\bthink (about|it over|on it)\b|\bnot sure\b|^\W*maybe(\W+\w+){0,4}\W*$|\b(i'?ll|i will|let me|have to|need to|must) consider\b|^\W*hmm+\W*$|\bperhaps later\b|\bsleep on it\b|\bi'?ll see\b(?! you)"
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
            r"|\bsounds (good|fair|great|reasonable)\b|\b(have|got|it's|is) a deal\b|\bworks for me\b|\baccept (the|your|that|this) (offer|price)\b|\b(i|we|i'?ll|i will|can|gladly) accept\W*$|\bit is!|\b(i'll|will|i'd) (gladly |happily )?take it\b|\bi agree\b"
        ),
    ),
    (Remark.THANKS, _any(r"\bthanks?\b|\bthx\b|\bappreciate\b|\bgrateful\b")),
    (Remark.GREETING, _any(r"^\W*(hi|hello|hey|hiya|howdy|good (morning|afternoon|evening|day)|greetings|yo|sup)\b")),
)

_REASON = _any(
    r"\bwhy\b(?!,? (don'?t|not|yes|no|sure|of course|thank))|\bwhat('s| is| was)? the reason\b|\bhow come\b|\breason (for|you|you're|why)\b"
)
_BARTER = _any(
    r"\b(trades?|swap|barter|exchange|instal?lments?|payment plan|pay(ment|ments|ing)? (later|monthly|weekly|in (goods|parts|two))|down ?payment|in goods|goods)\b"
)
_ASKS_PRICE = _any(
    r"\bwhat (were|are|is|did|do) (you|u|your) (thinking|hoping|offer\w*|price|asking|looking|willing|have in mind)\b|\b(have|got) (a|an|any|another) (\w+ )?(price|number|offer|amount) in mind\b|\b(another|a different|a new) offer\b",
    r"\bmake (me )?an? (reasonable |fair )?offer\b|\bwhat('s| is| was)? (the|your) (\w+ )?(price|amount|total|offer|counter ?offer|rent)\b|\bhow much (is|are) (it|this|that|the \w+|these|those|they)\b|^\W*how much\W*$|\bhow much (would|do|does|did) (you|u|it|they|this) (like|want|cost|charge|ask|need)\b|\bhow much (for|(are|were|do|did|would|you) (you )?(asking|looking|wanting|want|hoping|thinking))\b",
    r"\bwhat (would|can|could) you (offer|like to (pay|offer)|do for me|do)\b|\b(your|an) offer\?|\bwhat do you think\b|\bwhat (price|number|amount|figure)\b|\bwhat kind of (deal|price|offer|discount)\b|\bgive me (an|your) offer\b|\bwhat (should|shall|can) we do\b",
)
_ROOM = _any(
    r"\b(negotiable|flexible|obo)\b|\b(wiggle|some|any|much) (wiggle )?room (on|in|for|to|with|there)\b|\bwiggle room\b|\b(flexibility|budge|firm|movement)\b[^.!]*\?|\b(willing|open|happy|able|ready) to (negotiat\w+|work with|hear|discuss|offers?|talk)\b|\bopen to (offers|negotiation)\b"
    r"|\bnegotiate\b|\broom (to|for)\b|\bwork out (a|some|another)\b|\bwork (something|with you|(this|it|that) out)\b"
)
_CONDITION = _any(
    r"\b(condition|scratch\w*|damage\w*|broken|working|works (well|fine|great|like|perfectly)|(does|do) (it|they) work|used|worn|defects?|defective|quality|dents?|stains?"
    r"|batter(y|ies)|original (box|paint|owner|packaging|parts)|box|manual|warranty|colou?rs?|size|dimensions?|how (old|big|long|heavy|many|new)|tested|clean"
    r"|rust|cracks?|functional|flaws?|issues|problems|(any|an) (issue|problem)|material|brand|model|year|accessories|includ(e|es|ed|ing)|come with|comes with|spacious|comfortable|features?|shape|bedrooms?|utilities|paint|tires|miles"
    r"|heavy|description|pictures?|photos?|smoke|pets?|repairs?|missing|tell me (a (little |tiny )?(bit )?|some |something )?(more|about)|(more|any|some|the|basic) (information|info|details)|\binfo(rmation)?\b|mileage|smoking|comps|(any|some)thing wrong|wrong with|(is|what'?s) wrong|hidden|the catch)\b"
)
_SELLERS_EAR: tuple[tuple[Remark, re.Pattern[str]], ...] = (
    (
        Remark.HOLDING,
        _any(
            r"\bstay(ing)? at\b|\b(best|highest|most) (i|we) (can|could|will|would)\b|\bhigh as i (can|could)\b|\b(no|not|never) (any )?(higher|more) than\b|\bstill (at )?\W?\d|\bstill is?\b|(\b(not|cannot|never|no way)\b|n'?t\b)[^.!?]{0,25}\b(come|go|pay)\b[^.!?]{0,14}\b(high|higher|up)\b|\bnot (go|going) higher\b|\bnot changed my mind\b|\bkeep coming back\b|\bwhat i can offer\b"
        ),
    ),
    (
        Remark.AVAILABLE,
        _any(
            r"\bstill (available|for sale|have|selling)\b|\bis (it|this|that|the \w+) (still )?(there|available|for sale|taken|gone|sold)\b"
        ),
    ),
    (
        Remark.INTEREST,
        _any(
            r"\b(want|love|like|looking|need|hoping|wish|interested) (to|in) (buy|purchas|rent|get|own|hav|acquir)\w*\b|\bin need (of|for)\b|\blooking for\b|\bfor sale\b",
            r"\b(i'm|i am|im|very|really|yes,?) interested\b|\binterested in (your|the|this|that|buying|it)\b|\bsaw your (ad|listing|post)\b",
        ),
    ),
    (
        Remark.COMPLAINT,
        _any(
            r"(?<!not )\btoo (much|high|expensive|steep|pricey|rich|far)\b|(?<!not too )\b(expensive|overpriced|pricey|steep)\b|\bthat much\b(?! (information|info|about))|(?<!thank you )(?<!thanks )(?<!you very )(?<!this )\bso much\b(?! (for (the|your|this)|information|info))|\bnegotia\w+",
            r"\b(bit|little|any|go|come) (lower|less|cheaper|down)\b|\bdiscount\b|\breduce\b|\b(bring|drop|cut|knock|lower|take) (it |some(thing)? |the |that |your |down )*(down|price|off)\b|\blower (the|your|it)\b|\btake less\b",
            r"\b(bit|little|too|very|pretty|kind of|kinda|somewhat|quite|so|seems?|sounds?|really) (high|steep|pricey)\b(?! (condition|quality|nice|good|about|info\w*|details))",
            r"\b(above|over|beyond|outside|exceeds?|out of) (of )?(my|our|the) (budget|price|range|means|limit)\b|\bhigher than\b|\bmore than (we|what)\b",
            r"\bholding me back\b|\b(can'?t|cannot|can not|could(n'?t| not)) (pay|afford|do|spend|go) (that|this|so|quite|it)\b|\bhigh for\b|\bcome down\b|\bhigh priced?\b",
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
            r"\bstay(ing)? at\b|\b(price|asking) is still\b|\bstill \W?\d|\bcannot move\b|\bkeeping it\b|\bnothing has changed\b|\bfirm\b|\bstick(ing)? (with|to) (my|the)\b"
            r"|\b(not|never|can'?t|cannot|won'?t|can not) (go|going|do|sell|come|take)( it| them)?( for)? (any )?(that low|low|lower|less|below|under|down|beneath)\b|(\b(not|cannot|never|no way)\b|n'?t\b)[^.!?]{0,25}\b(come|go|drop|meet|do|take|sell|accept|let)\b[^.!?]{0,14}\b(low|lower|down|less|under|below|that)\b|\b(best|lowest|least) (i|we) (can|could|will|would)\b|\blow as i (can|could)\b|\b(no|not|never) (any )?(lower|less) than\b"
        ),
    ),
    (
        Remark.INTEREST,
        _any(
            r"\bare you (still )?interested\b|\b(any|have|what) questions\b|\bwhat (can|may) i (tell|do|help)\b|\b(can|may) i (help|answer|tell)\b",
            r"\byou (want|looking|ready|trying|wanted|needed|like to) (to |for |at )?(buy|purchase|rent|get|take|see|it|this|an?|the)\b|\byou('re| are) interested\b|\b(would|do) you (like|want|need)\b|\b(like|want|need) to know\b|\bmake (me )?an? offer\b|\bsubmit (your|an) offer\b|\binterested in\b",
        ),
    ),
    (
        Remark.COMPLAINT,
        _any(
            r"\btoo (low|little|cheap|far)\b|\b(lower|less) than (i|we|what)\b|\b(bit|little|really|so|pretty|very|kind of|quite|way) low\b|\btak(e|ing) a loss\b|\blose money\b|\bno can do\b|\bgoing for\b|\bfair price\b|\breasonable price\b|\bnot enough\b|\blow[- ]?ball\w*\b|\bworth (more|it|every|a lot)\b|\bneed (more|at least)\b"
            r"|\bcan(no|')t let\b|\bcannot let\b|\b(go|come) (higher|up)\b|\b(bit|little) more (than|for|money|like|on)\b|\b(need|want|get) more\b|\bmore like\b"
        ),
    ),
    (
        Remark.CONCESSION,
        _any(
            r"\b(come|go|went|coming) down\b|\bmeet you\b|\bbetter price\b|\b(price|deal) for you\b|\bfor you,? \W?\d|\bthrow in\b|\bi could do\b|\b(go|come|drop|bring|do|take|make)\b.{0,14}\blower\b|\blower (it|the (price|rent)|to)\b|\bdiscount\b|\bsplit (the|it)\b"
            r"|\bhalfway\b|\bcompromise\b|\bmake it \W?\d|\bi want this to work\b|\bhow does that sound\b"
        ),
    ),
)


_WRONG_SIDE: dict[Role, re.Pattern[str]] = {
    Role.SELLER: _any(
        r"\byou('re| are)? .{0,20}\binterested in (buying |purchasing |renting )?(my|buying|purchasing|renting)\b",
        r"\b(do|would|did) you (want|like) to (buy|purchase|rent)\b|\b(buy|rent|interested in) my (?!offer|price|proposal|idea)\w+",
        r"\bi('m| am) (selling|the seller)\b|\bmy (asking price|listing|ad)\b",
    ),
    Role.BUYER: _any(
        r"\bi('?m| am|t'?s)?\b.{0,12}\binterested in (buying|purchasing|renting|your (?!offer|price|propos|business|trade|idea|cash|bid))",
        r"\b(want|like|love|looking|hoping) to (buy|purchase|rent) (your|it|this|the|one)\b(?<!you want to buy it)(?<!you like to buy it)",
        r"\b(saw|about|from|read) your (ad|listing|post(ing)?)\b|\bi('m| am) the buyer\b",
        r"(^|[.!,]\s*)((hi|hello|hey|there|so)\W+)*(is|are) (it|this|that|these|they|the .{1,30}?) still (available|for sale|there)\b",
        r"\bdo you still have (it|this|the|them)\b",
    ),
}
"""Words that only the listener's own side would say."""
_TO_A_BUYER = _any(r"\b(do|would|are|if|so|did) you\b.{0,20}\b(want|like|love|looking|hoping|interested)\b")

_STILL_THERE = _any(r"\bstill (available|for sale|here|there|have (it|this|them|one))\b|\b(is|are) available\b")
_OFFERS = _any(
    r"\b(i|we) (can|could|would|will|might) (maybe |only |probably |really |still |also |then )*(do|pay|give|offer|go|spend)\b|\b(i|we)('d|'ll) (do|pay|give|offer|go)\b"
    r"|\b(like|willing|able|ready|happy|prepared) to (pay|offer|give|go|do)\b|\b(my|an) offer (is|of|would)\b|\b(offer|bring|give|pay) you \W?\d"
)
_BID = _any(r"\b(consider|take|accept|do|about|sell it for)\s+(like |maybe )?\W?\d")
_FOR_THE_PRICE = _any(
    r"\b(a bit|a little|too|rather|pretty|kind of|quite|a lot|very|so) (\w+ )?for (\W?\d|that (price|money|much))"
)
"""A complaint, whatever it is about."""
_HAIL = _any(r"^\W*(hi|hello|hey|hiya|howdy)( there| again)?\W*$")
_WELCOME = _any(
    r"^\W*(you('re| are| r)? )?(very |most |quite )?welcome\W*$|^\W*(my pleasure|don'?t mention it|no problem)\W*$"
)
_ASKS_LOWER = _any(
    r"\b(would|could|can|will|are|do) (you|u)\b[^.?!]{0,40}\b(lower|come down|go down|reduce|drop|discount|knock|cheaper|do better|better (price|deal)|less|take (some|something|anything) off)\b",
    r"\b(accept|take|consider|do) (a )?(bit |little |slightly |any |anything |something )?(less|lower)\b",
    r"\b(any|a|some) (chance of a |chance for a )?(discount|reduction)\b|\b(cheaper|lower|reduced|better) (price|rate|rent)\b|\bcheaper\b",
)
_DOES_NOT_DO = _any(
    r"(?<!see it )(?<!if it )(?<!how it )(?<!it )\b(will not|won'?t|wouldn'?t|does not|doesn'?t|not going to|can'?t) (really )?work\b(?! (with|on))"
    r"|\bit (will not|won'?t|wouldn'?t) work\b"
)
_ANY_QUESTIONS = _any(
    r"\b(any|have|what|other|more|your) questions\b|\b(anything|something|what) (else )?(that )?(you('d| would)? (like|want|need) to know|you (want|need) to (know|ask))\b"
    r"|\bwhat (would|do|did) (you|u) (like|want|need|wish) to (know|ask)\b|\bwhat (can|may|could|would you like me to) i? ?(tell|say)\b|\b(need|want|like) (any |some )?(more )?(info(rmation)?|details)\b"
)
_TAKES_IT = _any(r"\b(deal|agreed|take it|accept)\b")
_THANKS = _any(r"\b(thanks?|thx)\b")
_AVAILABLE = _any(
    r"\b(is|are|still)\b[^.?!]{0,40}\b(available|for sale|taken|gone|sold)\b",
    r"\bstill (have|selling|there|got|available)\b",
)
_AGREES_TO_IT = _any(
    r"\b(sounds|looks|seems) like (a )?(good |great |fair |nice )?(deal|plan)\b|\b(got|have) (yourself )?a deal\b|(?<!how )(?<!sure )(?<!and )(?<!if )\b(that|this|it)('d| would| will|'ll| can| should)? works?\b(?! (out|fine|well|great|like|perfectly))"
)
_WOULD_THAT_DO = _any(
    r"\b(anything|something|somewhere) (closer|close|near|around|lower|cheaper)\b|\b(is|would|does|will) (that|this(?! work\b)|it) (be |sound )?(good|ok|okay|fair|fine|alright|work|doable|acceptable|possible|suit)\b(?! (on|in|like|exactly|with (it|the|this|a)\b))|\bhow('s| does| do| would) (that|this|it|\W?\d+\w*) (sound|look|work)?|\bwhat do you say\b|\b(accept|take) (my (offer|price)|that (offer|price|much|amount))\b|\baccept (that|this|it)\b|\btake (that|it for|this)\b|\bhave a deal\b|\bdeal\?"
)

_IN_A_WORD = (
    (Remark.REFUSAL, _any(r"^\W*(no|nope|nah|never|not really)\b")),
    (
        Remark.AGREEMENT,
        _any(
            r"^\W*(ok(ay)?|yes|yeah|yep|yup|sure|fine|deal|great|alright|all right|good|cool|perfect|definitely"
            r"|absolutely|works|wonderful|awesome|excellent)\b",
            r"\b(that (would be|is) fine|i can do that|let'?s do (it|that)|you got it)\b",
        ),
    ),
)
"""What says yes or no only where hardly anything follows: "Yes, there is a park nearby" agrees to nothing."""
LONGEST_WORD_OF_ASSENT = 6
LONGEST_BARE_PRICE = 16
"""Words of a remark that is about its price, whatever else it says."""
_WANTING = (Remark.AVAILABLE, Remark.INTEREST)
MOST_TOPICS = 2
"""Things that one answer names."""
_BEFORE_PRICES = 4
"""Of the common remarks, those that matter more than a price in the same breath."""
_ASKS = re.compile(
    r"^\W*(?:(?:hi|hello|hey|hey there|ok|okay|so|and|but|oh|great|well|alright|yes|thanks|cool|good)\W+)*"
    r"(?:is|are|was|were|does|do|did|has|have|can|could|would|what|how|why|where|when|which|who|may|will(?= (?:you|u|it|this|that|they|there|we|i|the)\b))\b"
    r"|\btell me\b|\b(can|could) you (give|tell|send|show)\b|\b(any|have|other|more) questions\b|\b(i was |was |i'?m |just )(wondering|curious)\b|\bdo you know\b"
    r"|\b(how|what) (many|much|old|big|long|kind|about|is|are|size|colou?r)\b|\b(does|do|is) (it|they) (have|come|work)\b",
    re.IGNORECASE,
)
_NO_QUESTION = re.compile(
    r"\btell (you|u) what\??\W*$|^\W*(well\W+)?what (i|we|you) (\w+ )?(wrote|said|have|had|see)\b|^\W*why,? (yes|no|sure|of course|thank)|^\W*what a\b|^\W*how (nice|kind|lovely)\b",
    re.IGNORECASE,
)
_MARKS = ("?", "?)", "?!", ">", "?>", "/")
"""Ends of a question, as they are typed."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

_TOPICS = (
    "accessories accident address amenities appliances apps arms assembly attachments balcony basket bathrooms? batter(?:y|ies) "
    "bedrooms? bell box brakes brand(?!.new) bulbs? cables? carpet carrier (?<!that.)(?<!any.)case chairs? charger closets? commute condition cords? "
    "covers? cushions? deposit description dimensions display doors? drawers? engine equipment fabric "
    "features? finish floors? foam frame garage garden gears grips? handles? handlebars heater heating height history "
    "hood horsepower inches inspection instructions interior keys? kitchen lamp laundry lease leather legs length lens "
    "lights? lock manual material mattress measurements memory model motor neighbou?rhood noise packaging paint "
    "parking parts pedals photos? pictures? pieces plug pool porch quality remote repairs? screen seats? "
    "service shelves smell smoke space speakers? speed storage suspension tags? tank title tools trim "
    "transmission trunk tubes upholstery utilities view views warranty washer wheels? width wifi windows? wires? wood yard"
)
_TOPIC = re.compile(
    rf"(?<!\bi )(?<!\bwe )(?<!\byou )(?<!\bcan )(?<!\bcould )\b({'|'.join(_TOPICS.split())})\b", re.IGNORECASE
)
"""Things that people ask about or tell of: each may stand after "the"."""
_SPOKEN = {
    "smoke": "smoking",
    "door": "doors",
    "key": "keys",
    "tag": "tags",
    "problem": "problems",
    "inches": "size",
}
_MEANT: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, _any(pattern))
    for name, pattern in (
        (
            "location",
            r"\b(close|near|far) (to|from|by)\b|\bnear(by)?\b|\bwhere is (it|this|that|the)\b|\blocated\b|\blocation\b|\bmiles? (away|from|to|off)\b|\bwithin \w+ (miles?|blocks?|minutes)\b",
        ),
        ("material", r"\bmade (out )?(of|from)\b"),
        (
            "age",
            r"\bhow (old|new)\b|\bwhen (did you (buy|get|purchase|acquire)|was (it|this|that))\b|\bwhat year\b|\bhow long (have|has|did)\b|\bwas it new\b",
        ),
        ("size", r"\bhow (big|long|tall|wide|large|small)\b|\bsquare f(ee|oo)t\w*\b|\bsq\.? ?ft\b|\bsize\b|\bfit\b"),
        ("mileage", r"\bmileage\b|\bmiles\b"),
        ("weight", r"\bhow heavy\b|\bweigh\w*\b"),
        ("colour", r"\bcolou?rs?\b"),
        ("pets", r"\b(dogs?|cats?|pets?)\b"),
        ("tyres", r"\bt[iy]res?\b"),
        (
            "condition",
            r"\b(scratch\w*|stain\w*|dent(s|ed)?|dings?|damaged?|broken|crack(s|ed)?|rust\w*|tears?|flaws?|defects?|worn|wear|shape"
            r"|(any|some)thing wrong|wrong with|what'?s wrong|working|functional|functions?|(does|do|still|it|they) works?|how many times|used)\b",
        ),
    )
)


class Heard(NamedTuple):
    """What a remark was taken for."""

    kind: Remark
    topic: str = ""
    """What it asks about or tells of, as it may stand after "the"; empty where no rule knows."""
    cents: Cents | None = None
    """The price that it names as one's own."""
    also: Remark | None = None
    """What it asks besides, in a sentence of its own."""


_ASKED_TOGETHER = frozenset(
    {
        Remark.WELL_BEING,
        Remark.AVAILABLE,
        Remark.INTEREST,
        Remark.CONDITION,
        Remark.DELIVERY,
        Remark.REASON,
        Remark.ROOM,
        Remark.COMPLAINT,
        Remark.BARTER,
        Remark.OFFER,
    }
)
"""Questions that can be answered one after the other."""


def hear(heard: str, *, role: Role, currency: str, title: str = "") -> Heard:
    """What the words are, to a listener of `role`; the `title` of what is for sale is no part of what they say."""
    plain = without_title(heard, title)
    reading = find_prices(plain, currency=currency)
    kind = remark(plain, role=role, currency=currency)
    asked = _split(plain)[0]
    return Heard(
        kind,
        topic=_topics(asked or plain),
        cents=reading.last_cents,
        also=_besides(kind, asked, role=role, currency=currency),
    )


def without_title(heard: str, title: str) -> str:
    """The words with every run of two or more of the title's words as "it": "Long Haul Trucker" hauls nothing."""
    names = [word.lower() for word in _WORD.findall(title)]
    pairs = {*pairwise(names)}
    words = [(found[0].lower(), found.span()) for found in _WORD.finditer(heard)]
    if not pairs:
        return heard
    said, at, place = "", 0, 0
    while place < len(words):
        end = place
        while end + 1 < len(words) and (words[end][0], words[end + 1][0]) in pairs:
            end += 1
        if end > place:
            said += heard[at : words[place][1][0]] + "it"
            at = words[end][1][1]
        place = end + 1
    return said + heard[at:]


def _besides(kind: Remark, asked: str, *, role: Role, currency: str) -> Remark | None:
    """Another question that can be answered beside the first."""
    if kind not in _ASKED_TOGETHER or not asked:
        return None
    if kind is Remark.INTEREST and _question(asked, role=role, currency=currency) is None:
        return Remark.QUESTION
    found = (_question(sentence, role=role, currency=currency) for sentence in _SENTENCE.split(asked))
    return next(
        (other for other in found if other is not None and other is not kind and other in _ASKED_TOGETHER), None
    )


def remark(heard: str, *, role: Role, currency: str) -> Remark:
    """What kind of remark the words are, to a listener of `role`."""
    if not heard.strip():
        return Remark.NOTHING
    if found := _first(_COMMON[:_BEFORE_PRICES], heard):
        return found
    if _WRONG_SIDE[role].search(heard) and not (role is Role.BUYER and _TO_A_BUYER.search(heard)):
        return Remark.WRONG_SIDE
    if _HAIL.search(heard):
        return Remark.GREETING
    asked, told = _split(heard)
    if asked and (found := _question(asked, role=role, currency=currency)) is not None:
        if found is Remark.DEAL_ASKED and _priced(heard, currency):
            return Remark.OFFER
        return found
    return _statement(told if asked else heard, role=role, currency=currency, asking=bool(asked))


def _first(order: tuple[tuple[Remark, re.Pattern[str]], ...], heard: str) -> Remark | None:
    return next((kind for kind, pattern in order if pattern.search(heard)), None)


def _split(heard: str) -> tuple[str, str]:
    """The sentences that ask, empty where none does; and the rest."""
    sentences = _SENTENCE.split(heard)
    asking = [sentence.rstrip().endswith(_MARKS) and not _NO_QUESTION.search(sentence) for sentence in sentences]
    if not any(asking):
        asking = [bool(_ASKS.search(sentence)) and not _NO_QUESTION.search(sentence) for sentence in sentences]
    asked, told = (
        " ".join(sentence for sentence, asks in zip(sentences, asking, strict=True) if asks is wanted)
        for wanted in (True, False)
    )
    return asked, told


def _question(asked: str, *, role: Role, currency: str) -> Remark | None:
    """What is asked; None where only the whole remark can say what it is."""
    own = _SELLERS_EAR if role is Role.SELLER else _BUYERS_EAR
    interest = tuple(pair for pair in own if pair[0] in _WANTING)
    moving = tuple(pair for pair in own if pair[0] not in _WANTING)
    if found := _first(((Remark.REASON, _REASON), (Remark.BARTER, _BARTER)), asked):
        return found
    if _BID.search(asked) and _priced(asked, currency):
        return Remark.OFFER
    if found := _first(((Remark.ANY_QUESTIONS, _ANY_QUESTIONS), (Remark.ASKS_PRICE, _ASKS_PRICE)), asked):
        return found
    if _priced(asked, currency):
        return Remark.OFFER
    common = tuple(pair for pair in _COMMON[_BEFORE_PRICES:] if pair[0] not in (Remark.HARDSHIP, Remark.FAMILY))
    handover = tuple(pair for pair in _COMMON if pair[0] is Remark.DELIVERY)
    if role is Role.SELLER and _ASKS_LOWER.search(asked):
        return Remark.COMPLAINT
    if _ROOM.search(asked):  # A buyer that is asked whether it is flexible is asked how far it would go.
        return Remark.ROOM if role is Role.SELLER else Remark.PROBE
    first = (*handover, *interest) if role is Role.BUYER else ((Remark.AVAILABLE, _AVAILABLE),)
    order = (
        *first,
        *common,
        *moving,
        (Remark.DEAL_ASKED, _WOULD_THAT_DO),
        *((Remark.CONDITION, pattern) for _name, pattern in _MEANT[:7]),
        (Remark.CONDITION, _CONDITION),
        (Remark.CONDITION, _TOPIC),
        *interest,
        *(pair for pair in _AFTER if pair[0] is Remark.WELL_BEING),
    )
    found = _first(order, asked)
    # A buyer knows nothing of what it is asked about.
    return Remark.QUESTION if found is Remark.CONDITION and role is Role.BUYER else found


def _statement(heard: str, *, role: Role, currency: str, asking: bool) -> Remark:
    own = _SELLERS_EAR if role is Role.SELLER else _BUYERS_EAR
    priced, words = _priced(heard, currency), len(heard.split())
    if _WELCOME.search(heard):  # Nothing that wants an answer.
        return Remark.NOTHING
    if role is Role.BUYER and words <= LONGEST_BARE_PRICE and not priced and _STILL_THERE.search(heard):
        return Remark.CONDITION
    moves = tuple(pair for pair in own if pair[0] not in _WANTING)
    if role is Role.SELLER:  # Somebody who pleads says more than that the price is high.
        moves = (*(pair for pair in _COMMON if pair[0] is Remark.HARDSHIP), *moves)
    if found := _first(((Remark.REFUSAL, _DOES_NOT_DO), *moves), heard):
        return found
    if words <= LONGEST_WORD_OF_ASSENT and _THANKS.search(heard) and not _TAKES_IT.search(heard):
        return Remark.THANKS
    if role is Role.SELLER and _FOR_THE_PRICE.search(heard):
        return Remark.COMPLAINT
    if priced and not asking and (words <= LONGEST_BARE_PRICE or _OFFERS.search(heard)):
        return Remark.OFFER
    interest = tuple(pair for pair in own if pair[0] in _WANTING)
    told = ((Remark.CONDITION, _CONDITION), (Remark.CONDITION, _TOPIC)) if role is Role.BUYER else ()
    if asking:  # "Great, would you take it back?" is no agreement, and "Hello, is it new?" more than a greeting.
        return _first((*_COMMON[_BEFORE_PRICES:], *interest), heard) or Remark.QUESTION
    order = (
        (Remark.BARTER, _BARTER),
        (Remark.AGREEMENT, _AGREES_TO_IT),
        *_COMMON[_BEFORE_PRICES:],
        (Remark.ROOM, _ROOM),
        *interest,
        *told,
        *_AFTER,
    )
    if found := _first(order, heard):
        return found
    if words <= LONGEST_WORD_OF_ASSENT and (found := _first(_IN_A_WORD, heard)):
        return found
    return Remark.OFFER if priced else Remark.OTHER


def _priced(heard: str, currency: str) -> bool:
    mentions = find_prices(heard, currency=currency).mentions
    return any(mention.kind is ReadingKind.OFFER for mention in mentions)


def _topics(about: str) -> str:
    """The things that are asked about, two at most: "age and the condition"."""
    found: dict[str, re.Match[str]] = {}
    for name, pattern in _MEANT:
        if match := pattern.search(about):
            found[name] = match
    for match in _TOPIC.finditer(about):
        word = match[1].lower()
        found.setdefault(_SPOKEN.get(word, word), match)
    apart: list[tuple[str, re.Match[str]]] = []
    for name, match in found.items():
        if all(match.end() <= other.start() or match.start() >= other.end() for _name, other in apart):
            apart.append((name, match))
    first = sorted(apart[:MOST_TOPICS], key=lambda each: each[1].start())
    return " and the ".join(name for name, _match in first)
