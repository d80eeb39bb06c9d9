"""Django's handle on moderation; lets reports and hidden words go when a person is erased."""

from collections.abc import Collection
from typing import Any

from django.apps import AppConfig


class ModerationConfig(AppConfig):
    name = "negotiation_site.moderation"
    label = "moderation"
    verbose_name = "Moderation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from markets.signals import people_merged, words_erased

        people_merged.connect(_people_merge, dispatch_uid="moderation.people_merge")
        words_erased.connect(_words_go, dispatch_uid="moderation.words_go")


def _words_go(*, room_ids: Collection[int], **_: Any) -> None:
    """A report may name or quote anybody at the table, so what was written about these rooms goes."""
    from negotiation_site.moderation.models import HiddenWords, Report

    HiddenWords.objects.filter(room__in=room_ids).delete()
    Report.objects.filter(room__in=room_ids).update(note="", answer="")


def _people_merge(*, guest: Any, own: Any, **_: Any) -> None:
    """Whoever signs in does not leave reports behind."""
    from negotiation_site.moderation.models import Report

    Report.objects.filter(reported=guest).update(reported=own)
    for report in Report.objects.filter(reporter=guest):
        if not Report.objects.filter(room=report.room, party=report.party, reporter=own).exists():
            Report.objects.filter(pk=report.pk).update(reporter=own)
