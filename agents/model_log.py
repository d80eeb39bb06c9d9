"""Keeping calls to models, and what they come to: per agent and per room.

Here: writing `ModelCall` rows, and sums over them. Not here: asking (`calls`), showing them.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import msgspec
from django.db.models import Avg, Count, Q, QuerySet, Sum

from agents.base import AgentSpec
from agents.calls import Call
from agents.measuring import interval
from agents.models import ModelCall
from agents.parsing import storable
from markets.engine.protocol import Role
from markets.models import AgentTurn


def keep(turn: AgentTurn, spec: AgentSpec, calls: Iterable[Call]) -> None:
    """Write the calls of one turn down."""
    rows = []
    for call in calls:
        row = _row(spec, call, party=turn.party)
        row.room_id, row.turn = turn.room_id, turn
        rows.append(row)
    ModelCall.objects.bulk_create(rows)


def keep_measured(spec: AgentSpec, calls: Iterable[tuple[Role, Call]]) -> None:
    """Write down the calls of simulated games, each with the role that was played."""
    ModelCall.objects.bulk_create(_row(spec, call, party=role.value) for role, call in calls)


def _row(spec: AgentSpec, call: Call, *, party: str) -> ModelCall:
    request, reply = call.request, call.reply
    sampling = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
        "grammar": bool(request.grammar),
        "tools": [tool["function"]["name"] for tool in request.tools],
    }
    messages = [{"role": message.role, "content": storable(message.content)} for message in request.messages]
    tool_calls = [
        {"name": storable(call.name), "arguments": storable(call.arguments)}
        for call in (reply.tool_calls if reply else ())
    ]
    return ModelCall(
        party=party,
        agent_slug=spec.slug,
        agent_version=spec.version,
        purpose=call.purpose,
        backend=call.backend,
        asked_model=call.asked_model[:200],
        model=storable(reply.model)[:200] if reply else "",
        fingerprint=storable(reply.fingerprint)[:200] if reply else "",
        prompt=call.prompt,
        sampling=msgspec.json.encode(sampling).decode(),
        messages=msgspec.json.encode(messages).decode(),
        reply=storable(reply.text) if reply else "",
        tool_calls=msgspec.json.encode(tool_calls).decode() if tool_calls else "",
        outcome=call.outcome,
        used=call.used,
        detail=storable(call.detail),
        input_tokens=reply.input_tokens if reply else None,
        output_tokens=reply.output_tokens if reply else None,
        cost_micros=reply.cost_micros if reply else None,
        first_ms=reply.first_ms if reply else None,
        total_ms=reply.total_ms if reply else None,
        attempts=reply.attempts if reply else 1,
    )


def empty(room_ids: Collection[int]) -> int:
    """Erase the words of every call in these rooms, kept with its counts and times; gives how many calls there were."""
    return ModelCall.objects.filter(room__in=room_ids).update(messages="[]", reply="", tool_calls="", detail="")


@dataclass(frozen=True)
class Usage:
    """What some calls came to."""

    calls: int
    in_rooms: int
    """Of the calls, those in live rooms."""
    valid_rate: float | None
    """Answers used / answers; None where nothing was answered."""
    valid_between: tuple[float, float] | None
    """Its 95 % interval (Wilson's)."""
    input_tokens: int
    output_tokens: int
    cost_micros: int | None
    """None where no call had a price."""
    mean_ms: float | None
    not_answered: int
    """Calls that the back end did not answer."""


def usage_of_agent(slug: str, *, version: str = "") -> Usage:
    """Every call that an agent made, in rooms and to be measured; of one version where that is named."""
    calls = ModelCall.objects.filter(agent_slug=slug)
    return _usage(calls.filter(agent_version=version) if version else calls)


def usage_of_room(room_id: int) -> Usage:
    """Every call that was made in a room."""
    return _usage(ModelCall.objects.filter(room=room_id))


def _usage(calls: QuerySet[ModelCall]) -> Usage:
    answered = Q(total_ms__isnull=False)
    sums = calls.order_by().aggregate(
        calls=Count("id"),
        in_rooms=Count("room"),
        answered=Count("id", filter=answered),
        used=Count("id", filter=Q(used=True)),
        input_tokens=Sum("input_tokens"),
        output_tokens=Sum("output_tokens"),
        cost_micros=Sum("cost_micros"),
        mean_ms=Avg("total_ms"),
    )
    return Usage(
        calls=sums["calls"],
        in_rooms=sums["in_rooms"],
        valid_rate=sums["used"] / sums["answered"] if sums["answered"] else None,
        valid_between=interval(sums["used"], sums["answered"]),
        input_tokens=sums["input_tokens"] or 0,
        output_tokens=sums["output_tokens"] or 0,
        cost_micros=sums["cost_micros"],
        mean_ms=sums["mean_ms"],
        not_answered=sums["calls"] - sums["answered"],
    )
