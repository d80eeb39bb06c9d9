"""Django's handle on the markets package."""

from django.apps import AppConfig


class MarketsConfig(AppConfig):
    name = "markets"
    verbose_name = "Markets and rooms"
    default_auto_field = "django.db.models.BigAutoField"
