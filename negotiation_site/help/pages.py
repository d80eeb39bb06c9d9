"""The help page, and the button into the guided first negotiation."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from markets import identity
from markets.services import RoomError
from negotiation_site import views
from negotiation_site.help import first_game


@require_GET
@never_cache
def help_page(request: HttpRequest) -> HttpResponse:
    """Where every kind of help is."""
    context = {
        "guided": first_game.market() is not None,
        "played": first_game.has_played(identity.participant_of(request.session)),
    }
    return render(request, "help/help.html", context)


@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    """Into the guided game, or back into the one that is going."""
    market = first_game.market()
    if market is None:
        raise Http404(_("This site has no guided game."))
    try:
        room = first_game.open_room(market=market, participant=identity.ensure_participant(request.session))
    except RoomError as refused:
        messages.error(request, refused.sentence)
        return redirect("help")
    return views.enter(request, room)
