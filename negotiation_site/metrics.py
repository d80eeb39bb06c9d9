"""Figures for Prometheus: how long pages take here, and how the whole site stands.

Here: a histogram of answers by view, method and status, gauges of what `standing` reads when somebody asks, and the
address `/metrics`. Not here: the reading, anything about a person or a single room.

Contract. Pages are counted in the process that served them; with several web processes behind one address
`PROMETHEUS_MULTIPROC_DIR` names an empty folder that they share, as prometheus-client has it. Gauges are
the same whichever process is asked. Who asks shows `METRICS_TOKEN` as a bearer token, or is staff; for
anybody else the address does not exist.
"""

import os
import time
from collections.abc import Iterator

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.deprecation import MiddlewareMixin
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from negotiation_site import standing

own = CollectorRegistry()
"""What this process has counted."""
ANSWERS = Histogram(
    "parley_http_seconds",
    "Seconds from a request to the head of its answer",
    ["view", "method", "status"],
    registry=own,
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class AnswerTimes(MiddlewareMixin):
    """Times every answer, by the name of its address rather than the address itself."""

    def process_request(self, request: HttpRequest) -> None:
        request.parley_began = time.perf_counter()  # type: ignore[attr-defined]

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        match = request.resolver_match
        ANSWERS.labels(
            view=(match.view_name if match else "") or "none",
            method=request.method if request.method in METHODS else "other",
            status=str(response.status_code),
        ).observe(time.perf_counter() - request.parley_began)  # type: ignore[attr-defined]
        return response


class Standing(Collector):
    """The site as `standing` reads it: a few indexed queries, the broker, the disk."""

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        now = timezone.now()
        rooms, turns, record = standing.rooms(now), standing.turns(now), standing.record()
        yield _gauge("parley_rooms", "Rooms that are not over", "status", waiting=rooms.waiting, live=rooms.live)
        yield _gauge(
            "parley_rooms_stuck",
            "Rooms and seats that the clock should have looked after",
            "what",
            unfilled=rooms.unfilled,
            overdue=rooms.overdue,
        )
        yield _gauge(
            "parley_agent_turns",
            "Agents' turns that are not taken yet",
            "state",
            queued=turns.queued,
            pausing=turns.pausing,
            running=turns.running,
            expired=turns.expired,
            late=turns.late,
            stuck=turns.stuck,
        )
        yield _gauge(
            "parley_agent_turn_oldest_seconds", "Since the oldest that may be taken", value=turns.oldest_s or 0
        )
        for name, what, newest in (
            ("parley_room_events", "Events ever written in rooms", record.room_events),
            ("parley_episodes", "Negotiations ever stored", record.episodes),
            ("parley_model_calls", "Calls ever made to language models", record.model_calls),
        ):
            yield CounterMetricFamily(name, what, value=newest)
        yield from _broker(standing.broker())
        yield from _models(standing.back_ends(now))
        beat_s = standing.clock(now).beat_s
        if beat_s is not None:
            yield _gauge("parley_clock_beat_seconds", "Since a clock last swept", value=beat_s)
        disk = standing.disk()
        yield _gauge("parley_disk_free_bytes", "Free where the state is kept", value=disk.free)
        if disk.database is not None:
            yield _gauge("parley_database_bytes", "Size of the database", value=disk.database)


def _gauge(name: str, what: str, label: str = "", *, value: float | None = None, **values: float) -> GaugeMetricFamily:
    """One number, or one for each value of a label."""
    if not label:
        return GaugeMetricFamily(name, what, value=value)
    family = GaugeMetricFamily(name, what, labels=[label])
    for word, number in values.items():
        family.add_metric([word], number)
    return family


def _broker(broker: standing.Broker) -> Iterator[GaugeMetricFamily]:
    """Tasks that wait in the broker; nothing where there is none, or none that answers."""
    if not broker.answers:
        return
    waiting = {queue.name: queue.waiting for queue in broker.queues}
    oldest = {queue.name: queue.oldest_s or 0 for queue in broker.queues}
    yield _gauge("parley_queue_tasks", "Tasks that no worker has taken yet", "queue", **waiting)
    yield _gauge("parley_queue_oldest_seconds", "Since the next task was sent", "queue", **oldest)


def _models(found: tuple[standing.BackEnd, ...]) -> Iterator[GaugeMetricFamily]:
    """What back ends did in the last hour."""
    calls = GaugeMetricFamily("parley_model_calls_last_hour", "Calls to models", labels=["backend", "outcome"])
    spent = GaugeMetricFamily("parley_model_seconds", "Seconds of an answered call", labels=["backend", "quantile"])
    for each in found:
        calls.add_metric([each.name, "answered"], each.calls - each.errors)
        calls.add_metric([each.name, "failed"], each.errors)
        for quantile, ms in (("0.5", each.p50_ms), ("0.95", each.p95_ms)):
            if ms is not None:
                spent.add_metric([each.name, quantile], ms / 1000)
    yield from (calls, spent)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Everything, in Prometheus' text format."""
    if not _may_ask(request):
        raise Http404
    counted = own
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        counted = CollectorRegistry()
        MultiProcessCollector(counted)
    standing = CollectorRegistry()
    standing.register(Standing())
    return HttpResponse(generate_latest(counted) + generate_latest(standing), content_type=CONTENT_TYPE_LATEST)


def _may_ask(request: HttpRequest) -> bool:
    kind, _space, token = request.headers.get("Authorization", "").partition(" ")
    if settings.METRICS_TOKEN and kind.lower() == "bearer":
        return constant_time_compare(token.strip(), settings.METRICS_TOKEN)
    return bool(request.user.is_active and request.user.is_staff)
