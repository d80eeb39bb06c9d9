"""The table of exports that were asked for on the site. Writes live in `jobs`.

A row is the truth about an export's life; the folder and its archive lie under `PARLEY_VAR/exports`.
"""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from markets.models import Participant, new_public_id


class ExportStatus(models.TextChoices):
    """Life of an export."""

    QUEUED = "queued", _("waiting for a worker")
    RUNNING = "running", _("being written")
    DONE = "done", _("ready")
    FAILED = "failed", _("failed")
    DELETED = "deleted", _("deleted")
    WITHDRAWN = "withdrawn", _("withdrawn")
    """Somebody in it was erased: its files are gone for good."""


class Export(models.Model):
    """One data set. Claimed by compare-and-swap; its hash and counts stay when its files are deleted."""

    public_id = models.CharField(max_length=24, unique=True, default=new_public_id)
    asked = models.TextField()
    """JSON of `asked.Asked`."""
    format = models.CharField(max_length=20)
    consent = models.CharField(max_length=10)
    status = models.CharField(max_length=10, choices=ExportStatus.choices, default=ExportStatus.QUEUED)
    total = models.PositiveIntegerField(null=True, blank=True)
    """Episodes that it will hold; None until they are counted."""
    done = models.PositiveIntegerField(default=0)
    counts = models.TextField(blank=True)
    """JSON of what it holds; empty until it is ready."""
    sha256 = models.CharField(max_length=64, blank=True)
    size_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    """Of the archive."""
    error = models.TextField(blank=True)
    owner = models.CharField(max_length=120, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    corpus = models.CharField(max_length=50, blank=True)
    """Name of the imported corpus that it was made of; empty for one of episodes."""
    people_noted = models.BooleanField(default=False)
    """Whether `ExportedPerson` names everybody in it; older ones do not say."""
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="exports"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        permissions = [("make_export", "Can export data sets")]

    def __str__(self) -> str:
        return f"{self.format} {self.public_id}"


class ExportedPerson(models.Model):
    """Somebody who sat at a table of an export, so that it can be withdrawn when they are erased. Goes with the person."""

    export = models.ForeignKey(Export, on_delete=models.CASCADE, related_name="people")
    participant = models.ForeignKey(Participant, on_delete=models.CASCADE, related_name="exports")

    class Meta:
        ordering = ["export", "id"]
        constraints = [models.UniqueConstraint(fields=["export", "participant"], name="exported_person_once")]

    def __str__(self) -> str:
        return f"{self.export_id} {self.participant_id}"
