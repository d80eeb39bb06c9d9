"""Tables of training: runs, who holds which device, and tournaments with their shares of work.

A `Run` row is the truth about a run's life; its folder (`runs.folder`) holds configuration, metrics
and checkpoints. Writes live in `services`. A `Tournament` is cut into shards that workers claim; its
games point to the episodes that hold their record. Writes live in `tournaments.services`.
"""

from django.db import models
from django.utils.translation import gettext_lazy as _

from markets.models import Episode, Market


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
    source = models.TextField(blank=True)
    """JSON of `training.datasets.Chosen`, what is imitated; empty: the preset's own demonstrators."""
    device = models.CharField(max_length=40, default="cpu")
    """Which device it needs for itself."""
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
        permissions = [("train_agents", "Can train agents")]

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


class TournamentStatus(models.TextChoices):
    """Life of a tournament."""

    QUEUED = "queued", _("waiting for a worker")
    RUNNING = "running", _("being played")
    DONE = "done", _("finished")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


class Tournament(models.Model):
    """A set of agents, a set of scenarios, and every ordered pair (who sells, who buys) in each of them."""

    name = models.SlugField(unique=True)
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="tournaments")
    agents = models.TextField()
    """JSON of the agents' `[slug, version]`, in the order in which they were named."""
    pairs = models.TextField()
    """JSON of `[seller's slug, buyer's slug]` by the pair's number."""
    scenarios = models.PositiveIntegerField()
    seed = models.BigIntegerField()
    status = models.CharField(max_length=10, choices=TournamentStatus.choices, default=TournamentStatus.QUEUED)
    error = models.TextField(blank=True)
    result_sha256 = models.CharField(max_length=64, blank=True)
    """Hash over the records of all games in canonical order; empty until it is finished."""
    figures = models.TextField(blank=True)
    """JSON of `tournaments.results.Kept`: ratings and findings; empty until it is finished."""
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.name


class ShardState(models.TextChoices):
    """Life of a share of the work."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    DONE = "done", _("done")


class TournamentShard(models.Model):
    """A block of pairs by scenarios that one worker plays and stores at once. Claimed by compare-and-swap."""

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="shards")
    number = models.PositiveIntegerField()
    first_pair = models.PositiveIntegerField()
    pairs = models.PositiveIntegerField()
    first_scenario = models.PositiveIntegerField()
    scenarios = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=ShardState.choices, default=ShardState.QUEUED)
    owner = models.CharField(max_length=120, blank=True)
    """`host:process:token` of the worker that holds it."""
    lease_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["tournament", "number"]
        constraints = [
            models.UniqueConstraint(fields=["tournament", "number"], name="tournament_shard_once"),
        ]
        indexes = [models.Index(fields=["tournament", "state", "number"], name="tournament_shard_open")]

    def __str__(self) -> str:
        return f"{self.tournament_id} #{self.number}"


class TournamentGame(models.Model):
    """One pair in one scenario, and the episode that is its record: exactly one."""

    tournament = models.ForeignKey(Tournament, on_delete=models.CASCADE, related_name="games")
    pair = models.PositiveIntegerField()
    """Number of the pair in the tournament's `pairs`, from 0."""
    scenario = models.PositiveIntegerField()
    """Number of the scenario, from 0; the same for every pair."""
    episode = models.OneToOneField(Episode, on_delete=models.PROTECT, related_name="tournament_game")

    class Meta:
        ordering = ["tournament", "pair", "scenario"]
        constraints = [
            models.UniqueConstraint(fields=["tournament", "pair", "scenario"], name="tournament_game_once"),
        ]

    def __str__(self) -> str:
        return f"{self.tournament_id} pair {self.pair} scenario {self.scenario}"
