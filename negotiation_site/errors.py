"""Pages for requests that went wrong, where Django's own handlers do not suffice.

403 and 500 are Django's default handlers with the templates of the same names. The 500 page is a file: it needs no
database, no session and no template tag, because any of them may be what failed.
"""

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

QUERY = "matches the given query"
"""In what Django says of a row that is not there, which is no sentence for people."""


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without a valid token: an old tab, or cookies switched off. `reason` is for the log, not the page."""
    sentence = _("This form was too old, or cookies are switched off. Go back, reload the page and try again.")
    return render(request, ["403_csrf.html", "403.html"], {"exception": sentence}, status=403)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that could not be read; one that was too much to read has a page of its own."""
    if isinstance(exception, (RequestDataTooBig, TooManyFieldsSent)):
        return render(request, ["413.html", "400.html"], status=413)
    return render(request, "400.html", status=400)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """An address that leads nowhere, with the sentence of whoever found that out."""
    said = exception.args[0] if exception.args else ""
    sentence = said if isinstance(said, str) and QUERY not in said else ""
    return render(request, "404.html", {"sentence": sentence}, status=404)
