"""Django's admin for markets, rooms and records. What is a record is read only here."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from markets import corpora, episodes
from markets.engine.protocol import EndReason
from markets.engine.scenarios import Family
from markets.models import (
    AgentTurn,
    Catalogue,
    Corpus,
    Episode,
    EpisodeSeat,
    EpisodeText,
    ImportedDialogue,
    ImportedParty,
    ImportedText,
    Market,
    Participant,
    Product,
    RecordChange,
    Room,
    RoomEvent,
    Seat,
    SignUp,
    Utterance,
)


class ReadOnly(admin.ModelAdmin):
    """Rows that are written by the game alone."""

    list_per_page = 50

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class HowItEnded(admin.SimpleListFilter):
    """By the reasons that there are, instead of looking through every record for those that occur."""

    title = "how it ended"
    parameter_name = "end_reason"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(reason.value, reason.value.replace("_", " ")) for reason in EndReason]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(end_reason=self.value()) if self.value() else queryset


class FamilyOfMarket(admin.SimpleListFilter):
    """By the families that there are, for the same reason."""

    title = "family"
    parameter_name = "family"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(family.value, family.value.replace("_", " ")) for family in Family]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(family=self.value()) if self.value() else queryset


def _share(share: float | None) -> str | None:
    return None if share is None else f"{share:.1%}"


class ReadOnlyInline(admin.TabularInline):
    """Rows of the game inside another's page; without permission to change they are text."""

    extra = 0
    can_delete = False
    show_change_link = True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Catalogue)
class CatalogueAdmin(admin.ModelAdmin):
    list_display = ["slug", "name", "source", "products", "created_at"]
    search_fields = ["slug", "name"]

    @admin.display(description="products")
    def products(self, catalogue: Catalogue) -> int:
        return catalogue.products.count()


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    """Products that a market draws from do not change: its seeds would draw other scenarios."""

    list_display = ["title", "catalogue", "category", "list_price_cents", "lowest_price_cents", "stock"]
    list_filter = ["catalogue", "category"]
    search_fields = ["title", "sku", "text"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Product | None = None) -> bool:
        return (obj is None or not obj.catalogue.markets.exists()) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Product | None = None) -> bool:
        return (obj is None or not obj.catalogue.markets.exists()) and super().has_delete_permission(request, obj)


@admin.register(Market)
class MarketAdmin(ReadOnly):
    """A version does not change: the builder makes new ones, and retires."""

    list_display = ["slug", "version", "name", "family", "catalogue", "is_listed", "retired_at"]
    list_filter = ["family", "is_listed", "catalogue"]
    search_fields = ["slug", "name", "summary"]


class SeatInline(ReadOnlyInline):
    model = Seat
    fields = ["party", "kind", "participant", "agent_slug", "consent_scope", "deadline_at", "last_seen_at"]


class RoomEventInline(ReadOnlyInline):
    model = RoomEvent
    fields = ["n", "at_ms", "party", "event"]


@admin.register(Room)
class RoomAdmin(ReadOnly):
    """What a room was dealt is private to its seats until the end: whoever looks here may be sitting there."""

    list_display = ["public_id", "market", "status", "version", "created_at", "ended_at"]
    list_filter = ["status", "market", "created_at"]
    search_fields = ["public_id", "seats__participant__pseudonym"]
    inlines = [SeatInline, RoomEventInline]

    def get_exclude(self, request: HttpRequest, obj: Room | None = None) -> list[str]:
        return ["scenario"] if obj is None or obj.ended_at is None else []


@admin.register(Seat)
class SeatAdmin(ReadOnly):
    list_display = ["room", "party", "kind", "participant", "agent_slug", "consent_scope"]
    list_filter = ["kind", "role", "consent_scope"]
    search_fields = ["room__public_id", "participant__pseudonym", "agent_slug"]
    exclude = ["join_token"]


@admin.register(RoomEvent)
class RoomEventAdmin(ReadOnly):
    list_display = ["room", "n", "party", "event", "created_at"]
    search_fields = ["room__public_id"]


@admin.register(Utterance)
class UtteranceAdmin(ReadOnly):
    """What was said; what was thought is seen after the end."""

    list_display = ["room", "n", "party", "talk"]
    search_fields = ["room__public_id", "talk"]

    def get_exclude(self, request: HttpRequest, obj: Utterance | None = None) -> list[str]:
        return ["thought"] if obj is None or obj.room.ended_at is None else []


@admin.register(AgentTurn)
class AgentTurnAdmin(ReadOnly):
    list_display = ["room", "party", "position", "state", "attempts", "due_at", "error"]
    list_filter = ["state"]
    search_fields = ["room__public_id", "error"]


@admin.register(Participant)
class ParticipantAdmin(ReadOnly):
    list_display = ["pseudonym", "account", "created_at", "games"]
    search_fields = ["pseudonym"]

    @admin.display(description="games")
    def games(self, participant: Participant) -> int:
        return participant.seats.count()


class EpisodeSeatInline(ReadOnlyInline):
    model = EpisodeSeat
    fields = ["party", "kind", "participant", "agent_slug", "surplus_cents", "surplus_share"]


class EpisodeTextInline(ReadOnlyInline):
    model = EpisodeText
    fields = ["n", "party", "talk", "thought"]


@admin.register(Episode)
class EpisodeAdmin(ReadOnly):
    list_display = ["public_id", "market", "source", "end_reason", "deals", "share_of_the_seller", "consent_scope"]
    list_filter = ["source", FamilyOfMarket, "market", HowItEnded, "consent_scope", "created_at"]
    search_fields = ["public_id", "seats__agent_slug", "seats__participant__pseudonym"]
    inlines = [EpisodeSeatInline, EpisodeTextInline]
    readonly_fields = ["record_is_valid"]

    @admin.display(description="seller's share", ordering="seller_share")
    def share_of_the_seller(self, episode: Episode) -> str | None:
        return _share(episode.seller_share)

    @admin.display(boolean=True, description="hash fits and log replays")
    def record_is_valid(self, episode: Episode) -> bool:
        return episodes.verify(episode)


@admin.register(EpisodeSeat)
class EpisodeSeatAdmin(ReadOnly):
    list_display = ["episode", "party", "kind", "agent_slug", "gain", "share"]
    list_filter = ["role", "kind", "agent_slug"]
    search_fields = ["episode__public_id", "agent_slug"]
    list_select_related = ["episode__market"]

    @admin.display(description="gain", ordering="surplus_cents")
    def gain(self, seat: EpisodeSeat) -> str | None:
        return None if seat.surplus_cents is None else f"{seat.surplus_cents / 100:,.2f}"

    @admin.display(description="share", ordering="surplus_share")
    def share(self, seat: EpisodeSeat) -> str | None:
        return _share(seat.surplus_share)


@admin.register(EpisodeText)
class EpisodeTextAdmin(ReadOnly):
    list_display = ["episode", "n", "party", "talk"]
    search_fields = ["episode__public_id", "talk"]


@admin.register(SignUp)
class SignUpAdmin(ReadOnly):
    list_display = ["address_digest", "at"]


@admin.register(RecordChange)
class RecordChangeAdmin(ReadOnly):
    list_display = ["id", "episode_number"]


@admin.register(Corpus)
class CorpusAdmin(ReadOnly):
    list_display = ["name", "format", "dialogues_here", "created_at"]
    search_fields = ["name"]

    @admin.display(description="dialogues")
    def dialogues_here(self, corpus: Corpus) -> int:
        return corpus.dialogues.count()


@admin.register(ImportedDialogue)
class ImportedDialogueAdmin(ReadOnly):
    list_display = ["key", "corpus", "title", "outcome", "price_cents", "turns"]
    list_filter = ["corpus", "outcome"]
    search_fields = ["key", "title"]
    readonly_fields = ["record_is_valid"]

    @admin.display(boolean=True, description="Record is as it was written")
    def record_is_valid(self, dialogue: ImportedDialogue) -> bool:
        return corpora.verify(dialogue)


@admin.register(ImportedParty)
class ImportedPartyAdmin(ReadOnly):
    list_display = ["pseudonym", "dialogue", "party"]
    search_fields = ["pseudonym"]


@admin.register(ImportedText)
class ImportedTextAdmin(ReadOnly):
    list_display = ["dialogue", "n", "party", "kind", "text"]
    search_fields = ["dialogue__key", "text"]
