"""Django's handle on the programming interface."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "negotiation_site.api"
    label = "api"
    verbose_name = "Programming interface"
    default_auto_field = "django.db.models.BigAutoField"
