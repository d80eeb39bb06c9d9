"""Who may read which finished negotiation. Every list, page, comparison, export and endpoint starts from here.

Contract.
- Everybody reads what is open data: simulations, and games that everybody in them gave as such, but no game of
  people in a market that keeps values after the end.
- Staff and researchers read also what was kept for research here, and imported corpora.
- What somebody kept for nobody is read by nobody but those who sat there, and by them from their own seat alone:
  in the room's result and replay (`markets.result`), which this module does not open to anyone.
"""

from typing import TypeAlias

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Q, QuerySet

from markets.models import ConsentScope, Episode, EpisodeSource, ImportedDialogue, Market

Viewer: TypeAlias = User | AnonymousUser


def is_researcher(viewer: Viewer) -> bool:
    """Whether somebody is of the staff, or may build markets or export."""
    return viewer.is_active and (
        viewer.is_staff or viewer.has_perm("markets.build_market") or viewer.has_perm("exports.make_export")
    )


def reads_corpora(viewer: Viewer) -> bool:
    """Whether somebody may read imported corpora."""
    return is_researcher(viewer) or (viewer.is_active and viewer.has_perm("markets.view_corpus"))


def episodes(viewer: Viewer) -> QuerySet[Episode]:
    """The finished negotiations that somebody may read."""
    if is_researcher(viewer):
        return Episode.objects.filter(consent_scope__in=(ConsentScope.PUBLIC, ConsentScope.RESEARCH))
    return open_episodes()


def open_episodes() -> QuerySet[Episode]:
    """The finished negotiations that anybody may read."""
    found = Episode.objects.filter(consent_scope=ConsentScope.PUBLIC)
    closed = list(Market.objects.filter(reveals_values=False).values_list("pk", flat=True))
    # As numbers, so that a list of a hundred thousand is read from its index alone.
    return found.exclude(Q(source=EpisodeSource.LIVE) & Q(market__in=closed)) if closed else found


def dialogues(viewer: Viewer) -> QuerySet[ImportedDialogue]:
    """The imported dialogues that somebody may read."""
    return ImportedDialogue.objects.all() if reads_corpora(viewer) else ImportedDialogue.objects.none()
