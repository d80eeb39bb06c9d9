"""The operations page: how the site stands in figures that say by themselves what to do, for the staff.

Here: what is good, worth a look or bad (`OK`, `LOOK`, `ACT`), the sentence beside each figure, and the two addresses: the
page, and its figures alone, which it asks for again every ten seconds. Not here: reading the figures (`standing`, which
`/metrics` gives to Prometheus too).

Contract. Every figure carries the sentence of what to do when it is red, whatever it is now. What cannot be read is shown
as unknown with the reason, so that the page helps most when something is down; without a database alone there is none.
Nothing of a person, of a single room, of a prompt and no key is on it.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.turns import LEASE
from negotiation_site import standing
from negotiation_site.leaderboard.words import count
from negotiation_site.moderation.pages import staff_only
from negotiation_site.recent_errors import Noted
from training.services import HEARTBEAT_LIMIT

OK, LOOK, ACT, UNKNOWN = "ok", "look", "act", "unknown"
_WORST = (OK, UNKNOWN, LOOK, ACT)
AGAIN_S = 10
SLOW_QUEUE = timedelta(seconds=10)
STALE_QUEUE = timedelta(minutes=1)
SLOW_BEAT, DEAD_BEAT = 10, 60
"""Seconds without the clock's beat."""
SKEW_S = 2.0
FEW_ERRORS = 0.05
"""Share of calls that may fail."""
DISK_LOOK, DISK_ACT = 0.15, 0.05
"""Share of the disk that is free."""


@dataclass(frozen=True)
class Line:
    """One figure."""

    name: str
    value: str
    state: str
    advice: str
    """What to do when it is red."""

    @property
    def state_text(self) -> str:
        """The state in a word, for those who see no colours."""
        return {OK: _("in order"), LOOK: _("look"), ACT: _("act"), UNKNOWN: _("unknown")}[self.state]


@dataclass(frozen=True)
class Part:
    """A subject, with its figures."""

    key: str
    title: str
    note: str
    lines: tuple[Line, ...]

    @property
    def state(self) -> str:
        """The worst of its figures."""
        return max((line.state for line in self.lines), key=_WORST.index, default=OK)


@dataclass(frozen=True)
class Fault:
    """A line of the list of errors."""

    when: datetime
    what: str
    where: str
    request_id: str


@dataclass(frozen=True)
class Page:
    """Context `page` of `operations.html`."""

    parts: tuple[Part, ...]
    faults: tuple[Fault, ...]
    summary: str
    state: str
    read_at: datetime
    again_s: int = AGAIN_S


@require_GET
@never_cache
@staff_only
def operations(request: HttpRequest) -> HttpResponse:
    """The whole page."""
    return render(request, "operations.html", {"page": page(timezone.now())})


@require_GET
@never_cache
@staff_only
def figures(request: HttpRequest) -> HttpResponse:
    """The figures alone, for the page that asks again."""
    return render(request, "_operations.html", {"page": page(timezone.now())})


def page(now: datetime) -> Page:
    """Everything, read now."""
    broker = standing.broker()
    parts = (
        _queues(broker),
        _workers(broker, standing.workers()),
        _turns(standing.turns(now)),
        _rooms(standing.rooms(now)),
        _clock(standing.clock(now), broker),
        _models(standing.back_ends(now)),
        _devices(standing.training(now)),
        _disk(standing.disk()),
    )
    bad = [part.title for part in parts if part.state == ACT]
    odd = [part.title for part in parts if part.state == LOOK]
    if bad:
        summary, state = _("Something is to be done: %(parts)s.") % {"parts": ", ".join(bad)}, ACT
    elif odd:
        summary, state = _("Worth a look: %(parts)s.") % {"parts": ", ".join(odd)}, LOOK
    else:
        summary, state = _("Everything that can be seen is in order."), OK
    return Page(parts=parts, faults=tuple(map(_fault, standing.errors())), summary=summary, state=state, read_at=now)


# --- Subjects -----------------------------------------------------------------------------------------


def _queues(broker: standing.Broker) -> Part:
    title = _("Queues")
    if not broker.configured:
        note = _(
            "This is one process without Redis: no task is ever sent to another. Start make run, or set REDIS_URL."
        )
        return Part("queues", title, note, ())
    wants = {
        "agents": _(
            "Red: agents keep people waiting. Start another worker of this queue, or look at the models below."
        ),
        "default": _(
            "Red: exports and tournaments wait. Start another worker of this queue; people in rooms notice nothing."
        ),
        "gpu": _(
            "A task here is a run of training; it waits while another has the device. Red is a trainer that is down."
        ),
    }
    lines = [
        _line(
            _("Redis"),
            _("answers") if broker.answers else _("does not answer"),
            OK if broker.answers else ACT,
            _(
                "Red: start it again. Nothing is lost: pages look for themselves every 15 seconds, and the clock tells workers again."
            ),
        )
    ]
    for queue in broker.queues:
        oldest = "" if queue.oldest_s is None else _(", the next for %(time)s") % {"time": _time(queue.oldest_s)}
        waits = queue.oldest_s or 0
        state = OK if waits < SLOW_QUEUE.total_seconds() else LOOK if waits < STALE_QUEUE.total_seconds() else ACT
        if queue.name == "gpu" and state == ACT:
            state = LOOK
        value = ngettext("%(n)s task waits", "%(n)s tasks wait", queue.waiting) % {"n": count(queue.waiting)}
        lines.append(_line(queue.name, value + oldest, state, wants.get(queue.name, "")))
    return Part("queues", title, "", tuple(lines))


def _workers(broker: standing.Broker, workers: tuple[standing.Worker, ...] | None) -> Part:
    title = _("Workers")
    if workers is None:
        note = (
            _("Workers are asked over Redis, which does not answer.")
            if broker.configured
            else _("Workers are asked over Redis, which is not there.")
        )
        return Part("workers", title, note, ())
    served = {queue for worker in workers for queue in worker.queues}
    lines = [_line(worker.name, ", ".join(worker.queues), OK, "") for worker in workers]
    for queue in ("agents", "default"):
        if queue not in served:
            lines.append(
                _line(
                    queue,
                    _("no worker answers"),
                    ACT,
                    _("Start one: systemctl start parley-%(queue)s@1, or make run on one machine.") % {"queue": queue},
                )
            )
    if "gpu" not in served:
        lines.append(
            _line(
                "gpu",
                _("no trainer answers"),
                UNKNOWN,
                _("One that trains just now does not answer; without one, runs wait."),
            )
        )
    return Part("workers", title, "", tuple(lines))


def _turns(turns: standing.Turns) -> Part:
    oldest = turns.oldest_s or 0
    return Part(
        "turns",
        _("Agents' turns"),
        "",
        (
            _line(
                _("to be taken"),
                _("%(n)s, the oldest for %(time)s") % {"n": count(turns.queued), "time": _time(oldest)}
                if turns.queued
                else "0",
                OK if oldest < 5 else LOOK if oldest < 30 else ACT,
                _("Red: no worker takes them. Look whether one of the queue agents runs."),
            ),
            _line(_("pausing before they start"), count(turns.pausing), OK, ""),
            _line(_("being thought about"), count(turns.running), OK, ""),
            _line(
                _("of these, of a worker that died"),
                count(turns.expired),
                OK if not turns.expired else LOOK,
                _(
                    "A lease holds %(s)d seconds; the clock gives the turn to another worker. Many: a worker is killed again and again."
                )
                % {"s": LEASE.total_seconds()},
            ),
            _line(
                _("stuck"),
                count(turns.stuck),
                ACT if turns.stuck else OK,
                _(
                    "Red: past their time, and no default act was played. The clock is down, or a room's log is damaged: see its log."
                ),
            ),
            _line(
                _("default acts in the last hour"),
                count(turns.defaulted),
                LOOK if turns.defaulted else OK,
                _(
                    "Agents did not move in time and a plain act was played for them. Look at the models, then at the errors below."
                ),
            ),
        ),
    )


def _rooms(rooms: standing.Rooms) -> Part:
    clock = _("Red: nobody looked after them. Start a clock (manage.py clock); any number may run.")
    return Part(
        "rooms",
        _("Rooms"),
        "",
        (
            _line(_("in play"), count(rooms.live), OK, ""),
            _line(_("waiting for people"), count(rooms.waiting), OK, ""),
            _line(_("waiting past their time"), count(rooms.unfilled), ACT if rooms.unfilled else OK, clock),
            _line(_("people past their deadline"), count(rooms.overdue), ACT if rooms.overdue else OK, clock),
        ),
    )


def _clock(clock: standing.Clock, broker: standing.Broker) -> Part:
    advice = _("Red: deadlines, open seats and lost turns wait. Start one: systemctl start parley-clock, or make run.")
    if clock.beat_s is None:
        state = ACT if broker.answers else UNKNOWN
        beat = _line(_("last sweep"), _("none was heard of"), state, advice)
    else:
        state = OK if clock.beat_s < SLOW_BEAT else LOOK if clock.beat_s < DEAD_BEAT else ACT
        ago = _("%(time)s ago, on %(host)s") % {"time": _time(clock.beat_s), "host": clock.name}
        beat = _line(_("last sweep"), ago, state, advice)
    skew = _(
        "Red: the machines do not agree on the time, so deadlines come early or late. Run an NTP service on all of them."
    )
    lines = [beat]
    for name, seconds in (
        (_("the database's time, against this machine's"), clock.skew_s),
        (_("Redis's, against it"), broker.skew_s),
    ):
        if seconds is not None:
            lines.append(
                _line(
                    name, _("%(s)+.2f s") % {"s": round(seconds, 2) + 0.0}, OK if abs(seconds) < SKEW_S else ACT, skew
                )
            )
    return Part("clock", _("Clock"), "", tuple(lines))


def _models(found: tuple[standing.BackEnd, ...]) -> Part:
    if not found:
        note = _("No language model is configured; scripted agents need none. PARLEY_LLM_NAME_URL names one.")
        return Part("models", _("Language models"), note, ())
    lines = []
    for each in found:
        failed = each.errors / each.calls if each.calls else 0.0
        if each.reachable is False:
            state, value = ACT, _("cannot be reached")
        else:
            state = OK if failed <= FEW_ERRORS else LOOK if failed < 0.5 else ACT
            value = _("reached") if each.reachable else _("not configured any more") if not each.model else _("here")
        parts = [value, ngettext("%(n)s call", "%(n)s calls", each.calls) % {"n": count(each.calls)}]
        if each.calls:
            parts.append(_("%(n)s not answered") % {"n": count(each.errors)})
        if each.p50_ms is not None and each.p95_ms is not None:
            parts.append(
                _("half within %(p50)s, 95 %% within %(p95)s") % {"p50": _ms(each.p50_ms), "p95": _ms(each.p95_ms)}
            )
        if each.cost_micros is not None:
            parts.append(_("cost %(cost).2f") % {"cost": each.cost_micros / 1e6})
        lines.append(
            _line(
                f"{each.name} ({each.model})" if each.model else each.name,
                " · ".join(parts),
                state,
                _(
                    "Red: start its server, or look at its limits. Meanwhile narrators speak in plain words, and agents that decide play default acts."
                ),
            )
        )
    return Part("models", _("Language models"), _("Over the last hour."), tuple(lines))


def _devices(training: standing.Training) -> Part:
    lines = []
    for device, run, heard_s in training.held:
        dead = heard_s is None or heard_s > HEARTBEAT_LIMIT.total_seconds()
        value = _("held by the run %(run)s") % {"run": run}
        if heard_s is not None:
            value += _(", heard of %(time)s ago") % {"time": _time(heard_s)}
        lines.append(
            _line(
                device,
                value,
                LOOK if dead else OK,
                _("Red: its watcher is silent; the clock fails the run and frees the device. Resume it on its page."),
            )
        )
    lines.append(_line(_("runs that wait"), count(training.waiting), OK, ""))
    for card in training.cards:
        used = _("%(used)s of %(all)s in use, busy %(busy)d %%") % {
            "used": filesizeformat(card.used),
            "all": filesizeformat(card.size),
            "busy": round(100 * card.busy),
        }
        lines.append(_line(card.name, used, OK, ""))
    note = "" if training.cards else _("This machine shows no graphics processor.")
    return Part("devices", _("Training"), note, tuple(lines))


def _disk(disk: standing.Disk) -> Part:
    share = disk.free / disk.size if disk.size else 0.0
    lines = [
        _line(
            _("free"),
            _("%(free)s of %(all)s") % {"free": filesizeformat(disk.free), "all": filesizeformat(disk.size)},
            OK if share >= DISK_LOOK else LOOK if share >= DISK_ACT else ACT,
            _(
                "Red: moves are refused when it is full. Delete exports on their page and old runs in the folder runs, or give it more room."
            ),
        )
    ]
    if disk.database is not None:
        lines.append(_line(_("database"), filesizeformat(disk.database), OK, ""))
    for name, size, more in disk.folders:
        value = _("more than %(size)s") % {"size": filesizeformat(size)} if more else filesizeformat(size)
        lines.append(_line(name, value, OK, ""))
    return Part("disk", _("Disk"), "", tuple(lines))


_BLANKS = re.compile(r"%(\(\w+\))?[a-z]")
"""Places of values in a message, which are not noted."""


def _fault(noted: Noted) -> Fault:
    told = _BLANKS.sub("…", noted.message)
    told = told if any(letter.isalpha() for letter in told) else ""
    what = ": ".join(part for part in (noted.kind, told) if part) or noted.logger
    return Fault(
        when=datetime.fromtimestamp(noted.at, UTC),
        what=what,
        where=_("%(place)s, in the %(role)s process") % {"place": noted.place, "role": noted.role},
        request_id=noted.request_id,
    )


def _line(name: str, value: str, state: str, advice: str) -> Line:
    return Line(name, value, state, advice)


def _time(seconds: float) -> str:
    if seconds < 120:
        return _("%(n)d s") % {"n": max(0, round(seconds))}
    if seconds < 7200:
        return _("%(n)d min") % {"n": round(seconds / 60)}
    return _("%(n)d h") % {"n": round(seconds / 3600)}


def _ms(ms: int) -> str:
    return _("%(n)d ms") % {"n": ms} if ms < 1000 else _("%(n).1f s") % {"n": ms / 1000}
