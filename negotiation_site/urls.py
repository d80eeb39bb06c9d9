"""Addresses of the site: its own pages, then each package's."""

from django.contrib import admin
from django.urls import include, path
from django.utils.translation import gettext_lazy as _

from negotiation_site import health, training_pages, views

admin.site.site_header = admin.site.site_title = _("Parley administration")
admin.site.index_title = _("Markets, games and accounts")

urlpatterns = [
    path("", views.home, name="home"),
    path("markets/<slug:slug>/", views.market, name="market"),
    path("markets/<slug:slug>/play/", views.play, name="play"),
    path("rooms/<slug:public_id>/rematch/", views.rematch, name="room-rematch"),
    path("agents/", views.agents, name="agents"),
    path("glossary/", views.glossary_page, name="glossary"),
    path("runs/", training_pages.run_list, name="run-list"),
    path("runs/<slug:name>/", training_pages.run_detail, name="run"),
    path("runs/<slug:name>/cancel/", training_pages.run_cancel, name="run-cancel"),
    path("runs/<slug:name>/resume/", training_pages.run_resume, name="run-resume"),
    path("about/", views.about, name="about"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
    path("", include("markets.urls")),
]
