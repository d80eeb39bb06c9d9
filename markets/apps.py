"""Django's handle on the markets package; tells copies of the record when rows of it go."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import pre_delete


class MarketsConfig(AppConfig):
    name = "markets"
    verbose_name = "Markets and rooms"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from markets.models import Episode, Participant

        pre_delete.connect(_episode_goes, sender=Episode)
        pre_delete.connect(_person_goes, sender=Participant)


def _episode_goes(instance: Any, **_kwargs: object) -> None:
    from markets import episodes

    episodes.note_change([instance.pk])


def _person_goes(instance: Any, **_kwargs: object) -> None:
    from markets import episodes

    episodes.note_change(instance.episode_seats.values_list("episode_id", flat=True))
