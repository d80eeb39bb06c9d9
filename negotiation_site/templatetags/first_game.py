"""`{% first_game_hints page %}`: the hints of a guided room; nothing in any other. Built into every template."""

from typing import Any

from django import template
from django.urls import reverse

from markets.presentation import RoomPage
from negotiation_site.help import first_game
from negotiation_site.starter.markets import FIRST

register = template.Library()


@register.inclusion_tag("help/_first_game.html")
def first_game_hints(page: RoomPage) -> dict[str, Any]:
    """The context of the hints; without any where the room is not guided."""
    guided = page.market_url == reverse("market", args=[FIRST])
    return {"hints": first_game.hints(page) if guided else (), "room": page.public_id}
