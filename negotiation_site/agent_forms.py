"""Pages for people who enter agents: one's own agents, a new one, its versions, trying it, putting it up, retiring it.

For whoever has an account. An agent's pages are its author's; the staff may look and retire, to everybody else
there is nothing at the address. A view reads the form, makes one call into `agents.entering`, and renders. What
was typed is never lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import F
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents import backends, entered, entering, model_log
from agents.base import AgentSpec
from agents.entered import Entry, EntryError
from agents.entering import EnteringError
from agents.models import EnteredAgent, EnteredVersion
from agents.scripted.personas import Persona
from markets import identity, services
from markets.engine.protocol import SELLER, Role, buyer_party
from markets.services import AgentName, RoomError
from negotiation_site.leaderboard.words import percent

BOTH = "both"
YES, NO = "yes", "no"
PROTOCOLS = (("four_part", gettext_lazy("text in four parts")), ("tools", gettext_lazy("function calls")))
LONGEST_TYPED = 20_000
"""Characters of a prompt that are read at all, so that one that is too long comes back and can be cut."""


# --- What the templates read ------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnRow:
    """A line of one's own agents."""

    url: str
    name: str
    slug: str
    summary: str
    state: str
    retired: bool
    put_up: bool


@dataclass(frozen=True)
class VersionRow:
    """One version, as it was saved."""

    number: int
    when: str
    note: str
    facts: tuple[tuple[str, str], ...]
    prompt: str


@dataclass(frozen=True)
class SeatChoice:
    """A seat to take against the agent."""

    value: str
    label: str


@dataclass(frozen=True)
class VersionsPage:
    """Context `page` of `agents/versions.html`."""

    slug: str
    name: str
    summary: str
    state: str
    record: str
    retired: bool
    put_up: bool
    is_author: bool
    seats: tuple[SeatChoice, ...]
    based_on: int
    rows: tuple[VersionRow, ...]


# --- The form ---------------------------------------------------------------------------------------


class EntryForm(forms.Form):
    """An agent as it is typed."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=200)
    summary = forms.CharField(
        label=gettext_lazy("In one sentence"),
        max_length=1_000,
        help_text=gettext_lazy("What people read who choose an opponent."),
    )
    prompt = forms.CharField(
        label=gettext_lazy("Prompt"),
        max_length=LONGEST_TYPED,
        widget=forms.Textarea(attrs={"rows": 9}),
        help_text=gettext_lazy(
            "How it should negotiate. The table, the rules, the form of an answer and its private value are told by us. "
            "At most 2,000 characters; brackets, braces and quotation marks reach the model as look-alikes."
        ),
    )
    backend = forms.ChoiceField(label=gettext_lazy("Model"))
    protocol = forms.ChoiceField(
        label=gettext_lazy("How it answers"),
        choices=PROTOCOLS,
    )
    roles = forms.ChoiceField(
        label=gettext_lazy("It plays"),
        choices=(
            (BOTH, gettext_lazy("seller and buyer")),
            (Role.SELLER.value, gettext_lazy("seller")),
            (Role.BUYER.value, gettext_lazy("buyer")),
        ),
    )
    regulated = forms.ChoiceField(
        label=gettext_lazy("Kept from losing money"),
        choices=((YES, gettext_lazy("yes")), (NO, gettext_lazy("no"))),
        help_text=gettext_lazy("A move beyond its own private value is sent back and never reaches the table."),
    )
    persona = forms.ChoiceField(label=gettext_lazy("Way of talking"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choose("backend", _models())
        self._choose("persona", [("", _("none")), *((each.value, each.value) for each in Persona)])

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def entry(self) -> Entry:
        """What was typed, once the form is valid."""
        typed = self.cleaned_data
        roles = tuple(Role) if typed["roles"] == BOTH else (Role(typed["roles"]),)
        return Entry(
            name=typed["name"],
            summary=typed["summary"],
            prompt=typed["prompt"],
            backend=typed["backend"],
            protocol=typed["protocol"],
            roles=roles,
            regulated=typed["regulated"] == YES,
            persona=typed["persona"],
        )

    def refused(self, error: EntryError) -> None:
        """Say at its field what was wrong."""
        self.add_error(error.field, error.sentence)


class ChangeForm(EntryForm):
    """Another version of an agent."""

    note = forms.CharField(label=gettext_lazy("What is different"), required=False, max_length=200)
    based_on = forms.IntegerField(widget=forms.HiddenInput)


def _models() -> list[tuple[str, str]]:
    return [(config.name, f"{config.model} ({config.name})") for config in backends.configured()]


def _typed(entry: Entry, *, based_on: int) -> dict[str, Any]:
    return {
        "name": entry.name,
        "summary": entry.summary,
        "prompt": entry.prompt,
        "backend": entry.backend,
        "protocol": entry.protocol,
        "roles": BOTH if len(entry.roles) > 1 else entry.roles[0].value,
        "regulated": YES if entry.regulated else NO,
        "persona": entry.persona,
        "based_on": based_on,
    }


# --- Who may ----------------------------------------------------------------------------------------


def for_accounts(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Asks whoever has not signed in to do so."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path() if request.method == "GET" else reverse("agents-own"))
        return never_cache(view)(request, *args, **kwargs)

    return guarded


def _account(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def _agent(request: HttpRequest, slug: str) -> EnteredAgent:
    """An agent whose pages this person may see: one's own, any for the staff."""
    agent = EnteredAgent.objects.filter(slug=slug).first()
    if agent is None or not (agent.author_id == _account(request).pk or _account(request).is_staff):
        raise Http404(_("You have no agent called %(slug)s.") % {"slug": slug})
    return agent


def _own_agent(request: HttpRequest, slug: str) -> EnteredAgent:
    """An agent that this person may change."""
    agent = _agent(request, slug)
    if agent.author_id != _account(request).pk:
        raise PermissionDenied
    return agent


# --- Pages ------------------------------------------------------------------------------------------


@require_GET
@for_accounts
def own(request: HttpRequest) -> HttpResponse:
    """One's own agents."""
    agents = EnteredAgent.objects.filter(author=_account(request)).order_by(
        F("retired_at").desc(nulls_first=True), "-id"
    )
    return render(request, "agents/own.html", {"rows": [_own_row(agent) for agent in agents]})


def _own_row(agent: EnteredAgent) -> OwnRow:
    entry = entering.entry_of(entering.newest_version(agent))
    return OwnRow(
        url=reverse("agent-versions", args=[agent.slug]),
        name=entry.name,
        slug=agent.slug,
        summary=entry.summary,
        state=_state(agent),
        retired=agent.retired_at is not None,
        put_up=agent.put_up,
    )


def _state(agent: EnteredAgent) -> str:
    if agent.retired_at is not None:
        return _("retired")
    return _("up for tournaments") if agent.put_up else _("only for you")


@require_http_methods(["GET", "POST"])
@for_accounts
def new(request: HttpRequest) -> HttpResponse:
    """Entering an agent."""
    form = EntryForm(request.POST or None)
    problem = ""
    if request.method == "POST" and form.is_valid():
        try:
            agent = entering.enter(form.entry(), author=_account(request))
        except EntryError as error:
            form.refused(error)
        except EnteringError as error:
            problem = str(error)
        else:
            messages.success(request, _("Your agent is saved. Try it before you put it up."))
            return redirect("agent-versions", slug=agent.slug)
    context = {"form": form, "problem": problem, "has_models": bool(backends.configured())}
    return render(request, "agents/new.html", context, status=400 if request.method == "POST" else 200)


@require_http_methods(["GET", "POST"])
@for_accounts
def versions(request: HttpRequest, slug: str) -> HttpResponse:
    """An agent's versions; sending the form saves the next one."""
    if request.method == "GET":
        return _versions_page(request, _agent(request, slug))
    agent = _own_agent(request, slug)
    form, problem = ChangeForm(request.POST), ""
    if form.is_valid():
        try:
            saved = entering.change(
                agent, form.entry(), based_on=form.cleaned_data["based_on"], note=form.cleaned_data["note"]
            )
        except EntryError as error:
            form.refused(error)
        except EnteringError as error:
            problem = str(error)
        else:
            messages.success(request, _("Version %(number)d is saved.") % {"number": saved.number})
            return redirect("agent-versions", slug=slug)
    return _versions_page(request, agent, form=form, problem=problem)


def _versions_page(
    request: HttpRequest, agent: EnteredAgent, *, form: ChangeForm | None = None, problem: str = ""
) -> HttpResponse:
    saved = list(agent.versions.order_by("-number"))
    entry = entering.entry_of(saved[0])
    is_author = agent.author_id == _account(request).pk
    page = VersionsPage(
        slug=agent.slug,
        name=entry.name,
        summary=entry.summary,
        state=_state(agent),
        record=_record(agent.slug),
        retired=agent.retired_at is not None,
        put_up=agent.put_up,
        is_author=is_author,
        seats=tuple(SeatChoice(role.other.value, _seat_text(role.other)) for role in entry.roles),
        based_on=saved[0].number,
        rows=tuple(_version_row(version) for version in saved),
    )
    changes = form or ChangeForm(initial=_typed(entry, based_on=saved[0].number))
    context = {"page": page, "form": changes, "problem": problem}
    return render(request, "agents/versions.html", context, status=400 if form is not None else 200)


def _seat_text(role: Role) -> str:
    return _("Try it as the seller") if role is Role.SELLER else _("Try it as the buyer")


def _record(slug: str) -> str:
    usage = model_log.usage_of_agent(slug)
    if usage.valid_rate is None:
        return ""
    return _("%(share)s of its %(calls)d answers in rooms could be used.") % {
        "share": percent(usage.valid_rate, digits=0),
        "calls": usage.calls - usage.not_answered,
    }


def _role_words(roles: Sequence[Role]) -> str:
    words = {Role.SELLER: _("seller"), Role.BUYER: _("buyer")}
    return _("seller and buyer") if len(roles) > 1 else words[roles[0]]


def _version_row(version: EnteredVersion) -> VersionRow:
    entry = entering.entry_of(version)
    return VersionRow(
        number=version.number,
        when=date_format(version.created_at, "DATETIME_FORMAT"),
        note=version.note,
        facts=(
            (_("Name"), entry.name),
            (_("Model"), dict(_models()).get(entry.backend, entry.backend)),
            (_("How it answers"), str(dict(PROTOCOLS)[entry.protocol])),
            (_("It plays"), _role_words(entry.roles)),
            (_("Kept from losing money"), _("yes") if entry.regulated else _("no")),
            (_("Way of talking"), entry.persona or _("none")),
            (_("On record as"), entered.version_label(version.number, entry)),
        ),
        prompt=entry.prompt,
    )


@require_POST
@for_accounts
def try_it(request: HttpRequest, slug: str) -> HttpResponse:
    """Opens a room in the sandbox: the agent against its author, on the seat `seat`."""
    agent = _own_agent(request, slug)
    spec = entering.spec_of(agent)
    try:
        entered.checked(entering.entry_of(entering.newest_version(agent)))
        room = _sandbox_room(request, agent, spec)
    except (EntryError, EnteringError, RoomError) as error:
        messages.error(request, str(error))
        return redirect("agent-versions", slug=slug)
    return redirect("room", public_id=room.public_id)


def _sandbox_room(request: HttpRequest, agent: EnteredAgent, spec: AgentSpec) -> Any:
    if agent.retired_at is not None:
        raise EnteringError(_("This agent is retired."))
    seats = {role.other.value: role.other for role in spec.roles}
    seat = seats.get(request.POST.get("seat", ""))
    if seat is None:
        raise EnteringError(_("Choose a seat that is opposite the agent."))
    opposite = SELLER if seat is Role.BUYER else buyer_party(1)
    return services.open_room(
        market=entering.sandbox(),
        host=identity.ensure_participant(request.session),
        role=seat,
        agents={opposite: AgentName(slug=spec.slug, version=spec.version, name=spec.title)},
    )


@require_POST
@for_accounts
def put_up(request: HttpRequest, slug: str) -> HttpResponse:
    """Offers an agent for tournaments (`up` is 1), or no longer."""
    agent = _own_agent(request, slug)
    up = request.POST.get("up") == "1"
    try:
        entering.put_up(agent, up=up)
    except EnteringError as error:
        messages.error(request, str(error))
    else:
        said = _("It is offered for tournaments and seen by everybody.") if up else _("It is yours alone again.")
        messages.success(request, said)
    return redirect("agent-versions", slug=slug)


@require_POST
@for_accounts
def retire(request: HttpRequest, slug: str) -> HttpResponse:
    """Takes an agent away for good; the staff may too."""
    entering.retire(_agent(request, slug))
    messages.success(request, _("The agent is retired. Games that are going on go on."))
    return redirect("agent-versions", slug=slug)
