"""The table of tokens. Writes live in `tokens`.

A token itself is nowhere: its hash is, with the first characters that its owner tells it by. It goes with its
owner's account.
"""

import secrets

from django.conf import settings
from django.db import models


def new_salt() -> str:
    """What a token's pseudonyms are made with."""
    return secrets.token_hex(16)


class ApiToken(models.Model):
    """A script's key. What it may read is what its owner may, at the moment of each request."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=60)
    """The owner's word for what uses it."""
    start = models.CharField(max_length=16)
    """Its first characters."""
    token_sha256 = models.CharField(max_length=64, unique=True)
    salt = models.CharField(max_length=32, default=new_salt)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    window_began_at = models.DateTimeField(null=True, blank=True)
    """Beginning of the minute in which its requests are counted."""
    window_requests = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name"], condition=models.Q(revoked_at=None), name="api_token_name_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.start}…"
