"""Erasing a person: from rooms, episodes, logs, sessions and accounts. The economic record stays.

Here: the one rule of what goes. Not here: who may ask for it (`accounts` for oneself, a command for
whoever runs the server), the tables of packages above this one: they listen to `signals.words_erased` and
`signals.person_erased`.

What goes: the account and the pseudonym; every word the person wrote; what agents at the same tables
thought; what others at those tables said with the person's name or four words of theirs in a row; the
prompts and answers of models in those rooms; sessions, traces of signing in, lines of the
administration's journal. What stays: moves, prices, values, outcomes and others' own words. A record's
hash and its replay are the same before and after.

Data sets that were made on the site and hold the person lose their files (`signals.person_erased`). What was given away
before (downloads, folders that a command wrote, backups, models trained on open games) is out of reach.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import QuerySet

from markets import services
from markets.engine.protocol import IllegalAction, Leave
from markets.identity import SESSION_KEY
from markets.models import (
    AgentTurn,
    Episode,
    EpisodeText,
    ImportedParty,
    ImportedText,
    Participant,
    Room,
    RoomStatus,
    Seat,
    SeatKind,
    Utterance,
)
from markets.signals import party_erased, person_erased, words_erased

AT_A_TIME = 500
"""Rooms, episodes and rows of one statement."""
QUOTE_WORDS = 4
"""Words of a person in a row that make a quotation."""
_WORD = re.compile(r"[\w']+")


class ErasureError(Exception):
    """Somebody who cannot be erased; the sentence is for whoever asked."""


@dataclass
class Erased:
    """What went, or would go."""

    rooms: int = 0
    episodes: int = 0
    texts: int = 0
    """Rows of the person's own words."""
    others_texts: int = 0
    """Rows of others in which something was emptied."""
    model_calls: int = 0
    """Calls to models whose prompt and answer were emptied."""
    sessions: int = 0
    account: bool = False
    imported_dialogues: int = 0
    exports: int = 0
    """Data sets on this server that held the person: their files went, their rows and hashes stay."""


@dataclass(frozen=True)
class Traces:
    """What a person can be recognised by in others' words."""

    names: tuple[str, ...]
    quotes: set[tuple[str, ...]] = field(default_factory=set)

    def of(self, texts: Iterable[str]) -> "Traces":
        """With the runs of words in `texts` added."""
        for text in texts:
            self.quotes.update(_runs(text))
        return self

    def in_text(self, text: str) -> bool:
        """Whether something of the person is in `text`."""
        lowered = text.casefold()
        return any(
            re.search(rf"(?<!\w){re.escape(name)}(?!\w)", lowered) for name in self.names
        ) or not self.quotes.isdisjoint(_runs(text))


def _runs(text: str) -> set[tuple[str, ...]]:
    found = _WORD.findall(text.casefold())
    return {tuple(found[at : at + QUOTE_WORDS]) for at in range(len(found) - QUOTE_WORDS + 1)}


def erase(*, participant: Participant | None, account: User | None = None) -> Erased:
    """Erase a person who played, who has an account, or both. Games still going are left first."""
    if participant is not None:
        account = account or participant.account
        _leave_everything(participant)
    with transaction.atomic():
        erased = Erased() if participant is None else _erase_from_tables(participant, account)
        if account is not None:
            _erase_account(account)
            erased.account = True
    return erased


def foreseen(participant: Participant) -> Erased:
    """What `erase` would take of somebody's own, without taking it."""
    rooms, episodes = _places(participant)
    return Erased(
        rooms=len(rooms),
        episodes=len(episodes),
        texts=sum(_own_words(participant)),
        account=participant.account_id is not None,
    )


def erase_imported(pseudonym: str) -> Erased:
    """Erase one party of an imported dialogue, in every corpus that holds it: its pseudonym and its words."""
    with transaction.atomic():
        parties = list(ImportedParty.objects.filter(pseudonym=pseudonym).select_related("dialogue__corpus"))
        erased = Erased(imported_dialogues=len(parties))
        names = sorted({party.dialogue.corpus.name for party in parties})
        for party in parties:
            erased.texts += ImportedText.objects.filter(dialogue=party.dialogue_id, party=party.party).delete()[0]
            party.delete()
        withdrawn = party_erased.send(sender=ImportedParty, corpora=tuple(names))
        erased.exports = sum(int(count or 0) for _receiver, count in withdrawn)
    return erased


# --- Games that are going -------------------------------------------------------------------------------


def _leave_everything(participant: Participant) -> None:
    seats = Seat.objects.filter(participant=participant, kind=SeatKind.PERSON).exclude(room__status=RoomStatus.ENDED)
    for seat in seats.select_related("room__market"):
        with services.damage_noted(seat.room):
            _leave(seat)


def _leave(seat: Seat) -> None:
    try:
        if seat.room.status == RoomStatus.WAITING:
            services.cancel_room(seat=seat)
        else:
            services.submit_action(room=seat.room, seat=seat, action=Leave(), client_move_id=f"erased-{seat.pk}")
    except (services.RoomError, IllegalAction):
        return  # It ended, or began, in this moment, or this buyer has gone already; the chair is emptied below.


# --- Words ----------------------------------------------------------------------------------------------


def _places(participant: Participant) -> tuple[dict[int, str], dict[int, str]]:
    """Rooms and episodes by primary key, with the party that the person was there."""
    rooms = dict(participant.seats.values_list("room_id", "party"))
    episodes = dict(participant.episode_seats.values_list("episode_id", "party"))
    for number, room in Episode.objects.filter(room__in=rooms).values_list("pk", "room_id"):
        if room is not None:
            episodes.setdefault(number, rooms[room])
    return rooms, episodes


def _own_words(participant: Participant) -> tuple[int, int]:
    rooms, episodes = _places(participant)
    return (
        sum(rows.count() for rows in _own(Utterance, "room", rooms)),
        sum(rows.count() for rows in _own(EpisodeText, "episode", episodes)),
    )


def _own(table: Any, place: str, places: Mapping[int, str]) -> Iterator[QuerySet[Any]]:
    """What somebody said, many places at a time: somebody may have played thousands of games."""
    by_party: dict[str, list[int]] = {}
    for number, party in places.items():
        by_party.setdefault(party, []).append(number)
    for party, numbers in sorted(by_party.items()):
        for some in _some(numbers):
            yield table.objects.filter(**{f"{place}__in": some}, party=party)


def _some(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), AT_A_TIME):
        yield numbers[start : start + AT_A_TIME]


def _erase_from_tables(participant: Participant, account: User | None) -> Erased:
    rooms, episodes = _places(participant)
    erased = Erased(rooms=len(rooms), episodes=len(episodes))
    traces = Traces(names=_names(participant, account))
    for own in (*_own(Utterance, "room", rooms), *_own(EpisodeText, "episode", episodes)):
        traces.of(own.values_list("talk", flat=True))
        erased.texts += own.delete()[0]
    erased.others_texts += _cleared(Utterance, "room", list(rooms), traces)
    erased.others_texts += _cleared(EpisodeText, "episode", list(episodes), traces)
    AgentTurn.objects.filter(room__in=rooms).exclude(error="").update(error="")
    answers = words_erased.send(sender=Room, room_ids=tuple(rooms))
    erased.model_calls = sum(int(emptied or 0) for _receiver, emptied in answers)
    withdrawn = person_erased.send(sender=Participant, participant=participant)
    erased.exports = sum(int(count or 0) for _receiver, count in withdrawn)
    erased.sessions = _end_sessions(participant)
    _forget_in_journal(participant)
    participant.delete()
    return erased


def _names(participant: Participant, account: User | None) -> tuple[str, ...]:
    names = [participant.pseudonym]
    if account is not None:
        names += [account.get_username(), account.first_name, account.last_name, account.email]
    return tuple({name.strip().casefold() for name in names if len(name.strip()) > 2})


def _cleared(table: Any, place: str, numbers: Sequence[int], traces: Traces) -> int:
    """Empty what others at these places thought, and what they said with the person's words; how many rows it was."""
    cleared = 0
    for some in _some(numbers):
        gone, thought = [], []
        for row in table.objects.filter(**{f"{place}__in": some}):
            named = bool(row.talk) and traces.in_text(row.talk)
            if row.talk and not named:
                if row.thought:
                    thought.append(row.pk)
            elif named or row.thought:
                gone.append(row.pk)
        for those in _some(thought):
            table.objects.filter(pk__in=those).update(thought="")
        for those in _some(gone):
            table.objects.filter(pk__in=those).delete()
        cleared += len(gone) + len(thought)
    return cleared


# --- Who it was -----------------------------------------------------------------------------------------


def _end_sessions(participant: Participant) -> int:
    """End the sessions that play as this person."""
    ended = 0
    for session in Session.objects.iterator(chunk_size=500):
        if session.get_decoded().get(SESSION_KEY) == participant.pk:
            session.delete()
            ended += 1
    return ended


def _forget_in_journal(row: Participant | User) -> None:
    """Remove what the administration noted about a row."""
    kind = ContentType.objects.get_for_model(row)
    LogEntry.objects.filter(content_type=kind, object_id=str(row.pk)).delete()


def _erase_account(account: User) -> None:
    name = account.get_username()
    for table in (AccessAttempt, AccessLog, AccessFailureLog):
        table.objects.filter(username=name).delete()
    for session in Session.objects.iterator(chunk_size=500):
        if session.get_decoded().get("_auth_user_id") == str(account.pk):
            session.delete()
    _forget_in_journal(account)
    account.delete()
