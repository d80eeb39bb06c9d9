"""Django's handle on exports."""

from django.apps import AppConfig


class ExportsConfig(AppConfig):
    name = "negotiation_site.exports"
    label = "exports"
    verbose_name = "Exports"
    default_auto_field = "django.db.models.BigAutoField"
