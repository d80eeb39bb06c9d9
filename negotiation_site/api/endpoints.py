"""The endpoints under `/api/v1/`: what a token may read, in pages, and nothing that it may not.

Here: who asks (`Bearer`), strict parameters, cursors, errors as JSON with a sentence, and one function an endpoint.
Not here: the shape of answers (`schemas`), tokens and their rate (`tokens`), who may read what (`reading_room.access`).

Contract.
- A request is known by its token alone; a cookie changes nothing. Reading is all there is: GET.
- An order never changes under a cursor: episodes, markets and runs by their number, agents by slug, the leaderboard
  by place. What is added later comes at the end, on the board where it belongs.
- A parameter that the endpoint does not know, or that is there twice, is refused.
- People are pseudonyms of the token; their words are masked as in exports; no room that is still going is in any answer.
"""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar, cast
from urllib.parse import urlencode

from django.core.signing import BadSignature, Signer
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from ninja import NinjaAPI, Query
from ninja.errors import AuthenticationError, ValidationError
from ninja.security import HttpBearer

from agents import registry
from agents.learned import published
from markets import export, selectors
from markets.export_masking import mask, whole
from markets.models import Episode, EpisodeSeat, Market
from negotiation_site import throttle
from negotiation_site.api import schemas, tokens
from negotiation_site.api.models import ApiToken
from negotiation_site.leaderboard import pages as leaderboard
from negotiation_site.leaderboard.tables import Estimate
from negotiation_site.reading_room import access
from negotiation_site.reading_room.filters import PERSON, Economics, narrowed
from training import runs
from training.models import Run

Item = TypeVar("Item")


class Refused(Exception):
    """A request that is not answered."""

    def __init__(self, status: int, error: str, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.error, self.detail, self.headers = status, error, detail, headers


class Bearer(HttpBearer):
    """`Authorization: Bearer TOKEN`; every request that gets this far is counted."""

    def __call__(self, request: HttpRequest) -> ApiToken:
        found = super().__call__(request)
        if found is None:
            raise AuthenticationError
        wait_s = throttle.seconds_to_wait(throttle.SCRIPTS, person=throttle.account(found.owner))
        if wait_s is not None:
            raise Refused(
                429,
                "too_many_requests",
                _("Your tokens may ask %(limit)d times in %(seconds)d seconds together. Ask again in %(wait)d seconds.")
                % {"limit": throttle.SCRIPTS.person, "seconds": throttle.SCRIPTS.window_s, "wait": wait_s},
                **{"Retry-After": str(wait_s)},
            )
        try:
            tokens.count_request(found, now=timezone.now())
        except tokens.TooMany as error:
            raise Refused(
                429,
                "too_many_requests",
                _("A token may ask %(limit)d times in %(seconds)d seconds. Ask again in %(wait)d seconds.")
                % {"limit": tokens.LIMIT, "seconds": tokens.WINDOW_S, "wait": error.retry_after_s},
                **{"Retry-After": str(error.retry_after_s)},
            ) from error
        return found

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken | None:
        return tokens.known(token.strip())


api = NinjaAPI(
    title="Parley",
    version="1",
    description=(
        "Read access to finished negotiations, markets, agents, the leaderboard and training runs. A token is made on "
        "the account page and sent as `Authorization: Bearer TOKEN`. It reads what its owner may read: open data, and "
        "for staff and researchers also what was kept for research."
    ),
    docs_url=None,
    openapi_url=None,
    auth=Bearer(),
    urls_namespace="api-v1",
)
PROBLEMS = dict.fromkeys((400, 401, 429), schemas.Problem)


# --- Errors -------------------------------------------------------------------------------------------


def problem(status: int, error: str, detail: str, **headers: str) -> HttpResponse:
    """An error as it is answered."""
    body = json.dumps({"error": error, "detail": detail}, ensure_ascii=False)
    return HttpResponse(body, status=status, content_type="application/json; charset=utf-8", headers=headers)


@api.exception_handler(Refused)
def _refused(_request: HttpRequest, error: Refused) -> HttpResponse:
    return problem(error.status, error.error, error.detail, **error.headers)


@api.exception_handler(AuthenticationError)
def _unknown(request: HttpRequest, _error: AuthenticationError) -> HttpResponse:
    sent = request.headers.get("Authorization")
    return problem(
        401,
        "no_token" if sent is None else "unknown_token",
        _("Send a token: Authorization: Bearer TOKEN. You can make one on your account page.")
        if sent is None
        else _("This token is not known here, or it was revoked."),
        **{"WWW-Authenticate": 'Bearer realm="Parley"'},
    )


@api.exception_handler(ValidationError)
def _invalid(_request: HttpRequest, error: ValidationError) -> HttpResponse:
    first = error.errors[0]
    return problem(400, "bad_parameter", f"{first['loc'][-1]}: {first['msg']}.")


def not_found(request: HttpRequest, **_kwargs: Any) -> HttpResponse:
    """The answer at an address under `/api/v1/` that leads nowhere."""
    return problem(
        404, "no_such_endpoint", _("There is nothing at this address; /api/v1/openapi.json says what there is.")
    )


def in_json(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A view of ninja's whose refusal of a method is JSON too, and whose answers no browser or proxy keeps."""

    def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with translation.override("en"):
            response = view(request, *args, **kwargs)
            if response.status_code == 405:
                sentence = _("This address can only be read: send GET.")
                response = problem(405, "method_not_allowed", sentence, Allow=response["Allow"])
        response["Cache-Control"] = "no-store"
        return response

    answered.csrf_exempt = True  # type: ignore[attr-defined]  # A token is no cookie, and nothing is written.
    return answered


# --- Pages of a list ----------------------------------------------------------------------------------


def _strict(request: HttpRequest, asked: schemas.Asked | None = None) -> None:
    """Refuse what the endpoint does not know, so that a slip of the pen is not taken for an answer."""
    known = () if asked is None else tuple(sorted(type(asked).model_fields))
    for name, values in request.GET.lists():
        if name not in known:
            raise Refused(
                400,
                "unknown_parameter",
                _("There is no parameter “%(name)s” here; there are: %(known)s.")
                % {"name": whole(name)[:40], "known": ", ".join(known) or _("none")},
            )
        if len(values) > 1:
            raise Refused(400, "bad_parameter", _("The parameter “%(name)s” is there twice.") % {"name": name})


def _signer(request: HttpRequest) -> Signer:
    return Signer(salt=f"api cursor {request.path}")


def _after(request: HttpRequest, asked: schemas.Asked) -> Any:
    """What the cursor says; None at the beginning."""
    if not asked.cursor:
        return None
    try:
        return _signer(request).unsign_object(asked.cursor)
    except BadSignature as error:
        raise Refused(
            400, "bad_cursor", _("This cursor is not from here; take it from `next` of the page before.")
        ) from error


def _next(request: HttpRequest, asked: schemas.Asked, place: Any) -> str:
    query = {name: value for name, value in request.GET.items() if name != "cursor"}
    query["cursor"] = _signer(request).sign_object(place)
    return request.build_absolute_uri(f"{request.path}?{urlencode(query)}")


def _listed(request: HttpRequest, asked: schemas.Asked, items: Sequence[Item], page: Callable[[Item], Any]) -> Any:
    """A page of a list that is held whole."""
    start = _after(request, asked) or 0
    end = start + asked.limit
    return {
        "items": [page(item) for item in items[start:end]],
        "next": _next(request, asked, end) if end < len(items) else None,
    }


def _numbered(request: HttpRequest, asked: schemas.Asked, rows: QuerySet[Any]) -> tuple[list[Any], str | None]:
    """A page of a table, by primary key."""
    after = _after(request, asked)
    chosen = rows.order_by("pk") if after is None else rows.order_by("pk").filter(pk__gt=after)
    # Which they are is read from an index; the rows themselves, kilobytes each, are those of the page alone.
    numbers = list(chosen.values_list("pk", flat=True)[: asked.limit + 1])
    more, numbers = len(numbers) > asked.limit, numbers[: asked.limit]
    held = rows.in_bulk(numbers)
    return [held[number] for number in numbers if number in held], (
        _next(request, asked, numbers[-1]) if more else None
    )


def _token(request: HttpRequest) -> ApiToken:
    return cast(Any, request).auth


# --- Episodes -----------------------------------------------------------------------------------------


@api.get(
    "/episodes",
    response={200: schemas.Episodes, **PROBLEMS, 404: schemas.Problem},
    summary="Finished negotiations",
    operation_id="episodes",
    tags=["episodes"],
)
def episodes(request: HttpRequest, asked: Query[schemas.EpisodesAsked]) -> Any:
    """The finished negotiations that the token may read, the oldest first, without their events."""
    _strict(request, asked)
    token = _token(request)
    _refuse_unknown(market=asked.market, agent=asked.agent)
    found = access.episodes(token.owner)
    if asked.consent:
        found = found.filter(consent_scope=asked.consent)
    economics = Economics(
        family=asked.family or "",
        market=asked.market,
        source=asked.source or "",
        agent=asked.agent,
        role=asked.role or "",
        outcome=asked.outcome or "",
        min_share=asked.min_share,
        max_share=asked.max_share,
        since=_aware(asked.since),
        until=_aware(asked.until),
    )
    rows, following = _numbered(
        request,
        asked,
        narrowed(found, economics).defer("scenario", "log").select_related("market").prefetch_related("seats"),
    )
    return {"items": [_episode(row, token) for row in rows], "next": following}


@api.get(
    "/episodes/{episode}",
    response={200: schemas.EpisodeRecord, **PROBLEMS, 404: schemas.Problem},
    summary="One negotiation with its events",
    operation_id="episode",
    tags=["episodes"],
)
def episode(request: HttpRequest, episode: str) -> Any:
    """One finished negotiation: the scenario with the private values, who sat where, every event, the words, the times."""
    _strict(request)
    token = _token(request)
    row = (
        access.episodes(token.owner)
        .filter(public_id=whole(episode))
        .select_related("market")
        .prefetch_related("seats", "texts")
        .first()
    )
    if row is None:
        raise Refused(404, "no_such_episode", _("There is no such episode, or this token may not read it."))
    body = export.record(row, mask=mask)
    body["seats"] = [_seat(seat, token) for seat in row.seats.all()]
    return body | {"times": export.times(row)}


def _refuse_unknown(*, market: str, agent: str) -> None:
    """A slip of the pen is told, instead of a list that is empty for ever."""
    if market and not Market.objects.filter(slug=market).exists():
        raise Refused(404, "no_such_market", _("There is no market “%(market)s”.") % {"market": whole(market)[:60]})
    if (
        agent not in ("", PERSON, *(spec.slug for spec in (*registry.all_specs(), *registry.entered_specs())))
        and not EpisodeSeat.objects.filter(agent_slug=agent).exists()
    ):
        raise Refused(404, "no_such_agent", _("There is no agent “%(agent)s”.") % {"agent": whole(agent)[:60]})


def _aware(moment: datetime | None) -> datetime | None:
    """A moment without a time zone is taken to be in UTC."""
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _episode(row: Episode, token: ApiToken) -> dict[str, Any]:
    return {
        "episode": row.public_id,
        "market": row.market.slug,
        "market_version": row.market.version,
        "ended_at": row.created_at,
        "seats": [_seat(seat, token) for seat in row.seats.all()],
    } | {name: getattr(row, name) for name in schemas.Episode.model_fields if name in _COLUMNS}


_COLUMNS = {field.name for field in Episode._meta.get_fields()} - {"market", "seats"}


def _seat(seat: EpisodeSeat, token: ApiToken) -> dict[str, Any]:
    return {
        "party": seat.party,
        "role": seat.role,
        "kind": seat.kind,
        "agent": seat.agent_slug or None,
        "agent_version": seat.agent_version or None,
        "participant": tokens.pseudonym(token, seat.participant_id),
        "surplus_cents": seat.surplus_cents,
        "surplus_share": seat.surplus_share,
    }


# --- Markets and agents -------------------------------------------------------------------------------


@api.get(
    "/markets", response={200: schemas.Markets, **PROBLEMS}, summary="Markets", operation_id="markets", tags=["markets"]
)
def markets(request: HttpRequest, asked: Query[schemas.Asked]) -> Any:
    """The markets that can be played, in the order in which they were made; researchers also read unlisted ones."""
    _strict(request, asked)
    owner = _token(request).owner
    found = selectors.current_markets()
    if not access.is_researcher(owner):
        found = found.filter(is_listed=True)
    rows, following = _numbered(request, asked, found)
    versions = dict(Market.objects.filter(slug__in=[row.slug for row in rows]).values_list("pk", "slug"))
    counted = access.episodes(owner).filter(market__in=list(versions)).order_by().values_list("market_id")
    counts: Counter[str] = Counter()
    for version, number in counted.annotate(count=Count("pk")):
        counts[versions[version]] += number
    return {"items": [_market(row, counts[row.slug]) for row in rows], "next": following}


def _market(row: Market, episodes: int) -> dict[str, Any]:
    return {
        "market": row.slug,
        "version": row.version,
        "name": row.name,
        "summary": row.summary,
        "family": row.family,
        "mechanism": row.mechanism,
        "reveals_values": row.reveals_values,
        "created_at": row.created_at,
        "episodes": episodes,
        "recipe": json.loads(row.recipe),
    }


@api.get(
    "/agents", response={200: schemas.Agents, **PROBLEMS}, summary="Agents", operation_id="agents", tags=["agents"]
)
def agents(request: HttpRequest, asked: Query[schemas.Asked]) -> Any:
    """The agents that can be seated, by slug."""
    _strict(request, asked)
    after = _after(request, asked) or ""
    specs = {spec.slug: spec for spec in (*registry.all_specs(), *registry.entered_specs())}
    slugs = sorted(slug for slug in specs if slug > after)
    shown = slugs[: asked.limit]
    return {
        "items": [
            {
                "agent": slug,
                "version": specs[slug].version,
                "title": specs[slug].title,
                "summary": specs[slug].summary,
                "kind": specs[slug].kind,
                "roles": list(specs[slug].roles),
                "families": list(specs[slug].families),
                "source": specs[slug].source,
            }
            for slug in shown
        ],
        "next": _next(request, asked, shown[-1]) if len(slugs) > len(shown) else None,
    }


@api.get(
    "/leaderboards",
    response={200: schemas.Leaderboard, **PROBLEMS},
    summary="Leaderboard",
    operation_id="leaderboards",
    tags=["agents"],
)
def leaderboards(request: HttpRequest, asked: Query[schemas.LeaderboardsAsked]) -> Any:
    """How agents compare over open data, the best first: the figures of the leaderboard's page. People are on none."""
    _strict(request, asked)
    words = {"family": asked.family or "", "market": asked.market, "role": asked.role or "", "kind": asked.kind or ""}
    filters, problems = leaderboard.read_filters(words)
    if problems:
        raise Refused(404, "no_such_market", _("There is no market “%(market)s”.") % {"market": asked.market})
    board, named = leaderboard.agents_board(filters)
    places = itertools.count(1)
    lines = [(next(places) if line.has_place else None, line) for line in board.lines]

    def shown(pair: Any) -> dict[str, Any]:
        place, line = pair
        name = named[line.agent]
        return {
            "place": place,
            "agent": name.slug,
            "version": name.version,
            "title": name.title,
            "games": line.games,
            "tables": line.tables,
            "provisional": line.provisional,
            "equal_terms": _estimate(line.equal_terms),
            "bradley_terry": _estimate(line.points),
            "share": _estimate(line.share),
            "deal_rate": _estimate(line.deal_rate),
            "rules_kept": _estimate(line.adherence),
        }

    return _listed(request, asked, lines, shown)


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


# --- Runs ---------------------------------------------------------------------------------------------


@api.get("/runs", response={200: schemas.Runs, **PROBLEMS}, summary="Training runs", operation_id="runs", tags=["runs"])
def training_runs(request: HttpRequest, asked: Query[schemas.Asked]) -> Any:
    """The training runs of this server in the order in which they were asked for, then the checkpoints that came with
    the code."""
    _strict(request, asked)
    rows = list(Run.objects.select_related("market").order_by("pk"))
    known = {row.name for row in rows}
    shipped = [card for _path, card in published.cards(published.SHIPPED) if card.slug not in known]
    items: list[Run | published.Card] = [*rows, *shipped]
    return _listed(request, asked, items, _run)


def _run(row: Run | published.Card) -> dict[str, Any]:
    if isinstance(row, published.Card):
        return {
            "run": row.slug,
            "market": row.trained_on,
            "status": "shipped",
            "stage": "",
            "preset": "",
            "created_at": None,
            "started_at": None,
            "ended_at": None,
            "published_agent": row.slug,
        } | _shares(row.measured)
    return {
        "run": row.name,
        "market": row.market.slug,
        "status": row.status,
        "stage": row.stage,
        "preset": row.preset,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "published_agent": row.published_slug or None,
    } | _shares((runs.figures(runs.folder(row.name), "evaluate") or {}).get("grpo"))


def _shares(learner: dict[str, Any] | None) -> dict[str, float | None]:
    return {f"share_{way}": ((learner or {}).get(way) or {}).get("share") for way in ("greedy", "sampled")}
