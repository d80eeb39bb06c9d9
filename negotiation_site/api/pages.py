"""Pages of the programming interface: what it answers, and the tokens of an account.

The page of documentation is made from the OpenAPI document on the server, so that it needs no script and nothing from
anywhere else. A token is in one answer only, to the POST that made it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from negotiation_site.api import tokens
from negotiation_site.api.endpoints import api
from negotiation_site.api.models import ApiToken
from negotiation_site.reading_room import access

METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class FieldRow:
    """A parameter, or a field of an answer."""

    name: str
    kind: str
    about: str
    note: str = ""
    url: str = ""
    """Of the object that it holds."""


@dataclass(frozen=True)
class EndpointCard:
    """One endpoint."""

    element: str
    method: str
    path: str
    summary: str
    about: str
    parameters: tuple[FieldRow, ...]
    answer: str
    answer_url: str
    statuses: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ObjectCard:
    """One object that answers hold."""

    element: str
    name: str
    about: str
    fields: tuple[FieldRow, ...]


@dataclass(frozen=True)
class TokenRow:
    """A token that works."""

    number: int
    name: str
    start: str
    made: str
    used: str


@dataclass(frozen=True)
class TokensPage:
    """Context `page` of `api/tokens.html`."""

    rows: tuple[TokenRow, ...]
    researcher: bool
    secret: str = ""
    secret_name: str = ""
    problem: str = ""
    typed: str = ""


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document as JSON has it; not to be changed."""
    made = json.dumps(api.get_openapi_schema(path_prefix="/api/v1/"), cls=DjangoJSONEncoder)
    return cast(dict[str, Any], json.loads(made))


@require_GET
def openapi(request: HttpRequest) -> HttpResponse:
    """The OpenAPI document, for anybody."""
    return JsonResponse(document())


@require_GET
def docs(request: HttpRequest) -> HttpResponse:
    """The same for people."""
    schema = document()
    context = {
        "endpoints": tuple(_endpoints(schema)),
        "objects": tuple(_objects(schema)),
        "origin": f"{request.scheme}://{request.get_host()}",
        "limit": tokens.LIMIT,
        "window": tokens.WINDOW_S,
        "version": schema["info"]["version"],
    }
    return render(request, "api/docs.html", context)


# --- The document in words ----------------------------------------------------------------------------


def _endpoints(schema: dict[str, Any]) -> Iterator[EndpointCard]:
    for path, operations in schema["paths"].items():
        for method in METHODS:
            if method not in operations:
                continue
            operation = operations[method]
            answers = operation["responses"]
            kind, url = _kind(answers["200"]["content"]["application/json"]["schema"] if "200" in answers else {})
            yield EndpointCard(
                element=operation["operationId"],
                method=method.upper(),
                path=path,
                summary=operation["summary"],
                about=operation.get("description", ""),
                parameters=tuple(map(_parameter, operation["parameters"])),
                answer=kind,
                answer_url=url,
                statuses=tuple(
                    (str(code), _status_text(str(code))) for code in sorted(answers, key=str) if str(code) != "200"
                ),
            )


def _status_text(code: str) -> str:
    return {
        "400": _("a parameter cannot be read, is unknown, or is there twice"),
        "401": _("no token, or one that is not known"),
        "404": _("there is no such thing, or the token may not read it"),
        "429": _("too many requests; Retry-After says for how many seconds"),
    }.get(code, "")


def _parameter(parameter: dict[str, Any]) -> FieldRow:
    schema = parameter["schema"]
    if "anyOf" in schema:  # Left out is how null is asked for.
        schema = schema | {"anyOf": [each for each in schema["anyOf"] if each.get("type") != "null"]}
    kind, _url = _kind(schema)
    ends = [
        text % schema[key]
        for key, text in (("minimum", _("at least %s")), ("maximum", _("at most %s")))
        if key in schema
    ]
    if schema.get("default") not in (None, ""):
        ends.append(_("otherwise %s") % schema["default"])
    return FieldRow(
        name=parameter["name"],
        kind=kind,
        about=_plain(schema.get("description") or parameter.get("description", "")),
        note=_("in the address") if parameter["in"] == "path" else ", ".join(ends),
    )


def answered(schema: dict[str, Any]) -> list[str]:
    """The objects that answers are made of, those that hold others first."""
    held = schema["components"]["schemas"]
    waiting = [_named_in(operations["get"]["responses"]) for operations in schema["paths"].values()]
    found: list[str] = []
    queue = [name for names in waiting for name in names]
    while queue:
        name = queue.pop(0)
        if name not in found:
            found.append(name)
            queue += _named_in(held[name])
    return found


def _named_in(part: Any) -> list[str]:
    """Names of the objects that a part of the document refers to."""
    if isinstance(part, dict):
        own = [part["$ref"].rpartition("/")[2]] if "$ref" in part else []
        return own + [name for each in part.values() for name in _named_in(each)]
    return [name for each in part for name in _named_in(each)] if isinstance(part, list) else []


def _objects(schema: dict[str, Any]) -> Iterator[ObjectCard]:
    for name in answered(schema):
        held = schema["components"]["schemas"][name]
        if "properties" not in held:
            continue
        fields = []
        for field, about in held["properties"].items():
            kind, url = _kind(about)
            fields.append(FieldRow(field, kind, _plain(about.get("description", "")), url=url))
        yield ObjectCard(f"object-{name}", name, held.get("description", ""), tuple(fields))


def _plain(text: str) -> str:
    """A description without the marks of Markdown."""
    return re.sub(r"`([^`]*)`", "“\\1”", text)


def _kind(schema: dict[str, Any]) -> tuple[str, str]:
    """A type in a few words, and the place of the object that it is made of."""
    if "$ref" in schema:
        return _named(schema["$ref"])
    if "anyOf" in schema:
        kinds = [_kind(each) for each in schema["anyOf"] if each.get("type") != "null"]
        nullable = _(" or null") if len(kinds) < len(schema["anyOf"]) else ""
        return _(" or ").join(kind for kind, _url in kinds) + nullable, next((url for _kind_, url in kinds if url), "")
    if "allOf" in schema:
        return _kind(schema["allOf"][0])
    if "enum" in schema:
        return ", ".join(f"“{value}”" for value in schema["enum"]), ""
    if "const" in schema:
        return f"“{schema['const']}”", ""
    kind = str(schema.get("type", _("anything")))
    if kind == "array":
        inner, url = _kind(schema.get("items", {}))
        return _("list of %s") % inner, url
    if kind == "string" and schema.get("format") == "date-time":
        return _("time"), ""
    return {
        "string": _("text"),
        "integer": _("whole number"),
        "number": _("number"),
        "boolean": _("true or false"),
        "object": _("object"),
    }.get(kind, kind), ""


def _named(reference: str) -> tuple[str, str]:
    """An object by its name; a closed set of words by its words."""
    name = reference.rpartition("/")[2]
    held = document()["components"]["schemas"].get(name, {})
    return _kind(held) if "enum" in held else (name, f"#object-{name}")


# --- Tokens -------------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@never_cache
def token_list(request: HttpRequest) -> HttpResponse:
    """One's tokens and the form; a POST makes one and shows it, this once."""
    owner = cast(User, request.user)
    if request.method != "POST":
        return render(request, "api/tokens.html", {"page": _page(owner)})
    typed = request.POST.get("name", "")
    try:
        row, secret = tokens.create(owner=owner, name=typed)
    except tokens.TokenError as error:
        page = _page(owner, problem=str(error), typed=typed[: tokens.LONGEST_NAME])
        return render(request, "api/tokens.html", {"page": page}, status=400)
    return render(request, "api/tokens.html", {"page": _page(owner, secret=secret, secret_name=row.name)})


@require_POST
@login_required
def token_revoke(request: HttpRequest, number: int) -> HttpResponse:
    """Revoke one."""
    if tokens.revoke(owner=cast(User, request.user), number=number):
        messages.success(request, _("The token is revoked: nothing gets in with it any more."))
    else:
        messages.error(request, _("You have no such token."))
    return redirect("api-tokens")


def _page(owner: User, **more: str) -> TokensPage:
    return TokensPage(rows=tuple(map(_row, tokens.of(owner))), researcher=access.is_researcher(owner), **more)


def _row(token: ApiToken) -> TokenRow:
    return TokenRow(
        number=token.pk,
        name=token.name,
        start=token.start,
        made=date_format(token.created_at),
        used=date_format(token.last_used_at, "DATETIME_FORMAT") if token.last_used_at else _("never"),
    )
