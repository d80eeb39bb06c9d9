"""The table of notes on transcripts. Writes live in `annotations`.

A note may quote anybody at its table: erasing one of them takes the notes on the transcript with it (`apps`), and
erasing its author takes it too.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q

from markets.models import Episode, ImportedDialogue


class Annotation(models.Model):
    """A tag and a note on one transcript, or on one turn of it."""

    episode = models.ForeignKey(Episode, null=True, blank=True, on_delete=models.CASCADE, related_name="annotations")
    dialogue = models.ForeignKey(
        ImportedDialogue, null=True, blank=True, on_delete=models.CASCADE, related_name="annotations"
    )
    n = models.PositiveIntegerField(null=True, blank=True)
    """Number of the event it is about; None for the whole transcript."""
    tag = models.SlugField(max_length=40)
    note = models.TextField(blank=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="annotations")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(episode=None, dialogue__isnull=False) | Q(episode__isnull=False, dialogue=None),
                name="annotation_of_one_transcript",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tag} #{self.pk}"
