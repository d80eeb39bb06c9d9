"""Django's admin for studies: to look at. Everything is changed on the pages of studies, which note who did it."""

from django.contrib import admin

from markets.admin import ReadOnly
from negotiation_site.studies.models import Participation, Payment, RecruitmentLink, Study, StudyEvent, StudyVersion


@admin.register(Study)
class StudyAdmin(ReadOnly):
    list_display = ["slug", "status", "created_by", "created_at"]
    list_filter = ["status"]
    search_fields = ["slug"]


@admin.register(StudyVersion)
class StudyVersionAdmin(ReadOnly):
    list_display = ["study", "number", "title", "frozen_at", "sha256"]


@admin.register(RecruitmentLink)
class RecruitmentLinkAdmin(ReadOnly):
    list_display = ["token", "study", "kind", "label", "used_at", "closed_at"]


@admin.register(Participation)
class ParticipationAdmin(ReadOnly):
    list_display = ["public_id", "study", "mode", "state", "outcome", "condition", "role", "entered_at"]
    list_filter = ["mode", "state", "study"]
    list_select_related = ["study"]


@admin.register(StudyEvent)
class StudyEventAdmin(ReadOnly):
    list_display = ["at", "study", "kind", "participation", "actor"]
    list_filter = ["kind", "study"]
    list_select_related = ["study", "participation", "actor"]


@admin.register(Payment)
class PaymentAdmin(ReadOnly):
    list_display = ["participation", "currency", "fee_cents", "bonus_cents", "computed_at", "settled_at"]
    list_select_related = ["participation"]
