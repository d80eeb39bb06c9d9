"""Django's handle on shared results; takes the links of a person away who is erased."""

from typing import Any

from django.apps import AppConfig


class SharingConfig(AppConfig):
    name = "negotiation_site.sharing"
    label = "sharing"
    verbose_name = "Shared results"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from markets.signals import person_erased

        person_erased.connect(_forget, dispatch_uid="sharing.forget")


def _forget(*, participant: Any, **_: Any) -> None:
    from negotiation_site.sharing.models import SharedResult

    SharedResult.objects.filter(seat__participant=participant).delete()
