"""Reports of what people did to one another at a table, and words that were taken away. Writes live in `services`.

Erasing anybody at a table empties the words of its reports and lets go of what was hidden there (`apps`).
"""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from markets.models import Participant, Room


class Reason(models.TextChoices):
    """What is wrong, as whoever reports says."""

    INSULT = "insult", _("insults or threats")
    SEXUAL = "sexual", _("sexual words")
    PRIVATE = "private", _("asks for, or gives away, private things")
    ADVERTISING = "advertising", _("advertising or links")
    OTHER = "other", _("something else")


class Report(models.Model):
    """Somebody at a table says that somebody else there went too far."""

    room = models.ForeignKey(Room, on_delete=models.CASCADE, related_name="reports")
    party = models.CharField(max_length=20)
    """Seat that is reported."""
    reported = models.ForeignKey(Participant, null=True, on_delete=models.SET_NULL, related_name="reports_of")
    """Who sat there; None for an agent, or once erased."""
    reporter = models.ForeignKey(Participant, null=True, on_delete=models.SET_NULL, related_name="reports_by")
    reason = models.CharField(max_length=12, choices=Reason.choices)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    answer = models.TextField(blank=True)
    """What the staff did, in their words."""

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["closed_at", "-id"], name="reports_open_first")]
        constraints = [models.UniqueConstraint(fields=["room", "party", "reporter"], name="one_report_a_seat")]

    def __str__(self) -> str:
        return f"{self.reason} #{self.pk}"


class HiddenWords(models.Model):
    """What stood where the page now says that the staff took words away; kept so that it can be put back."""

    room = models.ForeignKey(Room, on_delete=models.CASCADE, related_name="hidden_words")
    n = models.PositiveIntegerField()
    talk = models.TextField()
    hidden_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    hidden_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["room", "n"]
        constraints = [models.UniqueConstraint(fields=["room", "n"], name="words_hidden_once")]

    def __str__(self) -> str:
        return f"{self.room_id} #{self.n}"
