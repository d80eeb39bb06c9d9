"""What staff may see of language models: every call of one room, as it was asked and answered."""

from dataclasses import dataclass

import msgspec
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from agents import model_log
from agents.models import ModelCall
from markets import identity, selectors
from markets.models import Room, RoomStatus


@dataclass(frozen=True)
class Message:
    """One message of a prompt."""

    role: str
    content: str


@dataclass(frozen=True)
class CallRow:
    """One call."""

    number: int
    party: str
    agent: str
    purpose: str
    outcome: str
    used: bool
    detail: str
    prompt: str
    model: str
    sampling: str
    tokens: str
    seconds: str
    cost: str
    messages: tuple[Message, ...]
    reply: str
    tool_calls: str


@dataclass(frozen=True)
class CallsPage:
    """Context `page` of `agents/model_calls.html`."""

    room_id: str
    figures: tuple[tuple[str, str], ...]
    rows: tuple[CallRow, ...]


MOST_ROWS = 500


@require_GET
def model_calls(request: HttpRequest, public_id: str) -> HttpResponse:
    """The calls of one room, newest last. Who plays there sees them when it is over: prompts hold private values."""
    if not (request.user.is_active and request.user.is_staff):
        raise PermissionDenied
    room = get_object_or_404(Room, public_id=public_id)
    own = selectors.seat_of(public_id=public_id, participant=identity.participant_of(request.session))
    if own is not None and room.status != RoomStatus.ENDED:
        raise PermissionDenied(_("You play in this room: what its models were asked is shown when it is over."))
    calls = ModelCall.objects.filter(room=room).order_by("id")[:MOST_ROWS]
    page = CallsPage(
        room_id=public_id,
        figures=figures(model_log.usage_of_room(room.pk)),
        rows=tuple(_row(number, call) for number, call in enumerate(calls, start=1)),
    )
    return render(request, "agents/model_calls.html", {"page": page})


def figures(usage: model_log.Usage) -> tuple[tuple[str, str], ...]:
    """Label and value of what some calls came to."""
    read = "–" if usage.valid_rate is None else f"{usage.valid_rate:.0%}"
    if usage.valid_between is not None:
        low, high = usage.valid_between
        read = _("%(rate)s of %(answers)s (95 %% interval: %(low)s to %(high)s)") % {
            "rate": read,
            "answers": f"{usage.calls - usage.not_answered:,}",
            "low": f"{low:.0%}",
            "high": f"{high:.0%}",
        }
    return (
        (_("Calls"), f"{usage.calls:,}"),
        (_("Answers that were used"), read),
        (_("Calls without an answer"), f"{usage.not_answered:,}"),
        (_("Tokens read and written"), f"{usage.input_tokens:,} / {usage.output_tokens:,}"),
        (_("Mean time of an answer"), "–" if usage.mean_ms is None else f"{usage.mean_ms / 1000:.1f} s"),
        (_("Cost"), money(usage.cost_micros)),
    )


def money(micros: int | None) -> str:
    """A cost in the currency of the back end's price."""
    return "–" if micros is None else f"{micros / 1_000_000:.4f}"


def _row(number: int, call: ModelCall) -> CallRow:
    messages = msgspec.json.decode(call.messages, type=list[dict[str, str]])
    model = " ".join(part for part in (call.model or call.asked_model, call.fingerprint) if part)
    return CallRow(
        number=number,
        party=call.party,
        agent=f"{call.agent_slug} {call.agent_version}",
        purpose=call.purpose,
        outcome=call.outcome,
        used=call.used,
        detail=call.detail,
        prompt=call.prompt,
        model=f"{model} ({call.backend})",
        sampling=call.sampling,
        tokens=f"{_or_dash(call.input_tokens)} / {_or_dash(call.output_tokens)}",
        seconds="–" if call.total_ms is None else f"{call.total_ms / 1000:.2f} s",
        cost=money(call.cost_micros),
        messages=tuple(Message(message["role"], message["content"]) for message in messages),
        reply=call.reply,
        tool_calls=call.tool_calls,
    )


def _or_dash(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"
