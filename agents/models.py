"""What was asked of language models in live rooms and in games to measure them, for staff; and the agents that people entered.

Contract: a call is written once, never shown to a player, never with a key or a header; prompts and
replies are free text and go with the room. Entered agents are written by `entering`, an entry never
changes, and all of it goes with its author.
"""

from django.conf import settings
from django.db import models

from markets.models import AgentTurn, Room


class ModelCall(models.Model):
    """One question to a model during an agent's turn, and what came of it."""

    room = models.ForeignKey(Room, null=True, blank=True, on_delete=models.CASCADE, related_name="model_calls")
    """None for calls in simulated games, made to measure the model."""
    turn = models.ForeignKey(AgentTurn, null=True, blank=True, on_delete=models.CASCADE, related_name="model_calls")
    party = models.CharField(max_length=20)
    agent_slug = models.CharField(max_length=100)
    agent_version = models.CharField(max_length=40)
    purpose = models.CharField(max_length=12)
    """`move`, `repair` or `words`."""
    backend = models.CharField(max_length=60)
    asked_model = models.CharField(max_length=200)
    model = models.CharField(max_length=200, blank=True)
    """As the server reports it."""
    fingerprint = models.CharField(max_length=200, blank=True)
    prompt = models.CharField(max_length=60)
    """Name and version of the prompt: `four_part@1`."""
    sampling = models.TextField()
    """JSON: temperature, top_p, longest answer, seed, and whether a grammar held it."""
    messages = models.TextField()
    """JSON: the prompt as it was rendered."""
    reply = models.TextField(blank=True)
    """The answer as it came; halves of characters spelled out."""
    tool_calls = models.TextField(blank=True)
    """JSON: the functions that it called."""
    outcome = models.CharField(max_length=40)
    """`used`, or why it was not."""
    used = models.BooleanField()
    detail = models.TextField(blank=True)
    input_tokens = models.PositiveIntegerField(null=True, blank=True)
    output_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost_micros = models.PositiveBigIntegerField(null=True, blank=True)
    """Millionths of the price's currency."""
    first_ms = models.PositiveIntegerField(null=True, blank=True)
    total_ms = models.PositiveIntegerField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["agent_slug", "outcome"], name="model_call_outcome"),
            # What the operations page and /metrics ask of the last hour, without prompts and answers.
            models.Index(fields=["created_at", "backend", "total_ms", "cost_micros"], name="model_call_recent"),
        ]

    def __str__(self) -> str:
        return f"{self.room_id} {self.party} {self.purpose}: {self.outcome}"


class EnteredAgent(models.Model):
    """An agent that a person entered. Its versions never change; that it is put up or retired may."""

    slug = models.CharField(max_length=80, unique=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="entered_agents")
    """Whose words the prompts are: erased with their author. Records keep the slug."""
    put_up = models.BooleanField(default=False)
    """Whether everybody is offered it."""
    retired_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.slug


class EnteredVersion(models.Model):
    """What an entered agent is from one version on. Written once."""

    agent = models.ForeignKey(EnteredAgent, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    entry = models.TextField()
    """Canonical JSON of `entered.Entry`."""
    note = models.CharField(max_length=200, blank=True)
    """What is different from the version before, in its author's words."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["agent", "-number"]
        constraints = [models.UniqueConstraint(fields=["agent", "number"], name="entered_version_once")]

    def __str__(self) -> str:
        return f"{self.agent_id} version {self.number}"


class InjectionScore(models.Model):
    """What one run of the injection suite against an agent came to; written once, newest counts."""

    agent_slug = models.CharField(max_length=100)
    agent_version = models.CharField(max_length=40)
    set_name = models.CharField(max_length=255)
    set_version = models.CharField(max_length=40)
    set_digest = models.CharField(max_length=64)
    regulated = models.BooleanField(default=False)
    """Whether the market refused the agent's moves beyond its reservation value."""
    whole = models.BooleanField(default=True)
    """Whether every table that the agent plays was played; else `command` says which."""
    attempts = models.PositiveIntegerField()
    breaches = models.PositiveIntegerField()
    by_class = models.JSONField()
    """Attempts and breaches of each class."""
    by_kind = models.JSONField()
    """Attempts with a breach of each kind."""
    command = models.TextField()
    """What gives these figures again."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["agent_slug", "agent_version"], name="injection_score_agent")]

    def __str__(self) -> str:
        return f"{self.agent_slug}: {self.breaches} of {self.attempts}"
