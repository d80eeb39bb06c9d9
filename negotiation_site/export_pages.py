"""Pages of exports: ordering a data set, past ones with their hashes, the download.

For the staff and whoever has the permission `exports.make_export` or may build markets. A view makes one call into
`exports.jobs` and renders. A download can be taken up where it broke off (RFC 9110 ranges).
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from markets import corpora, market_page, selectors
from markets.engine.protocol import Role
from markets.engine.scenarios import Family
from markets.export import ExportError
from markets.presentation import Choice
from negotiation_site.builder_pages import may_build
from negotiation_site.exports import asked as asking
from negotiation_site.exports import jobs, tasks
from negotiation_site.exports.asked import Asked
from negotiation_site.exports.models import Export, ExportStatus
from negotiation_site.leaderboard.words import count
from negotiation_site.studies.models import Study

SHOWN = 100
PIECE = 1 << 18
NARROWING = ("market", "family", "study", "corpus", "outcome", "role", "kind", "agent", "perspective", "since")
"""Wishes that a row of the list repeats, beside its format and consent."""
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True)
class ExportRow:
    """A past export."""

    what: str
    state: str
    error: str
    size: str
    sha256: str
    when: Any
    download_url: str
    delete_url: str


@dataclass(frozen=True)
class SelectField:
    """A choice of the form."""

    name: str
    label: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class TextField:
    """A line of the form."""

    name: str
    label: str
    value: str
    help: str


@dataclass(frozen=True)
class ExportsPage:
    """Context `page` of `exports/list.html`."""

    rows: tuple[ExportRow, ...]
    selects: tuple[SelectField, ...]
    lines: tuple[TextField, ...]
    as_is: bool
    narrowed: bool
    """Whether anything but format, scope and market was chosen."""
    problem: str
    waiting: bool
    """Whether one is under way, so that the list asks again."""


def may_export(request: HttpRequest) -> bool:
    """Whether whoever asks may export."""
    user = request.user
    return may_build(request) or (isinstance(user, User) and user.is_active and user.has_perm("exports.make_export"))


def for_exporters(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Asks strangers to sign in and refuses everybody else who may not export."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect_to_login(reverse("export-list"))
        if not may_export(request):
            raise PermissionDenied
        return never_cache(view)(request, *args, **kwargs)

    return guarded


@require_http_methods(["GET", "POST"])
@for_exporters
def export_list(request: HttpRequest) -> HttpResponse:
    """Past exports and the form; a POST orders one."""
    if request.method != "POST":
        return render(request, "exports/list.html", {"page": _page({})})
    typed = {name: request.POST.get(name, "").strip() for name in Asked.__struct_fields__}
    try:
        row = jobs.order(_read(typed), by=request.user if isinstance(request.user, User) else None)
    except ExportError as error:
        return render(request, "exports/list.html", {"page": _page(typed, str(error))}, status=400)
    tasks.announce(row)
    messages.info(request, _("The export is being written. You can leave the page."))
    return redirect("export-list")


@require_GET
@for_exporters
def export_rows(request: HttpRequest) -> HttpResponse:
    """The list alone, for the page that asks now and then."""
    return render(request, "exports/_rows.html", {"page": _page({})})


@require_POST
@for_exporters
def export_delete(request: HttpRequest, public_id: str) -> HttpResponse:
    """Delete the files of an export."""
    try:
        jobs.delete_files(_known(public_id))
    except ExportError as error:
        messages.error(request, str(error))
    return redirect("export-list")


@require_GET
@for_exporters
def export_download(request: HttpRequest, public_id: str) -> HttpResponseBase:
    """The archive, or the part of it that is asked for."""
    row = _known(public_id)
    path = jobs.archive(row)
    if row.status != ExportStatus.DONE or not path.is_file():
        raise Http404(_("This export has no files."))
    size, tag = path.stat().st_size, f'"{row.sha256}-{row.public_id}"'
    wanted = _range(request.headers.get("Range", ""), size)
    if request.headers.get("If-Range", tag) != tag:
        wanted = None
    if wanted is not None and not 0 <= wanted[0] < wanted[1]:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    first, end = wanted or (0, size)
    pieces: Any = _pieces_async if isinstance(request, ASGIRequest) else _pieces
    response = StreamingHttpResponse(
        pieces(path, first, end), status=206 if wanted else 200, content_type="application/zip"
    )
    response["Content-Length"] = str(end - first)
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = tag
    response["Content-Disposition"] = f'attachment; filename="parley-{row.format}-{row.sha256[:12]}.zip"'
    if wanted:
        response["Content-Range"] = f"bytes {first}-{end - 1}/{size}"
    return response


def _range(text: str, size: int) -> tuple[int, int] | None:
    """First byte and the one after the last; None for everything, (0, 0) for a part that is not there."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        return (max(0, size - int(last)), size) if int(last) else (0, 0)
    start, end = int(first), min(size, int(last) + 1) if last else size
    return (start, end) if start < end else (0, 0)


def _pieces(path: Path, first: int, end: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(first)
        while first < end and (piece := file.read(min(PIECE, end - first))):
            first += len(piece)
            yield piece


async def _pieces_async(path: Path, first: int, end: int) -> AsyncIterator[bytes]:
    pieces = _pieces(path, first, end)
    while piece := await asyncio.to_thread(next, pieces, b""):
        yield piece


def _known(public_id: str) -> Export:
    row = Export.objects.filter(public_id=public_id).first()
    if row is None:
        raise Http404(_("There is no such export."))
    return row


def _read(typed: dict[str, str]) -> Asked:
    share = None
    if typed["min_share"]:
        try:
            share = float(typed["min_share"])
        except ValueError:
            raise ExportError(_("The least share must be a number such as 0.5.")) from None
    values: dict[str, Any] = {name: value for name, value in typed.items() if value}
    return Asked(
        **{
            **values,
            "format": typed["format"],
            "min_share": share,
            "keep_text_as_is": bool(typed["keep_text_as_is"]),
        }
    )


def _words() -> dict[str, dict[str, str]]:
    """What stands in the lists of the form instead of the values that commands take."""
    sides = {"seller": _("the seller"), "buyer": _("the buyer")}
    names = selectors.current_markets().order_by("id").values_list("slug", "name")
    return {
        "format": {
            "jsonl": _("Whole games, a line of JSON each (jsonl)"),
            "parquet": _("Tables for analysis (parquet)"),
            "csv": _("Tables for spreadsheets (csv)"),
            "sft": _("Conversations to imitate (sft)"),
            "prompt-completion": _("Prompts and their answers (prompt-completion)"),
            "preference": _("Pairs of a better and a worse answer (preference)"),
            "rl": _("Steps with rewards (rl)"),
        },
        "consent": {"public": _("open data"), "research": _("also what was kept for research here")},
        "market": dict(names),
        "family": {family.value: market_page.family_text(family) for family in Family},
        "outcome": {
            "deal": _("a deal"),
            "no-deal": _("no deal, for whatever reason"),
            "sold_out": _("everything was sold"),
            "buyers_gone": _("the buyers left"),
            "seller_left": _("the seller left"),
            "turns_used": _("the messages were used up"),
            "events_used": _("the moves were used up"),
            "silence": _("both sides waited"),
            "deadline": _("time ran out"),
            "malformed": _("an unreadable message of an agent"),
            "closed": _("closed while others went on"),
        },
        "role": sides,
        "kind": {
            "person": _("a person"),
            "scripted": _("a scripted agent"),
            "narrator": _("a scripted agent for whom a model speaks"),
            "llm": _("a language model"),
            "trained": _("an agent trained here"),
        },
        "perspective": sides | {"party-1": _("the first party of a corpus"), "party-2": _("the second party")},
        "protocol": {
            "auto": _("as the market is played"),
            "four_part": _("text in four parts"),
            "tools": _("function calls"),
        },
        "thoughts": {"without": _("left out"), "with": _("written")},
        "rows": {"turn": _("one turn"), "episode": _("one whole game")},
    }


def _page(typed: dict[str, str], problem: str = "") -> ExportsPage:
    rows = tuple(map(_row, Export.objects.all()[:SHOWN]))
    roles = tuple(role.value for role in Role)
    slugs = tuple(dict.fromkeys(selectors.current_markets().order_by("id").values_list("slug", flat=True)))
    selects: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("format", _("Format"), asking.FORMATS),
        ("consent", _("Scope of consent"), asking.SCOPES),
        ("market", _("Market"), ("", *slugs)),
        ("family", _("Family"), ("", *(family.value for family in Family))),
        ("study", _("Study"), ("", *Study.objects.order_by("slug").values_list("slug", flat=True))),
        ("outcome", _("Outcome"), ("", *asking.OUTCOMES)),
        ("role", _("With a seat of this side"), ("", *roles)),
        ("kind", _("Who sat there"), ("", *asking.KINDS)),
        ("perspective", _("Whose moves are learned"), ("", *asking.PERSPECTIVES)),
        ("corpus", _("Imported corpus instead of games"), ("", *(holding.name for holding in corpora.holdings()))),
        ("protocol", _("Protocol"), asking.PROTOCOLS),
        ("thoughts", _("Thoughts of agents"), tuple(way.value for way in asking.Thoughts)),
        ("rows", _("A conversation to imitate holds"), ("turn", "episode")),
    )
    words = _words()
    lines = (
        ("agent", _("Agent"), _("Its name in scripts, which its page has; empty for any.")),
        ("min_share", _("Least share of the surplus"), _("Of that seat, such as 0.5.")),
        ("since", _("Ended on this day or later"), _("Such as 2026-11-30.")),
    )
    return ExportsPage(
        rows=rows,
        selects=tuple(
            SelectField(
                name,
                label,
                tuple(
                    Choice(
                        value=value,
                        label=words.get(name, {}).get(value, value) or _("any"),
                        selected=typed.get(name, "") == value,
                    )
                    for value in values
                ),
            )
            for name, label, values in selects
        ),
        lines=tuple(TextField(name, label, typed.get(name, ""), about) for name, label, about in lines),
        as_is=bool(typed.get("keep_text_as_is")),
        narrowed=any(value for name, value in typed.items() if name not in ("format", "consent", "market")),
        problem=problem,
        waiting=Export.objects.filter(status__in=jobs.OPEN).exists(),
    )


def _row(row: Export) -> ExportRow:
    held = jobs.counts(row)
    state = str(row.get_status_display())
    if row.status == ExportStatus.RUNNING and row.total is not None:
        state = _("%(state)s: %(done)s of %(total)s episodes") % {
            "state": state,
            "done": count(row.done),
            "total": count(row.total),
        }
    words = _words()
    asked = json.loads(row.asked)
    narrowed = (str(words.get(name, {}).get(asked[name], asked[name])) for name in NARROWING if asked.get(name))
    return ExportRow(
        what=", ".join((row.format, words["consent"][row.consent], *narrowed)),
        state=state,
        error=row.error,
        size=_("%(episodes)s episodes, %(rows)s rows")
        % {"episodes": count(held["episodes"]), "rows": count(held["rows"])}
        if held
        else "",
        sha256=row.sha256,
        when=row.created_at,
        download_url=reverse("export-download", args=[row.public_id]) if row.status == ExportStatus.DONE else "",
        delete_url=reverse("export-delete", args=[row.public_id]) if row.status == ExportStatus.DONE else "",
    )
