"""Django's handle on the markets package; tells copies of the record when rows of it go, and makes the group of
those who may build markets."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_delete


class MarketsConfig(AppConfig):
    name = "markets"
    verbose_name = "Markets and rooms"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from markets.models import Episode, Participant

        pre_delete.connect(_episode_goes, sender=Episode)
        pre_delete.connect(_person_goes, sender=Participant)
        post_migrate.connect(_researchers, sender=self)


def _episode_goes(instance: Any, **_kwargs: object) -> None:
    from markets import episodes

    episodes.note_change([instance.pk])


def _person_goes(instance: Any, **_kwargs: object) -> None:
    from markets import episodes

    episodes.note_change(instance.episode_seats.values_list("episode_id", flat=True))


RESEARCHERS = "Researchers"
"""Name of the group whose members may build markets."""


def _researchers(using: str, **_kwargs: object) -> None:
    """Make the group once; who takes a permission from it later is not contradicted."""
    from django.contrib.auth.models import Group, Permission

    group, created = Group.objects.using(using).get_or_create(name=RESEARCHERS)
    if created:
        may = Permission.objects.using(using).filter(content_type__app_label="markets", codename="build_market")
        group.permissions.add(*may)
