"""That somebody shows a result of theirs. The row is the link: without it the address leads nowhere."""

from django.db import models

from markets.models import Seat, new_public_id


class SharedResult(models.Model):
    """One seat's result, for whoever has the link. Holds no word and no figure: those are read when somebody looks."""

    token = models.CharField(max_length=24, unique=True, default=new_public_id)
    seat = models.OneToOneField(Seat, on_delete=models.CASCADE, related_name="shared")
    named = models.BooleanField(default=False)
    """Whether the card says the pseudonym of whoever shares it."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.token
