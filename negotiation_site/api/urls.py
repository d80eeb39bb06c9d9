"""Addresses of the programming interface: the endpoints, their document, its page, and the page of tokens."""

from django.urls import URLPattern, path, re_path

from negotiation_site.api import pages
from negotiation_site.api.endpoints import api, in_json, not_found


def _endpoints() -> list[URLPattern]:
    """Ninja's addresses under `/api/v1/`, with every answer in JSON; its own root is left out."""
    found = []
    for pattern in api.urls[0]:
        if isinstance(pattern, URLPattern) and pattern.name != "api-root":
            found.append(path(f"api/v1/{pattern.pattern}", in_json(pattern.callback), name=f"api-{pattern.name}"))
    return found


urlpatterns = [
    path("api/docs/", pages.docs, name="api-docs"),
    path("api/v1/openapi.json", pages.openapi, name="api-openapi"),
    *_endpoints(),
    re_path(r"^api/v1(?:/.*)?$", in_json(not_found)),
    path("account/tokens/", pages.token_list, name="api-tokens"),
    path("account/tokens/<int:number>/revoke/", pages.token_revoke, name="api-token-revoke"),
]
