"""Django's handle on the site package."""

from django.apps import AppConfig


class NegotiationSiteConfig(AppConfig):
    name = "negotiation_site"
    verbose_name = "Parley"
