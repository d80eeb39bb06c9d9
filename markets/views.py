"""Pages of rooms: the room and its result, replay, record, share link, lobby, history, market list.

Each view finds out who is asking, makes one call into `services` or `selectors`, and renders. A room
is shown to the people who sit in it and to nobody else; to a stranger it does not exist.
"""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from markets import (
    export,
    identity,
    market_page,
    presentation,
    room_frames,
    room_page,
    selectors,
    services,
    wire,
)
from markets import result as results
from markets.engine import metrics
from markets.engine.protocol import Role, decode_log
from markets.engine.scenarios import decode_scenario
from markets.models import Room, RoomStatus, Seat, SeatKind
from markets.services import RoomError

GAMES_A_PAGE = 20


def _seat(request: HttpRequest, public_id: str) -> Seat:
    """The chair of whoever asks. A stranger is told that there is nothing here."""
    seat = selectors.seat_of(public_id=public_id, participant=identity.participant_of(request.session))
    if seat is None:
        raise Http404(_("There is no such room, or you do not sit in it."))
    return seat


def origin_of(request: HttpRequest) -> str:
    """`https://host` as the browser sees it."""
    return f"{request.scheme}://{request.get_host()}"


# --- The room ---------------------------------------------------------------------------------------


@require_GET
@never_cache
def room(request: HttpRequest, public_id: str) -> HttpResponse:
    """The live room of a seat, or its result."""
    seat = _seat(request, public_id)
    view = selectors.seat_view(seat)
    ended = results.result(seat, view, selectors.revealed(seat.room)) if view.ended else None
    page = replace(
        room_page.room_page(view, origin=origin_of(request), result=ended),
        report_url=reverse("room-report", args=[public_id]),
    )
    return render(request, "markets/room.html", {"page": page})


@require_GET
@never_cache
def room_view(request: HttpRequest, public_id: str) -> JsonResponse:
    """The view frame as JSON, for a page that has no socket."""
    seat = _seat(request, public_id)
    after = request.GET.get("after", "0")
    number = int(after) if after.isdecimal() and len(after) < 10 else 0
    services.touch_seat(seat=seat)
    frame = wire.view_frame(selectors.seat_view(seat), after=number, origin=origin_of(request), now=timezone.now())
    return JsonResponse(frame)


@require_POST
def room_act(request: HttpRequest, public_id: str) -> JsonResponse:
    """One frame as a POST, for a page that has no socket; answered as on the socket."""
    seat = _seat(request, public_id)
    try:
        text = request.body.decode("utf-8")
        frame = wire.decode(text)
        reply = room_frames.answer(seat, frame, origin=origin_of(request), now=timezone.now())
    except UnicodeDecodeError:
        return JsonResponse(wire.error("bad_frame", _("That message is not readable text.")))
    except wire.BadFrame as error:
        return JsonResponse(wire.error("bad_frame", str(error)))
    except RoomError as error:
        return JsonResponse(wire.error(error.code, error.sentence))
    return JsonResponse(reply or {"type": "pong"})


@require_POST
def room_cancel(request: HttpRequest, public_id: str) -> HttpResponse:
    """The host gives a room up in which nobody else has sat down yet."""
    seat = _seat(request, public_id)
    try:
        services.cancel_room(seat=seat)
    except RoomError as error:
        messages.error(request, error.sentence)
        return redirect("room", public_id=public_id)
    messages.info(request, _("Your seat is given up and the link leads nowhere now."))
    return redirect("market", slug=seat.room.market.slug)


@require_GET
@never_cache
def room_result(request: HttpRequest, public_id: str) -> HttpResponse:
    """The result alone, for the page that has just seen the end."""
    seat = _seat(request, public_id)
    view = selectors.seat_view(seat)
    if not view.ended:
        raise Http404(_("This negotiation is not over yet."))
    ended = results.result(seat, view, selectors.revealed(seat.room))
    return render(request, "markets/_result.html", {"result": ended})


@require_POST
def room_consent(request: HttpRequest, public_id: str) -> HttpResponse:
    """Who may use this game; before the first move and at any time later."""
    seat = _seat(request, public_id)
    version = request.POST.get("version", "")
    if version != presentation.CONSENT_VERSION:
        return HttpResponse(_("The wording has changed; reload the page and choose again."), status=400)
    try:
        services.choose_consent(seat=seat, scope=request.POST.get("scope", ""), version=version)
    except RoomError as error:
        return HttpResponse(error.sentence, status=400)
    if not request.headers.get("HX-Request"):
        return redirect("room", public_id=public_id)
    consent = room_page.consent(public_id=public_id, scope=seat.consent_scope)
    return render(request, "markets/_consent.html", {"consent": consent})


@require_GET
@never_cache
def room_replay(request: HttpRequest, public_id: str) -> HttpResponse:
    """The finished room, step by step."""
    seat = _seat(request, public_id)
    view = selectors.seat_view(seat)
    if not view.ended:
        return redirect("room", public_id=public_id)
    page = results.replay_page(seat, view, selectors.revealed(seat.room))
    return render(request, "markets/replay.html", {"page": page})


@require_GET
@never_cache
def room_record(request: HttpRequest, public_id: str) -> HttpResponse:
    """The record of a finished room as JSON, with the words that this seat was told; a buyer among other people
    gets what concerns itself."""
    seat = _seat(request, public_id)
    if seat.room.status != RoomStatus.ENDED:
        raise Http404(_("A room has a record once it is over."))
    if not seat.room.market.reveals_values:
        raise Http404(_("This market keeps its records: they hold what it was worth to the other side."))
    revealed = selectors.revealed(seat.room)
    if revealed.beside_people(seat.party):
        body = export.record_of_seat(revealed.episode, seat.party)
    else:
        heard = {event.n for event in selectors.seat_view(seat).events}
        body = export.record(revealed.episode, hears=heard)
    response = HttpResponse(json.dumps(body, ensure_ascii=False, indent=2), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="parley-{public_id}.json"'
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def room_join(request: HttpRequest, public_id: str, token: str) -> HttpResponse:
    """A share link. Looking at it tells what it is; taking the seat is a POST."""
    room = Room.objects.filter(public_id=public_id).select_related("market").first()
    seat = None if room is None else Seat.objects.filter(room=room, join_token=token).first()
    if room is None or seat is None:
        raise Http404(_("This link does not lead to a seat."))
    mine = selectors.seat_of(public_id=public_id, participant=identity.participant_of(request.session))
    if mine is not None and mine.pk == seat.pk:
        return redirect("room", public_id=public_id)
    error = ""
    if request.method == "POST":
        try:
            services.join_room(room=room, token=token, participant=identity.ensure_participant(request.session))
            return redirect("room", public_id=public_id)
        except RoomError as refused:
            error = refused.sentence
    elif mine is not None:
        error = _("You already sit in this room; send the link to somebody else.")
    elif room.status == RoomStatus.ENDED:
        error = _("This negotiation is over.")
    elif seat.kind != SeatKind.OPEN:
        error = _("Somebody else has taken this seat.")
    page = market_page.join_page(seat, room.market, error=error)
    return render(request, "markets/join.html", {"page": page}, status=409 if error else 200)


# --- Lobby and history ------------------------------------------------------------------------------


@require_GET
@never_cache
def lobby(request: HttpRequest) -> HttpResponse:
    """Seats that wait for a person."""
    participant = identity.participant_of(request.session)
    now = timezone.now()
    rows = [_lobby_row(seat, participant, now) for seat in selectors.open_seats()[:100]]
    template = "markets/_lobby_rows.html" if request.headers.get("HX-Request") else "lobby.html"
    return render(request, template, {"rows": rows})


def _lobby_row(seat: Seat, participant: Any, now: Any) -> presentation.LobbyRow:
    room = seat.room
    people = [other.participant for other in room.seats.all() if other.participant]
    host = people[0] if people else None
    yours = participant is not None and any(person.pk == participant.pk for person in people)
    waited = _duration(now - room.created_at)
    left = max(timedelta(0), room.fills_at - now) if room.fills_at else timedelta(0)
    scenario = decode_scenario(room.scenario)
    role = Role(seat.role)
    title = scenario.products[0].title
    if len(scenario.products) > 1:
        title = _("%(title)s and %(more)d more") % {
            "title": title,
            "more": len(scenario.products) - 1,
        }
    return presentation.LobbyRow(
        market_name=room.market.name,
        product=title,
        role=role.value,
        role_text=_("Seller's seat") if role is Role.SELLER else _("Buyer's seat"),
        host=host.pseudonym if host else _("somebody"),
        waiting_text=_("waiting for %(time)s") % {"time": waited},
        fills_text=_("an agent takes it in %(time)s") % {"time": _duration(left)},
        join_url=reverse("room", args=[room.public_id])
        if yours
        else reverse("room-join", args=[room.public_id, seat.join_token]),
        yours=yours,
    )


def _duration(span: timedelta) -> str:
    seconds = round(span.total_seconds())
    if seconds < 90:
        return ngettext("%(count)d second", "%(count)d seconds", seconds) % {"count": seconds}
    minutes = round(seconds / 60)
    if minutes < 90:
        return ngettext("%(count)d minute", "%(count)d minutes", minutes) % {"count": minutes}
    hours = round(minutes / 60)
    return ngettext("%(count)d hour", "%(count)d hours", hours) % {"count": hours}


@require_GET
@never_cache
def history(request: HttpRequest) -> HttpResponse:
    """The games of whoever asks."""
    participant = identity.participant_of(request.session)
    if participant is None:
        page = presentation.HistoryPage(pseudonym="", rows=())
        return render(request, "history.html", {"page": page})
    paginator = Paginator(selectors.games_of(participant), GAMES_A_PAGE)
    games = paginator.get_page(request.GET.get("page"))
    next_url = f"?page={games.next_page_number()}" if games.has_next() else ""
    page = presentation.HistoryPage(
        pseudonym=participant.pseudonym,
        rows=tuple(_history_row(seat) for seat in games),
        next_url=next_url,
    )
    return render(request, "history.html", {"page": page})


def _history_row(seat: Seat) -> presentation.HistoryRow:
    room = seat.room
    role = Role(seat.role)
    scenario = decode_scenario(room.scenario)
    ended = room.status == RoomStatus.ENDED
    others = [other for other in room.seats.all() if other.role != seat.role]
    names = sorted({_opponent_name(other) for other in others})
    outcome: presentation.HistoryOutcome = "running"
    outcome_text, share_text, share = _("Still going"), "", None
    if ended:
        result = metrics.outcome(scenario, decode_log(room.episode.log))
        own = next(row for row in room.episode.seats.all() if row.party == seat.party)
        revealing = room.market.reveals_values
        outcome = (
            results.outcome_word(scenario, result, seat.party)
            if revealing
            else results.closed_outcome_word(result, seat.party)
        )
        outcome_text = results.short_outcome(scenario, result, seat.party)
        if revealing and own.surplus_share is not None and outcome == "deal":
            share_text = results.percent(own.surplus_share)
            share = presentation.Figure(label=_("Your share"), value=share_text, fraction=own.surplus_share)
    title = scenario.products[0].title
    if len(scenario.products) > 1:
        title = room_page.shape_text(products=len(scenario.products), buyers=scenario.buyers)
    return presentation.HistoryRow(
        public_id=room.public_id,
        market_name=room.market.name,
        product=title,
        role=role.value,
        role_text=room_page.role_text(role),
        opponent_text=_("against %(who)s")
        % {"who": ("; " if any("," in name for name in names) else ", ").join(names)},
        outcome=outcome,
        outcome_text=outcome_text,
        share_text=share_text,
        share=share,
        when_text=date_format(room.ended_at or room.created_at, "DATETIME_FORMAT"),
        room_url=reverse("room", args=[room.public_id]),
        consent=room_page.consent(public_id=room.public_id, scope=seat.consent_scope),
        replay_url=reverse("room-replay", args=[room.public_id]) if ended else "",
        record_url=reverse("room-record", args=[room.public_id]) if ended and room.market.reveals_values else "",
    )


def _opponent_name(seat: Seat) -> str:
    """An open chair carries the name of the agent that would take it, who is not there yet."""
    if seat.kind == SeatKind.OPEN:
        return _("an open seat")
    return seat.agent_name or _("a person")


# --- Markets ----------------------------------------------------------------------------------------


@require_GET
def market_list(request: HttpRequest) -> HttpResponse:
    """Markets with filters; htmx asks for the rows alone."""
    page = market_page.list_page(request.GET)
    rows_only = request.headers.get("HX-Request") and not request.headers.get("HX-History-Restore-Request")
    template = "markets/_market_rows.html" if rows_only else "markets/market_list.html"
    return render(request, template, {"page": page})
