"""Tables of markets, rooms and the one record of what happened.

Models hold fields, constraints and predicates on their own columns. Writes live in `services`,
reads in `selectors`, the fold of a room's events in `event_log`. Structures of the engine
(scenarios, recipes, events) are stored as their canonical JSON text and read back by the engine's
own strict decoders, never by hand.

Free text (`Utterance`, `EpisodeText`) and identity (`Participant`) stand in rows of their own:
they can be erased while the economic record and its hash stay valid.
"""

import secrets

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


def new_public_id() -> str:
    """An address nobody can guess."""
    return secrets.token_urlsafe(12)


class ConsentScope(models.TextChoices):
    """Whom a person lets use a game."""

    PRIVATE = "private", _("nobody")
    RESEARCH = "research", _("research here")
    PUBLIC = "public", _("open data")


class PartyRole(models.TextChoices):
    """Side of the market."""

    SELLER = "seller", _("Seller")
    BUYER = "buyer", _("Buyer")


class Catalogue(models.Model):
    """A named list of products that markets draw from."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)
    source = models.CharField(max_length=200, blank=True)
    """Where the products come from, as told to people."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.name


class ProductQuerySet(models.QuerySet["Product"]):
    """Products by what a market draws."""

    def drawn(
        self, *, catalogue_id: int, category: str, price_from_cents: int | None, price_to_cents: int | None
    ) -> "ProductQuerySet":
        """What a market with this filter draws from, in a stable order."""
        products = self.filter(catalogue=catalogue_id).order_by("id")
        if category:
            products = products.filter(category=category)
        if price_from_cents is not None:
            products = products.filter(list_price_cents__gte=price_from_cents)
        if price_to_cents is not None:
            products = products.filter(list_price_cents__lte=price_to_cents)
        return products


class Product(models.Model):
    """One product. List price and text are public; lowest and highest price are not."""

    catalogue = models.ForeignKey(Catalogue, on_delete=models.CASCADE, related_name="products")
    sku = models.CharField(max_length=100)
    title = models.CharField(max_length=500)
    category = models.CharField(max_length=100, blank=True)
    text = models.TextField(blank=True)
    list_price_cents = models.PositiveBigIntegerField()
    lowest_price_cents = models.PositiveBigIntegerField()
    highest_price_cents = models.PositiveBigIntegerField()
    stock = models.PositiveIntegerField(default=1)

    objects = ProductQuerySet.as_manager()

    class Meta:
        ordering = ["catalogue", "id"]
        constraints = [
            models.UniqueConstraint(fields=["catalogue", "sku"], name="product_sku_once"),
            models.CheckConstraint(
                condition=Q(list_price_cents__gte=1) & Q(lowest_price_cents__gte=1),
                name="product_prices_positive",
            ),
        ]

    def __str__(self) -> str:
        return self.title


class Market(models.Model):
    """A named, versioned recipe for negotiations. A version never changes; another recipe is another version."""

    slug = models.SlugField()
    version = models.PositiveIntegerField(default=1)
    name = models.CharField(max_length=200)
    summary = models.CharField(max_length=300, blank=True)
    """One sentence for a list."""
    family = models.CharField(max_length=20)
    mechanism = models.CharField(max_length=20)
    catalogue = models.ForeignKey(Catalogue, null=True, blank=True, on_delete=models.PROTECT, related_name="markets")
    category = models.CharField(max_length=100, blank=True)
    """Only products of this category are drawn; empty draws from the whole catalogue."""
    price_from_cents = models.PositiveBigIntegerField(null=True, blank=True)
    """Only products with at least this list price are drawn; None sets no lower end."""
    price_to_cents = models.PositiveBigIntegerField(null=True, blank=True)
    """Only products with at most this list price are drawn; None sets no upper end."""
    recipe = models.TextField()
    """Canonical JSON of `engine.scenarios.Recipe`."""
    seller_agent = models.CharField(max_length=100, default="linear")
    buyer_agents = models.CharField(max_length=400, default="linear")
    """Slugs of the agents that fill empty buyers' seats, with commas, taken in turn."""
    move_deadline_s = models.PositiveIntegerField(default=600)
    """Seconds a person may take over a move while another person waits."""
    fill_wait_s = models.PositiveIntegerField(default=120)
    """Seconds after which an agent takes a seat that was kept open for a person."""
    is_listed = models.BooleanField(default=True)
    reveals_values = models.BooleanField(default=True)
    """Whether players see the other side's values once a game is over."""
    retired_at = models.DateTimeField(null=True, blank=True)
    """When it was taken off the shelf: nobody opens it anew; rooms and episodes keep it. The one thing that changes."""
    note = models.CharField(max_length=200, blank=True)
    """What is different from the version before, in its author's words."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="markets"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["slug", "version"], name="market_version_once"),
        ]
        permissions = [("build_market", "Can build markets")]

    def __str__(self) -> str:
        return self.name


class Participant(models.Model):
    """A person under a pseudonym: an account's, or that of an anonymous browser, whose session points here."""

    pseudonym = models.CharField(max_length=60, unique=True)
    account = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="participant"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    default_consent = models.CharField(max_length=10, choices=ConsentScope.choices, blank=True)
    """The last choice, offered again as the preset for the next game."""
    barred_until = models.DateTimeField(null=True, blank=True)
    """Until then the person may not meet people here; agents are open to them."""

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.pseudonym


class SignUp(models.Model):
    """That an account was asked for from a network address just now; rows are kept for as long as the limit counts."""

    address_digest = models.CharField(max_length=64)
    """Keyed hash of the address, which itself is not kept."""
    at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["address_digest", "at"], name="sign_up_address")]

    def __str__(self) -> str:
        return f"{self.address_digest[:8]} {self.at:%H:%M}"


class RoomStatus(models.TextChoices):
    """Life of a room."""

    WAITING = "waiting", _("waiting for people")
    LIVE = "live", _("in play")
    ENDED = "ended", _("over")


class Room(models.Model):
    """One live negotiation. `version` caches the number of its last event."""

    public_id = models.CharField(max_length=24, unique=True, default=new_public_id)
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="rooms")
    scenario = models.TextField()
    """Canonical JSON of `engine.scenarios.Scenario`: holds every private value."""
    status = models.CharField(max_length=10, choices=RoomStatus.choices)
    version = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    opened_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    fills_at = models.DateTimeField(null=True, blank=True)
    """When agents take the seats that are still open."""
    rematch_of = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="rematches")
    keeper = models.CharField(max_length=20, blank=True)
    """Who looks after people that fall silent here instead of the rooms' own clock; empty for a room of the site."""
    move_deadline_s = models.PositiveIntegerField(null=True, blank=True)
    """Seconds a person may take over a move here, alone or not; None leaves it to the market."""
    reply_low_ms = models.PositiveIntegerField(null=True, blank=True)
    """Least pause before an agent's move where sides take turns; None for none."""
    reply_high_ms = models.PositiveIntegerField(null=True, blank=True)
    """Longest such pause."""

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["status", "fills_at"], name="room_waiting"),
        ]

    def __str__(self) -> str:
        return self.public_id


class SeatKind(models.TextChoices):
    """Who sits there."""

    OPEN = "open", _("open")
    PERSON = "person", _("person")
    AGENT = "agent", _("agent")


class Seat(models.Model):
    """One chair of a room."""

    room = models.ForeignKey(Room, on_delete=models.CASCADE, related_name="seats")
    party = models.CharField(max_length=20)
    """`seller`, `buyer-1`, …"""
    role = models.CharField(max_length=10, choices=PartyRole.choices)
    kind = models.CharField(max_length=10, choices=SeatKind.choices)
    participant = models.ForeignKey(Participant, null=True, blank=True, on_delete=models.SET_NULL, related_name="seats")
    agent_slug = models.CharField(max_length=100, blank=True)
    """The agent on the chair; on an open chair, the one that will take it."""
    agent_version = models.CharField(max_length=40, blank=True)
    agent_name = models.CharField(max_length=100, blank=True)
    """What people read."""
    join_token = models.CharField(max_length=24, unique=True, default=new_public_id)
    consent_scope = models.CharField(max_length=10, choices=ConsentScope.choices, blank=True)
    consent_version = models.CharField(max_length=40, blank=True)
    consent_at = models.DateTimeField(null=True, blank=True)
    due_position = models.IntegerField(null=True, blank=True)
    """Position at which this seat became the one to move; None while it is not."""
    deadline_at = models.DateTimeField(null=True, blank=True)
    """When a person's silence is taken for leaving."""
    last_seen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["room", "id"]
        constraints = [
            models.UniqueConstraint(fields=["room", "party"], name="seat_party_once"),
            models.UniqueConstraint(
                fields=["room", "participant"],
                condition=Q(participant__isnull=False),
                name="seat_participant_once",
            ),
        ]
        indexes = [models.Index(fields=["deadline_at"], name="seat_deadline")]

    def __str__(self) -> str:
        return f"{self.room_id} {self.party}"


class RoomEvent(models.Model):
    """One line of a room's economic log. Written once, never changed."""

    room = models.ForeignKey(Room, on_delete=models.PROTECT, related_name="events")
    n = models.PositiveIntegerField()
    at_ms = models.PositiveBigIntegerField()
    party = models.CharField(max_length=20, blank=True)
    """Whose move caused it; empty for what the market did."""
    event = models.TextField()
    """Canonical JSON of one `engine.protocol.Event`."""
    client_move_id = models.CharField(max_length=64, blank=True)
    """Chosen by the sender, on the first event of its move: makes a repeat harmless."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["room", "n"]
        constraints = [
            models.UniqueConstraint(fields=["room", "n"], name="room_event_number_once"),
            models.UniqueConstraint(
                fields=["room", "party", "client_move_id"],
                condition=~Q(client_move_id=""),
                name="room_move_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.room_id} #{self.n}"


class Utterance(models.Model):
    """What was said with an event, and what an agent thought. Erasable."""

    room = models.ForeignKey(Room, on_delete=models.CASCADE, related_name="utterances")
    n = models.PositiveIntegerField()
    party = models.CharField(max_length=20)
    talk = models.TextField(blank=True)
    thought = models.TextField(blank=True)

    class Meta:
        ordering = ["room", "n"]
        constraints = [models.UniqueConstraint(fields=["room", "n"], name="utterance_once")]

    def __str__(self) -> str:
        return f"{self.room_id} #{self.n}"


class TurnState(models.TextChoices):
    """Life of an agent's turn."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    SUPERSEDED = "superseded", _("superseded")
    DEFAULTED = "defaulted", _("default act played")


class AgentTurn(models.Model):
    """Outbox: an agent owes a move at this position of its seat. Claimed by compare-and-swap."""

    room = models.ForeignKey(Room, on_delete=models.CASCADE, related_name="agent_turns")
    party = models.CharField(max_length=20)
    position = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=TurnState.choices, default=TurnState.QUEUED)
    owner = models.CharField(max_length=80, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    starts_at = models.DateTimeField(null=True, blank=True)
    """Not before this: the pause before an answer, or a wait of the agent's, where nobody takes turns."""
    due_at = models.DateTimeField()
    """After this the agent's default act is played."""
    attempts = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["room", "party", "position"], name="agent_turn_position_once"),
        ]
        indexes = [models.Index(fields=["state", "created_at"], name="agent_turn_open")]

    def __str__(self) -> str:
        return f"{self.room_id} {self.party} @{self.position}"


class EpisodeSource(models.TextChoices):
    """Where an episode was played."""

    LIVE = "live", _("live room")
    SIMULATED = "simulated", _("simulation")


class Episode(models.Model):
    """The one record of a finished negotiation. Immutable but for its consent scope."""

    public_id = models.CharField(max_length=24, unique=True, default=new_public_id)
    source = models.CharField(max_length=12, choices=EpisodeSource.choices)
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="episodes")
    room = models.OneToOneField(Room, null=True, blank=True, on_delete=models.SET_NULL, related_name="episode")
    family = models.CharField(max_length=20)
    mechanism = models.CharField(max_length=20)
    currency = models.CharField(max_length=3)
    protocol_version = models.CharField(max_length=20)
    scenario = models.TextField()
    scenario_key = models.BigIntegerField(default=0)
    """A number that equal scenarios share (`episodes.scenario_key`): what comparisons pair on."""
    log = models.TextField()
    """Canonical JSON of the economic event log."""
    record_sha256 = models.CharField(max_length=64)
    """Hash of protocol version, scenario, seats without identity, and log."""
    end_reason = models.CharField(max_length=20)
    deals = models.PositiveIntegerField()
    seller_surplus_cents = models.BigIntegerField()
    buyer_surplus_cents = models.BigIntegerField()
    welfare_cents = models.BigIntegerField()
    first_best_cents = models.BigIntegerField()
    seller_share = models.FloatField(null=True, blank=True)
    """Seller's surplus / first best; None where trade cannot gain."""
    seller_messages = models.PositiveIntegerField()
    buyer_messages = models.PositiveIntegerField()
    seller_violations = models.PositiveIntegerField()
    buyer_violations = models.PositiveIntegerField()
    consent_scope = models.CharField(max_length=10, choices=ConsentScope.choices)
    """The narrowest choice among the people in it; public where no person was."""
    created_at = models.DateTimeField()
    """When the negotiation ended."""

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["market", "source"], name="episode_market"),
            models.Index(fields=["source", "market", "deals"], name="episode_played"),
            models.Index(fields=["created_at"], name="episode_created"),
            # Everything that lists of transcripts filter and sort by: a row itself is kilobytes of scenario and log.
            models.Index(
                fields=[
                    "created_at",
                    "id",
                    "consent_scope",
                    "source",
                    "family",
                    "market",
                    "deals",
                    "seller_share",
                    "seller_messages",
                    "buyer_messages",
                ],
                name="episode_reading",
            ),
            # The same for lists by number (scripts), and for what may be read of each market.
            models.Index(
                fields=["id", "consent_scope", "source", "family", "market", "deals", "seller_share", "created_at"],
                name="episode_by_number",
            ),
            models.Index(fields=["market", "consent_scope", "source"], name="episode_open"),
        ]

    def __str__(self) -> str:
        return self.public_id


class EpisodeSeat(models.Model):
    """Who sat where in an episode and what it came to for them."""

    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="seats")
    party = models.CharField(max_length=20)
    role = models.CharField(max_length=10, choices=PartyRole.choices)
    kind = models.CharField(max_length=10, choices=SeatKind.choices)
    participant = models.ForeignKey(
        Participant, null=True, blank=True, on_delete=models.SET_NULL, related_name="episode_seats"
    )
    agent_slug = models.CharField(max_length=100, blank=True)
    agent_version = models.CharField(max_length=40, blank=True)
    consent_scope = models.CharField(max_length=10, choices=ConsentScope.choices, blank=True)
    consent_version = models.CharField(max_length=40, blank=True)
    surplus_cents = models.BigIntegerField()
    surplus_share = models.FloatField(null=True, blank=True)
    """Own surplus / what could be shared; 0 without a deal, None where nothing could."""
    figures = models.TextField(default="")
    """Canonical JSON of `engine.figures.SeatFigures`: how this seat negotiated, from the log alone."""

    class Meta:
        ordering = ["episode", "id"]
        constraints = [
            models.UniqueConstraint(fields=["episode", "party"], name="episode_seat_once"),
        ]
        indexes = [
            models.Index(fields=["agent_slug", "role"], name="episode_seat_agent"),
            # What lists of transcripts ask of a seat, without its figures.
            models.Index(fields=["episode", "agent_slug", "role", "kind", "surplus_share"], name="seat_reading"),
        ]

    def __str__(self) -> str:
        return f"{self.episode_id} {self.party}"


class EpisodeText(models.Model):
    """Words and thoughts of an episode, by event number. Erasable."""

    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="texts")
    n = models.PositiveIntegerField()
    party = models.CharField(max_length=20)
    talk = models.TextField(blank=True)
    thought = models.TextField(blank=True)

    class Meta:
        ordering = ["episode", "n"]
        constraints = [models.UniqueConstraint(fields=["episode", "n"], name="episode_text_once")]

    def __str__(self) -> str:
        return f"{self.episode_id} #{self.n}"


class RecordChange(models.Model):
    """A stored episode whose consent or people changed after it was written, or that was deleted.

    Append-only. Whoever keeps a copy of episodes (`negotiation_site.leaderboard.facts`) reads those
    after its last one and looks at the named episodes again.
    """

    episode_number = models.BigIntegerField()
    """Primary key of the episode, which may be gone."""

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return str(self.episode_number)


class Corpus(models.Model):
    """A public collection of negotiations held elsewhere, as it was imported under a name of its own."""

    name = models.SlugField(unique=True)
    format = models.CharField(max_length=40)
    """Which corpus it is: a key of `importers.transcripts.SOURCES`."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "corpora"

    def __str__(self) -> str:
        return self.name


class ImportedDialogue(models.Model):
    """One negotiation of a corpus. Its record holds no words and nobody's name, and never changes."""

    corpus = models.ForeignKey(Corpus, on_delete=models.CASCADE, related_name="dialogues")
    key = models.CharField(max_length=100)
    """What names it in its corpus."""
    record = models.TextField()
    """Canonical JSON of `importers.transcripts.records.Dialogue`."""
    record_sha256 = models.CharField(max_length=64)
    outcome = models.CharField(max_length=20)
    title = models.CharField(max_length=500, blank=True)
    category = models.CharField(max_length=100, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    """Empty where no price was negotiated."""
    list_price_cents = models.BigIntegerField(null=True, blank=True)
    price_cents = models.BigIntegerField(null=True, blank=True)
    turns = models.PositiveIntegerField()

    class Meta:
        ordering = ["corpus", "id"]
        constraints = [
            models.UniqueConstraint(fields=["corpus", "key"], name="imported_dialogue_once"),
        ]
        indexes = [models.Index(fields=["corpus", "outcome"], name="imported_outcome")]

    def __str__(self) -> str:
        return f"{self.corpus_id} {self.key}"


class ImportedParty(models.Model):
    """Who took part in an imported negotiation, under a pseudonym made from its place alone. Erasable."""

    dialogue = models.ForeignKey(ImportedDialogue, on_delete=models.CASCADE, related_name="parties")
    party = models.CharField(max_length=20)
    pseudonym = models.CharField(max_length=60, db_index=True)

    class Meta:
        verbose_name_plural = "imported parties"
        ordering = ["dialogue", "id"]
        constraints = [
            models.UniqueConstraint(fields=["dialogue", "party"], name="imported_party_once"),
        ]

    def __str__(self) -> str:
        return self.pseudonym


class ImportedText(models.Model):
    """Words of an imported negotiation: of an event, or (`n` 0) from before the first. Erasable."""

    dialogue = models.ForeignKey(ImportedDialogue, on_delete=models.CASCADE, related_name="texts")
    n = models.PositiveIntegerField()
    party = models.CharField(max_length=20)
    kind = models.CharField(max_length=10)
    """`said`, `thought`, or `private`: what this party alone knew at the start."""
    text = models.TextField()

    class Meta:
        ordering = ["dialogue", "n", "id"]
        constraints = [
            models.UniqueConstraint(fields=["dialogue", "n", "party", "kind"], name="imported_text_once"),
        ]

    def __str__(self) -> str:
        return f"{self.dialogue_id} #{self.n}"
