"""Addresses of the site: its own pages, then each package's."""

from django.apps import apps
from django.contrib import admin
from django.urls import include, path
from django.utils.translation import gettext_lazy as _

from agents.views import model_calls
from negotiation_site import (
    agent_forms,
    agent_page,
    builder_pages,
    corpora_pages,
    export_pages,
    health,
    metrics,
    operations,
    tournament_pages,
    training_comparison,
    training_forms,
    training_pages,
    transcripts,
    views,
)
from negotiation_site.guide import pages as guide
from negotiation_site.help import pages as help_pages
from negotiation_site.leaderboard import corpora as leaderboard_corpora
from negotiation_site.leaderboard import pages as leaderboard
from negotiation_site.moderation import pages as moderation
from negotiation_site.sharing import pages as sharing

admin.site.site_header = admin.site.site_title = _("Parley administration")
admin.site.index_title = _("Markets, games and accounts")
apps.get_app_config("axes").verbose_name = _("Failed sign-ins")

handler400 = "negotiation_site.errors.bad_request"
handler404 = "negotiation_site.errors.not_found"

urlpatterns = [
    path("", views.home, name="home"),
    path("markets/<slug:slug>/", views.market, name="market"),
    path("markets/<slug:slug>/play/", views.play, name="play"),
    path("rooms/<slug:public_id>/rematch/", views.rematch, name="room-rematch"),
    path("rooms/<slug:public_id>/model-calls/", model_calls, name="model-calls"),
    path("rooms/<slug:public_id>/report/", moderation.report, name="room-report"),
    path("rooms/<slug:public_id>/share/", sharing.share, name="room-share"),
    path("shared/<slug:token>/", sharing.shared_result, name="shared-result"),
    path("shared/<slug:token>/card.png", sharing.shared_card, name="shared-card"),
    path("moderation/", moderation.desk, name="moderation"),
    path("moderation/act/", moderation.act, name="moderation-act"),
    path("agents/", views.agents, name="agents"),
    path("agents/new/", agent_forms.new, name="agents-new"),
    path("agents/mine/", agent_forms.own, name="agents-own"),
    path("agents/<slug:slug>/", agent_page.agent_page, name="agent"),
    path("agents/<slug:slug>/versions/", agent_forms.versions, name="agent-versions"),
    path("agents/<slug:slug>/try/", agent_forms.try_it, name="agent-try"),
    path("agents/<slug:slug>/put-up/", agent_forms.put_up, name="agent-put-up"),
    path("agents/<slug:slug>/retire/", agent_forms.retire, name="agent-retire"),
    path("leaderboard/", leaderboard.agents_page, name="leaderboard"),
    path("leaderboard/agents.csv", leaderboard.agents_csv, name="leaderboard-csv"),
    path("leaderboard/people/", leaderboard.people_page, name="leaderboard-people"),
    path("leaderboard/corpora/", leaderboard_corpora.corpora_figures_page, name="leaderboard-corpora"),
    path("episodes/<slug:public_id>/", transcripts.transcript, name="transcript"),
    path("glossary/", views.glossary_page, name="glossary"),
    path("guide/", guide.guide, name="guide"),
    path("help/", help_pages.help_page, name="help"),
    path("help/first-game/", help_pages.begin, name="first-game"),
    path("runs/", training_pages.run_list, name="run-list"),
    path("runs/new/", training_forms.new, name="run-new"),
    path("runs/preview/", training_forms.preview, name="run-preview"),
    path("runs/compare/", training_comparison.compare, name="run-compare"),
    path("runs/quality/", training_comparison.quality, name="run-quality"),
    path("runs/<slug:name>/", training_pages.run_detail, name="run"),
    path("runs/<slug:name>/status/", training_pages.run_status, name="run-status"),
    path("runs/<slug:name>/curves/", training_pages.run_curves, name="run-curves"),
    path("runs/<slug:name>/games/", training_pages.run_samples, name="run-samples"),
    path("runs/<slug:name>/log/", training_pages.run_log, name="run-log"),
    path("runs/<slug:name>/publish/", training_pages.run_publish, name="run-publish"),
    path("runs/<slug:name>/cancel/", training_pages.run_cancel, name="run-cancel"),
    path("runs/<slug:name>/resume/", training_pages.run_resume, name="run-resume"),
    path("builder/", builder_pages.market_list, name="builder"),
    path("builder/new/", builder_pages.new, name="builder-new"),
    path("builder/preview/", builder_pages.preview, name="builder-preview"),
    path("builder/markets/<slug:slug>/", builder_pages.versions, name="builder-versions"),
    path("builder/markets/<slug:slug>/change/", builder_pages.change, name="builder-change"),
    path("builder/markets/<slug:slug>/retire/", builder_pages.retire, name="builder-retire"),
    path("builder/markets/<slug:slug>/restore/", builder_pages.restore, name="builder-restore"),
    path("builder/markets/<slug:slug>/<int:number>/", builder_pages.version, name="builder-version"),
    path("tournaments/", tournament_pages.tournament_list, name="tournament-list"),
    path("tournaments/new/", tournament_pages.hold, name="tournament-new"),
    path("tournaments/<slug:name>/", tournament_pages.tournament, name="tournament"),
    path("tournaments/<slug:name>/progress/", tournament_pages.progress, name="tournament-progress"),
    path("tournaments/<slug:name>/cancel/", tournament_pages.cancel, name="tournament-cancel"),
    path("tournaments/<slug:name>/resume/", tournament_pages.resume, name="tournament-resume"),
    path("tournaments/<slug:name>/ranking.csv", tournament_pages.ranking_csv, name="tournament-ranking-csv"),
    path("tournaments/<slug:name>/games.csv", tournament_pages.games_csv, name="tournament-games-csv"),
    path("exports/", export_pages.export_list, name="export-list"),
    path("exports/rows/", export_pages.export_rows, name="export-rows"),
    path("exports/<slug:public_id>/download/", export_pages.export_download, name="export-download"),
    path("exports/<slug:public_id>/delete/", export_pages.export_delete, name="export-delete"),
    path("suites/", tournament_pages.suites, name="suites"),
    path("corpora/", corpora_pages.corpus_list, name="corpora"),
    path("corpora/<slug:name>/", corpora_pages.corpus_page, name="corpus"),
    path("corpora/<slug:name>/<str:key>/", corpora_pages.dialogue_page, name="corpus-dialogue"),
    path("", include("negotiation_site.reading_room.urls")),
    path("", include("negotiation_site.api.urls")),
    path("about/", views.about, name="about"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("operations/", operations.operations, name="operations"),
    path("operations/figures/", operations.figures, name="operations-figures"),
    path("admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
    path("", include("negotiation_site.studies.urls")),
    path("", include("markets.urls")),
]
