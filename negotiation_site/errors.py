"""Pages for requests that went wrong, where Django's own handlers do not suffice.

400, 403, 404 and 500 are Django's default handlers with the templates of the same names.
"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without a valid token: an old tab, or cookies switched off. `reason` is for the log, not the page."""
    sentence = _("This form was too old, or cookies are switched off. Go back, reload the page and try again.")
    return render(request, ["403_csrf.html", "403.html"], {"exception": sentence}, status=403)
