"""The public page of a registered plan: what a study was going to be, from before its data were there.

The plan is `design.plan` of the version, byte for byte what its hash was taken of; the page says it in words. The
version's own hash stands beside it: it commits to the seed, the codes and the right answers, which are told later.
Anybody may read it who has the address.
"""

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from agents import registry
from agents.registry import UnknownAgent
from markets.models import Market
from negotiation_site.studies import design, markdown, pages
from negotiation_site.studies.design import Condition, Design, Matching, Side, Told
from negotiation_site.studies.models import StudyVersion


@dataclass(frozen=True)
class ConditionLine:
    """A condition in words."""

    key: str
    market: str
    side: str
    opposite: str
    told: str
    weight: int


@dataclass(frozen=True)
class PlanPage:
    """Context `page` of `studies/plan.html`."""

    title: str
    when: str
    number: int
    plan_sha256: str
    version_sha256: str
    json_url: str
    facts: tuple[str, ...]
    conditions: tuple[ConditionLine, ...]
    survey: tuple[tuple[str, bool], ...]
    """Questions, and whether each is a manipulation check."""
    texts: tuple[tuple[str, SafeString], ...]


def _registered(sha256: str) -> StudyVersion:
    version = StudyVersion.objects.filter(plan_sha256=sha256, registered_at__isnull=False).order_by("pk").first()
    if version is None:
        raise Http404(_("No plan is registered under this hash."))
    return version


@require_GET
def plan(request: HttpRequest, sha256: str) -> HttpResponse:
    """A registered plan in words."""
    version = _registered(sha256)
    value = version.parsed
    page = PlanPage(
        title=value.title,
        when="" if version.registered_at is None else date_format(version.registered_at, "DATETIME_FORMAT"),
        number=version.number,
        plan_sha256=version.plan_sha256,
        version_sha256=version.sha256,
        json_url=reverse("study-plan-json", args=[sha256]),
        facts=_facts(value),
        conditions=tuple(_condition(each) for each in value.conditions),
        survey=tuple((question.text, question.manipulation_check) for question in value.survey),
        texts=tuple(
            (heading, markdown.html(text))
            for heading, text in (
                (_("Consent"), value.consent.text),
                (_("Instructions for everybody"), value.instructions.everybody),
                (_("Instructions for buyers"), value.instructions.buyer),
                (_("Instructions for sellers"), value.instructions.seller),
                (_("Debriefing"), value.debrief),
            )
            if text
        ),
    )
    return render(request, "studies/plan.html", {"page": page})


@require_GET
def plan_json(request: HttpRequest, sha256: str) -> HttpResponse:
    """The bytes that the hash was taken of."""
    version = _registered(sha256)
    response = HttpResponse(design.plan(version.parsed), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{version.study.slug}-v{version.number}-plan.json"'
    return response


def _facts(value: Design) -> tuple[str, ...]:
    wanted = (
        ngettext("%(count)d participant is wanted.", "%(count)d participants are wanted.", value.participants)
        % {"count": value.participants}
        if value.participants
        else _("No number of participants is set.")
    )
    sets = ngettext(
        "Every condition meets the same %(count)d set of value draws, in rotated orders.",
        "Every condition meets the same %(count)d sets of value draws, in rotated orders.",
        value.scenarios.sets,
    ) % {"count": value.scenarios.sets}
    return (
        wanted,
        _("Newcomers are assigned to the emptiest cell of condition and side, ties drawn."),
        ngettext("There is %(count)d round.", "There are %(count)d rounds.", value.rounds) % {"count": value.rounds},
        sets,
        pages.pay_sentence(value),
    )


def _condition(condition: Condition) -> ConditionLine:
    market = Market.objects.filter(slug=condition.market, version=condition.market_version).first()
    agent = _("the market's own agent")
    if condition.agent:
        try:
            agent = registry.get(condition.agent).title
        except UnknownAgent:
            agent = condition.agent
    if condition.persona:
        agent = f"{agent}, {condition.persona}"
    return ConditionLine(
        key=condition.key,
        market=f"{condition.market} v{condition.market_version}"
        if market is None
        else f"{market.name} v{market.version}",
        side={Side.BOTH: _("both sides"), Side.BUYER: _("buyers"), Side.SELLER: _("sellers")}[condition.side],
        opposite={
            Matching.AGENT: agent,
            Matching.PERSON: _("a person"),
            Matching.MIXED: _("a person, or %(agent)s") % {"agent": agent},
        }[condition.matching],
        told={Told.AI: _("an AI"), Told.PERSON: _("a person"), Told.NOTHING: _("nothing")}[condition.told],
        weight=condition.weight,
    )
