"""Pages: making and taking back the link from one's own seat, and what a stranger sees behind it."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.http import require_GET, require_http_methods

from markets import identity, selectors
from markets.models import Seat
from markets.views import origin_of
from negotiation_site.sharing import cards, drawing
from negotiation_site.sharing.models import SharedResult


@require_http_methods(["GET", "POST"])
@never_cache
def share(request: HttpRequest, public_id: str) -> HttpResponse:
    """Whether and how whoever sat there shows the result."""
    seat = selectors.seat_of(public_id=public_id, participant=identity.participant_of(request.session))
    if seat is None:
        raise Http404(_("There is no such room, or you do not sit in it."))
    shared = SharedResult.objects.filter(seat=seat).first()
    if request.method == "POST":
        return _changed(request, seat, shared)
    try:
        card = cards.card(seat, named=shared is not None and shared.named)
    except cards.NotShareable as refused:
        return render(request, "sharing/share.html", {"room": public_id, "refusal": str(refused), "shared": shared})
    context = {
        "room": public_id,
        "card": card,
        "shared": shared,
        "url": "" if shared is None else origin_of(request) + reverse("shared-result", args=[shared.token]),
        "pseudonym": "" if seat.participant is None else seat.participant.pseudonym,
    }
    return render(request, "sharing/share.html", context)


def _changed(request: HttpRequest, seat: Seat, shared: SharedResult | None) -> HttpResponse:
    if request.POST.get("act") == "take-back":
        SharedResult.objects.filter(seat=seat).delete()
        messages.info(
            request, _("The link leads nowhere now. A preview that somebody was shown before may stay for a while.")
        )
        return redirect("room-share", public_id=seat.room.public_id)
    try:
        cards.check(seat)
    except cards.NotShareable as refused:
        messages.error(request, str(refused))
        return redirect("room-share", public_id=seat.room.public_id)
    SharedResult.objects.update_or_create(seat=seat, defaults={"named": request.POST.get("named") == "yes"})
    return redirect("room-share", public_id=seat.room.public_id)


def _card_behind(token: str) -> cards.Card:
    """The card of a link. Raises `Http404` for one that was taken back, or may not be shown any more."""
    shared = SharedResult.objects.filter(token=token).select_related("seat__room__market", "seat__participant").first()
    gone = _("There is no shared result here. Whoever shared it may have taken it back.")
    if shared is None:
        raise Http404(gone)
    try:
        return cards.card(shared.seat, named=shared.named)
    except cards.NotShareable:
        raise Http404(gone) from None


@require_GET
@never_cache
def shared_result(request: HttpRequest, token: str) -> HttpResponse:
    """The page behind a link."""
    origin = origin_of(request)
    context = {
        "card": _card_behind(token),
        "token": token,
        "url": origin + reverse("shared-result", args=[token]),
        "image": origin + reverse("shared-card", args=[token]),
        "size": (drawing.WIDTH, drawing.HEIGHT),
    }
    return render(request, "sharing/shared.html", context)


@require_GET
@cache_control(max_age=300, public=True)
def shared_card(request: HttpRequest, token: str) -> HttpResponse:
    """The card as a picture, for previews."""
    return HttpResponse(drawing.png(_card_behind(token)), content_type="image/png")
