"""Two addresses for whoever watches the process: is it up, and can it do its work."""

import logging

import redis
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

logger = logging.getLogger(__name__)

TIMEOUT_S = 2


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers. Touches nothing else, so a slow database does not get the process killed."""
    return HttpResponse("ok", content_type="text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Database and broker answer: 200, else 503, with a word for each and no detail that is not for the public."""
    answers = {"database": database_answers(), "broker": broker_answers()}
    ready = all(answer is not False for answer in answers.values())
    words = {True: "ok", False: "no answer", None: "not configured"}
    return JsonResponse({name: words[answer] for name, answer in answers.items()}, status=200 if ready else 503)


def database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        logger.exception("The database does not answer")
        return False
    return True


def broker_answers() -> bool | None:
    """`None` where no broker is configured: a site of one process."""
    if not settings.REDIS_URL:
        return None
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
    try:
        return bool(client.ping())
    except redis.RedisError:
        logger.exception("The broker does not answer")
        return False
    finally:
        client.close()
