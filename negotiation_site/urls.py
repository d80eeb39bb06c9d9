"""Addresses of the site: its own pages, then each package's."""

from django.contrib import admin
from django.urls import include, path

from negotiation_site import health

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
    path("", include("markets.urls")),
]
