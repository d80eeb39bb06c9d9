"""Django's handle on the site package: registers the start-up checks."""

from django.apps import AppConfig


class NegotiationSiteConfig(AppConfig):
    name = "negotiation_site"
    verbose_name = "Parley"

    def ready(self) -> None:
        from negotiation_site import checks  # noqa: F401  (importing it registers the checks)
