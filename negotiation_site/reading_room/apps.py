"""Django's handle on the reading room; takes notes away when the words they were about are erased."""

from collections.abc import Collection
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_delete


class ReadingRoomConfig(AppConfig):
    name = "negotiation_site.reading_room"
    label = "reading_room"
    verbose_name = "Reading room"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from markets.models import ImportedParty
        from markets.signals import words_erased

        words_erased.connect(_words_go, dispatch_uid="reading_room.words_go")
        post_delete.connect(_party_goes, sender=ImportedParty, dispatch_uid="reading_room.party_goes")


def _words_go(*, room_ids: Collection[int], **_: Any) -> None:
    """A note may quote anybody at the table, so all notes on these games go."""
    from negotiation_site.reading_room.models import Annotation

    Annotation.objects.filter(episode__room__in=room_ids).delete()


def _party_goes(instance: Any, **_: Any) -> None:
    from negotiation_site.reading_room.models import Annotation

    Annotation.objects.filter(dialogue=instance.dialogue_id).delete()
