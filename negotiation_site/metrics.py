"""Figures for Prometheus: how long pages take here, and how the whole site stands.

Here: a histogram of answers by view, method and status, gauges that are read from the database and the
broker when somebody asks, and the address `/metrics`. Not here: anything about a person or a single room.

Contract. Pages are counted in the process that served them; with several web processes behind one address
`PROMETHEUS_MULTIPROC_DIR` names an empty folder that they share, as prometheus-client has it. Gauges are
the same whichever process is asked. Who asks shows `METRICS_TOKEN` as a bearer token, or is staff; for
anybody else the address does not exist.
"""

import os
import time
from collections.abc import Iterator

import redis
from django.conf import settings
from django.db.models import Max
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

from agents.models import ModelCall
from markets.models import AgentTurn, Episode, Room, RoomEvent, RoomStatus, TurnState

BROKER_TIMEOUT_S = 1
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
    """The site as the database and the broker have it now; a few indexed queries."""

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        rooms = GaugeMetricFamily("parley_rooms", "Rooms that are not over", labels=["status"])
        for status in (RoomStatus.WAITING, RoomStatus.LIVE):
            rooms.add_metric([status.value], Room.objects.filter(status=status).count())
        yield rooms
        now = timezone.now()
        turns = GaugeMetricFamily("parley_agent_turns", "Agents' turns that are not taken yet", labels=["state"])
        for state in (TurnState.QUEUED, TurnState.RUNNING):
            turns.add_metric([state.value], AgentTurn.objects.filter(state=state).count())
        late = AgentTurn.objects.filter(state__in=(TurnState.QUEUED, TurnState.RUNNING), due_at__lt=now)
        turns.add_metric(["late"], late.count())
        yield turns
        for name, what, model in (
            ("parley_room_events", "Events ever written in rooms", RoomEvent),
            ("parley_episodes", "Negotiations ever stored", Episode),
            ("parley_model_calls", "Calls ever made to language models", ModelCall),
        ):
            newest = model._default_manager.aggregate(newest=Max("pk"))["newest"] or 0
            yield CounterMetricFamily(name, what, value=newest)
        yield from queues()


def queues() -> Iterator[GaugeMetricFamily]:
    """Tasks that wait in the broker; nothing where there is none, or none that answers."""
    if not settings.REDIS_URL:
        return
    waiting = GaugeMetricFamily("parley_queue_tasks", "Tasks that no worker has taken yet", labels=["queue"])
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=BROKER_TIMEOUT_S, socket_connect_timeout=BROKER_TIMEOUT_S
    )
    try:
        for queue in settings.CELERY_TASK_QUEUES:
            waiting.add_metric([queue], int(client.llen(queue)))
    except redis.RedisError:
        return
    finally:
        client.close()
    yield waiting


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
