"""Django's handle on studies."""

from django.apps import AppConfig


class StudiesConfig(AppConfig):
    name = "negotiation_site.studies"
    label = "studies"
    verbose_name = "Studies"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from negotiation_site.studies import erasing

        erasing.connect()
