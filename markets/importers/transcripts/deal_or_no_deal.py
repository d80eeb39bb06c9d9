"""Deal or No Deal (Lewis et al. 2017): two people divide books, hats and balls.

Text files, a line a view. The same dialogue stands there from both sides, in two layouts: `data.txt`
(counts and values, the words, what this side chose, its reward and whether both chose alike, the
partner's counts and values) and the tagged one of `val.txt` (both choices). Views of one dialogue become
one; party 1 is who spoke first. Views that name different ends without a deal (one side left while the
other chose) are taken for the one that says more; a deal and no deal of one dialogue contradict each other. Where the two chose differently both get nothing, whatever the line
gives as reward; a reward is published for those who agreed only. A label may say `agree` of no deal.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from markets.importers.transcripts import reading, records
from markets.importers.transcripts.reading import BadRecord, Repeat
from markets.importers.transcripts.records import Dialogue, Event, Outcome, Side, Text, Transcript, Units

FORMAT = "deal-or-no-deal"
ISSUES = ("book", "hat", "ball")
PARTIES = ("party-1", "party-2")
MOST = 100
"""Units and points that a line may name."""

_SIX = r"((?:\d{1,9} ){5}\d{1,9})"
_PLAIN = re.compile(rf"{_SIX} (.*<selection>) (.*) {_SIX}\s*")
_TAGGED = re.compile(
    rf"<input> {_SIX} </input> <dialogue> (.*<selection>) </dialogue> "
    rf"<output> (.*) </output> <partner_input> {_SIX} </partner_input>\s*"
)
_CHOICE = re.compile(r"item0=(\d{1,9}) item1=(\d{1,9}) item2=(\d{1,9})")
_CHOSEN = re.compile(rf"{_CHOICE.pattern} <eos> reward=(\d{{1,9}}) (agree|disagree)")

Ending = Literal["agree", "disagree", "no agreement", "disconnect"]


class _View(NamedTuple):
    """One line."""

    side: int
    """0 of who spoke first."""
    counts: tuple[int, ...]
    values: tuple[tuple[int, ...], tuple[int, ...]]
    """By side."""
    turns: tuple[tuple[int, str], ...]
    """Side and words; the last has none."""
    ending: Ending
    choices: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    """By side, as far as the line says."""
    refused: bool
    """Whether this side chose to have no agreement."""
    reward: int | None

    @property
    def key(self) -> str:
        told = (self.counts, self.values, self.turns)
        return hashlib.sha256(repr(told).encode("utf-8", "replace")).hexdigest()[:32]


_SAYS_MORE: tuple[Ending, ...] = ("agree", "no agreement", "disagree", "disconnect")


@dataclass
class _Seen:
    """What the views read so far say of one dialogue."""

    place: str
    first: _View
    ending: Ending
    choices: list[tuple[int, ...] | None] = field(default_factory=lambda: [None, None])
    rewards: list[int | None] = field(default_factory=lambda: [None, None])
    refused: list[bool] = field(default_factory=lambda: [False, False])


def read(path: Path) -> Iterator[tuple[str, Transcript] | BadRecord | Repeat]:
    """Every view of the files: bad ones and repeats as they come, then the dialogues in order of their first view."""
    seen: dict[str, _Seen] = {}
    for file in reading.data_files(path, suffix=".txt"):
        for raw in reading.lines(file):
            if isinstance(raw, BadRecord):
                yield raw
                continue
            try:
                view = _view(reading.words(raw.content, what="line"))
                known = seen.get(view.key)
                if known is None:
                    seen[view.key] = known = _Seen(raw.place, view, view.ending)
                    _add(known, view)
                else:
                    _add(known, view)
                    yield Repeat(raw.place)
            except reading.RecordError as problem:
                yield BadRecord(raw.place, str(problem))
    for key, dialogue in seen.items():
        yield dialogue.place, _transcript(key, dialogue)


def _view(line: str) -> _View:
    plain, tagged = _PLAIN.fullmatch(line), _TAGGED.fullmatch(line)
    match = tagged or plain
    if match is None:
        raise reading.RecordError("This line is no view of a dialogue.")
    own, said, ended, partner = match.groups()
    counts, own_values = _task(own)
    partner_counts, partner_values = _task(partner)
    if counts != partner_counts:
        raise reading.RecordError("The two sides do not divide the same things.")
    pieces = said.split(" <eos> ")
    turns = []
    for piece in pieces:
        who, colon, text = piece.partition(":")
        if not colon or who not in ("YOU", "THEM"):
            raise reading.RecordError("A turn is neither by YOU nor by THEM.")
        turns.append((who == "YOU", text.strip()))
    mine = turns[0][0]
    side = 0 if mine else 1
    ending, choice, partners, refused, reward = _tagged_ending(ended) if tagged else _plain_ending(ended)
    for chosen in (choice, partners):
        if chosen is not None and any(units > most for units, most in zip(chosen, counts, strict=True)):
            raise reading.RecordError("A side chose more than there was.")
    values = (own_values, partner_values)
    choices = (choice, partners)
    return _View(
        side=side,
        counts=counts,
        values=values if mine else (values[1], values[0]),
        turns=tuple((0 if you == mine else 1, "" if text == "<selection>" else text) for you, text in turns),
        ending=ending,
        choices=choices if mine else (choices[1], choices[0]),
        refused=refused,
        reward=reward,
    )


def _task(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    numbers = [reading.count(number, what="count or value", limit=MOST) for number in text.split()]
    return tuple(numbers[::2]), tuple(numbers[1::2])


_Told = tuple[Ending, tuple[int, ...] | None, tuple[int, ...] | None, bool, int | None]


def _plain_ending(text: str) -> _Told:
    chosen = _CHOSEN.fullmatch(text)
    if chosen:
        *units, reward, label = chosen.groups()
        agreed = label == "agree"
        own = tuple(map(int, units))
        return ("agree" if agreed else "disagree"), own, None, False, int(reward) if agreed else None
    match text:
        case "no agreement <eos> reward=no agreement agree":
            return "no agreement", None, None, True, None
        case "no agreement <eos> reward=no agreement disagree":
            return "disagree", None, None, True, None
        case "disconnect <eos> reward=disconnect agree" | "disconnect <eos> reward=disconnect disagree":
            return "disconnect", None, None, False, None
    raise reading.RecordError("The end of this line is none that this corpus has.")


def _tagged_ending(text: str) -> _Told:
    first, second = text.split()[:3], text.split()[3:]
    own, partners = _CHOICE.fullmatch(" ".join(first)), _CHOICE.fullmatch(" ".join(second))
    if own and partners:
        return "agree", tuple(map(int, own.groups())), tuple(map(int, partners.groups())), False, None
    if len(first) == len(second) == 3 and len({*first, *second}) == 1:
        match first[0]:
            case "<disagree>":
                return "disagree", None, None, False, None
            case "<no_agreement>":
                return "no agreement", None, None, True, None
            case "<disconnect>":
                return "disconnect", None, None, False, None
    raise reading.RecordError("The end of this line is none that this corpus has.")


def _add(seen: _Seen, view: _View) -> None:
    """Take in what a view says. Raises `RecordError` where another view says otherwise; then nothing is taken."""
    if (view.ending == "agree") != (seen.ending == "agree"):
        raise reading.RecordError(f"This line ends otherwise than {seen.place}, which is of the same dialogue.")
    for known, told in (*zip(seen.choices, view.choices, strict=True), (seen.rewards[view.side], view.reward)):
        if known is not None and told is not None and known != told:
            raise reading.RecordError(f"This line says otherwise than {seen.place}, which is of the same dialogue.")
    choices = [known if told is None else told for known, told in zip(seen.choices, view.choices, strict=True)]
    both = [choice for choice in choices if choice is not None]
    if view.ending == "agree" and len(both) == 2 and not _adds_up(both, view.counts):
        raise reading.RecordError("The two choices are said to agree and do not add up to what there was.")
    seen.choices = choices
    seen.ending = max(seen.ending, view.ending, key=_SAYS_MORE.index)
    if view.reward is not None:
        seen.rewards[view.side] = view.reward
    seen.refused[view.side] = seen.refused[view.side] or view.refused


def _adds_up(choices: list[tuple[int, ...]], counts: tuple[int, ...]) -> bool:
    return all(sum(units) == there for units, there in zip(zip(*choices, strict=True), counts, strict=True))


_OUTCOMES: dict[Ending, Outcome] = {
    "agree": "deal",
    "disagree": "disagreement",
    "no agreement": "no_deal",
    "disconnect": "unfinished",
}


def _transcript(key: str, seen: _Seen) -> Transcript:
    view = seen.first
    choices = list(seen.choices)
    if seen.ending == "agree":
        for side in (0, 1):
            other = choices[1 - side]
            if choices[side] is None and other is not None:
                choices[side] = tuple(there - units for there, units in zip(view.counts, other, strict=True))
    spoken = [(PARTIES[side], text) for side, text in view.turns if text]
    events = [Event(n=n, party=party, type="message") for n, (party, _text) in enumerate(spoken, start=1)]
    for side, party in enumerate(PARTIES):
        told = seen.choices[side]
        if told is not None:
            events.append(Event(n=len(events) + 1, party=party, type="choose", units={party: _units(told)}))
        elif seen.refused[side]:
            events.append(Event(n=len(events) + 1, party=party, type="leave"))
    log = tuple(events)
    outcome = _OUTCOMES[seen.ending]
    dialogue = Dialogue(
        format=FORMAT,
        key=key,
        outcome=outcome,
        sides=tuple(
            records.counted(_side(seen, side, choices[side], outcome), log, list_price_cents=None) for side in (0, 1)
        ),
        events=log,
        title="Books, hats and balls for two",
        category="division",
        issues=_units(view.counts),
        notes={"at_ms": records.NO_TIMES, "started_at": records.NO_TIMES, "duration_ms": records.NO_TIMES},
    )
    return Transcript(
        dialogue=dialogue,
        texts=tuple(Text(n=n, party=party, kind="said", text=text) for n, (party, text) in enumerate(spoken, start=1)),
    )


def _units(numbers: tuple[int, ...]) -> Units:
    return dict(zip(ISSUES, numbers, strict=True))


def _side(seen: _Seen, side: int, choice: tuple[int, ...] | None, outcome: Outcome) -> Side:
    values = seen.first.values[side]
    notes: dict[str, str] = {}
    payoff: int | None = 0
    if outcome == "deal" and choice is not None:
        payoff = sum(value * units for value, units in zip(values, choice, strict=True))
    elif outcome == "disagreement":
        notes["payoff_points"] = "The two chose differently, which pays both nothing."
    elif outcome == "unfinished":
        payoff = None
        notes["payoff_points"] = "The dialogue breaks off before its end."
    return Side(
        party=PARTIES[side],
        role="",
        kind="person",
        points=_units(values),
        no_deal_points=0,
        units=_units(choice) if outcome == "deal" and choice is not None else None,
        payoff_points=payoff,
        published_payoff=seen.rewards[side],
        notes=notes,
    )
