"""Tables of training: runs, and who holds which device.

A `Run` row is the truth about a run's life; its folder (`runs.folder`) holds configuration, metrics
and checkpoints. Writes live in `services`.
"""

from django.db import models
from django.utils.translation import gettext_lazy as _

from markets.models import Market


class RunStatus(models.TextChoices):
    """Life of a run."""

    QUEUED = "queued", _("waiting for a device")
    RUNNING = "running", _("running")
    DONE = "done", _("finished")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


class Run(models.Model):
    """One training run: imitation, reinforcement, and a look at the result."""

    name = models.SlugField(unique=True)
    preset = models.CharField(max_length=40)
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="runs")
    config = models.TextField()
    """JSON of `training.config.RunConfig`."""
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.QUEUED)
    stage = models.CharField(max_length=20, blank=True)
    """The stage under way: `sft`, `grpo`, `evaluate`."""
    owner = models.CharField(max_length=80, blank=True)
    """Which watcher started it; a redelivered task finds this set and goes away."""
    process_group = models.PositiveIntegerField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    cancel_asked = models.BooleanField(default=False)
    error = models.TextField(blank=True)
    published_slug = models.SlugField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.name


class DeviceLock(models.Model):
    """One run at a time on a device."""

    device = models.CharField(max_length=40, unique=True)
    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="lock")
    taken_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["device"]

    def __str__(self) -> str:
        return f"{self.device}: {self.run_id}"
