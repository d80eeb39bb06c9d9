"""What names a transcript in an address: an episode's public identifier, or `CORPUS/KEY` of an imported dialogue."""

from typing import TypeAlias

from django.urls import reverse

from markets.models import Episode, ImportedDialogue
from negotiation_site.reading_room import access
from negotiation_site.reading_room.access import Viewer

Transcript: TypeAlias = Episode | ImportedDialogue


def of(row: Transcript) -> str:
    """The name of a transcript; a dialogue must carry its corpus."""
    return row.public_id if isinstance(row, Episode) else f"{row.corpus.name}/{row.key}"


def url(row: Transcript) -> str:
    """Its page."""
    if isinstance(row, Episode):
        return reverse("transcript", args=[row.public_id])
    return reverse("corpus-dialogue", args=[row.corpus.name, row.key])


def find(viewer: Viewer, name: str) -> Transcript | None:
    """The transcript of this name with everything that its page shows, if `viewer` may read it."""
    if "\0" in name:
        return None
    corpus, slash, key = name.partition("/")
    if not slash:
        return (
            access.episodes(viewer)
            .filter(public_id=name)
            .select_related("market")
            .prefetch_related("seats", "texts")
            .first()
        )
    return (
        access.dialogues(viewer)
        .filter(corpus__name=corpus, key=key)
        .select_related("corpus")
        .prefetch_related("parties", "texts")
        .first()
    )
