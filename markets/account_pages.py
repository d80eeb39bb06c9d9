"""Pages of accounts: signing up, in and out, the games of this browser, the password, and erasing it all.

Each view parses, makes one call into `accounts`, and renders. A way back (`next`) is followed on
this host alone.
"""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.formats import date_format
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from markets import accounts, identity
from markets.accounts import AccountError
from markets.models import Participant, Room, RoomStatus

BACKEND = "django.contrib.auth.backends.ModelBackend"
SHOWN_GAMES = 3


# --- What the templates read ------------------------------------------------------------------------


@dataclass(frozen=True)
class BrowserGames:
    """The games of an anonymous player of this browser."""

    pseudonym: str
    count: int
    count_text: str
    names: tuple[str, ...]
    """Of the newest few: market and day."""
    going_text: str
    """How many of them are still going; empty for none."""


@dataclass(frozen=True)
class AccountPage:
    """Context `page` of `registration/account.html`."""

    username: str
    email: str
    pseudonym: str
    since_text: str
    games_text: str
    browser: BrowserGames | None
    is_staff: bool


def browser_games(participant: Participant | None) -> BrowserGames | None:
    """What an anonymous player has played, in words; None where that is nothing."""
    if participant is None:
        return None
    count = participant.seats.count()
    if not count:
        return None
    rooms = Room.objects.filter(seats__participant=participant).select_related("market").order_by("-pk")
    going = rooms.exclude(status=RoomStatus.ENDED).count()
    return BrowserGames(
        pseudonym=participant.pseudonym,
        count=count,
        count_text=games_text(count),
        names=tuple(f"{room.market.name}, {date_format(room.created_at)}" for room in rooms[:SHOWN_GAMES]),
        going_text=ngettext("%(count)d of them is still going.", "%(count)d of them are still going.", going)
        % {"count": going}
        if going
        else "",
    )


def games_text(count: int) -> str:
    """A number of games."""
    return ngettext("%(count)d game", "%(count)d games", count) % {"count": count}


def _played(participant: Participant | None) -> str:
    """How many games somebody has; empty for none."""
    count = 0 if participant is None else participant.seats.count()
    return games_text(count) if count else ""


def way_back(request: HttpRequest, *, otherwise: str) -> str:
    """`next` where it is a path of this host, else another address of ours."""
    asked = request.POST.get("next", request.GET.get("next", ""))
    ours = url_has_allowed_host_and_scheme(asked, allowed_hosts={request.get_host()}, require_https=request.is_secure())
    return asked if asked.startswith("/") and ours else otherwise  # A bare word would be taken for a page's name.


# --- Signing up, in and out -------------------------------------------------------------------------


class SignUpForm(UserCreationForm):
    """A name and a password; an address only for who wants one kept."""

    carry = forms.BooleanField(required=False, initial=True)

    class Meta(UserCreationForm.Meta):
        model = User
        fields = ("username", "email")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].help_text = _(
            "May be left out. It is used if you forget your password and ask whoever runs this server for help."
        )
        self.fields["email"].label = _("E-mail, if you like")
        self.fields["username"].help_text = _("For signing in only. Other players see a made-up name.")


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def sign_up(request: HttpRequest) -> HttpResponse:
    """A new account; the games of this browser come along unless that is unticked."""
    goal = way_back(request, otherwise=reverse("history"))
    if request.user.is_authenticated:
        return redirect(goal)
    anonymous = identity.participant_of(request.session)
    form = SignUpForm(request.POST if request.method == "POST" else None)
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            try:
                account = accounts.sign_up(
                    username=form.cleaned_data["username"],
                    password=form.cleaned_data["password1"],
                    email=form.cleaned_data["email"],
                    address=request.META.get("REMOTE_ADDR", ""),
                    anonymous=anonymous if form.cleaned_data["carry"] else None,
                )
            except AccountError as refused:
                form.add_error(None, str(refused))
                status = 429
            else:
                login(request, account, backend=BACKEND)
                messages.success(request, _("Your account is there, and you are signed in."))
                return redirect(goal)
    context = {"form": form, "browser": browser_games(anonymous), "next": way_back(request, otherwise="")}
    return render(request, "registration/sign_up.html", context, status=status)


class SignIn(LoginView):
    """Signing in; a browser with games of its own is then asked about them."""

    template_name = "registration/sign_in.html"
    redirect_authenticated_user = True

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:
        return way_back(request or self.request, otherwise="")

    def get_success_url(self) -> str:
        goal = super().get_success_url()
        if browser_games(identity.set_aside(self.request.session)) is None:
            return goal
        return f"{reverse('account-games')}?{urlencode({'next': goal})}"

    def render_to_response(self, context: dict[str, Any], **how: Any) -> HttpResponse:
        if context["form"].errors:
            how["status"] = 400
        return super().render_to_response(context, **how)


@require_POST
@never_cache
def sign_out(request: HttpRequest) -> HttpResponse:
    """Back to the anonymous player of this browser, if there was one that no account owns."""
    anonymous = identity.set_aside(request.session)
    logout(request)
    if anonymous is not None:
        request.session[identity.SESSION_KEY] = anonymous.pk
    messages.success(request, _("You are signed out."))
    return redirect("home")


# --- The account ------------------------------------------------------------------------------------


@require_GET
@login_required
@never_cache
def account(request: HttpRequest) -> HttpResponse:
    """Who is signed in, and what can be done about it."""
    user = _user(request)
    participant = identity.participant_of(request.session)
    page = AccountPage(
        username=user.get_username(),
        email=user.email,
        pseudonym="" if participant is None else participant.pseudonym,
        since_text=date_format(user.date_joined),
        games_text=_played(participant),
        browser=browser_games(identity.set_aside(request.session)),
        is_staff=user.is_staff,
    )
    return render(request, "registration/account.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@never_cache
def games(request: HttpRequest) -> HttpResponse:
    """Asks whether the games of this browser are the account's too, and brings them along."""
    goal = way_back(request, otherwise=reverse("history"))
    anonymous = identity.set_aside(request.session)
    found = browser_games(anonymous)
    if anonymous is None or found is None:
        return redirect(goal)
    if request.method != "POST":
        return render(request, "registration/games.html", {"browser": found, "next": goal})
    if request.POST.get("choice") == "bring":
        try:
            brought = accounts.bring_along(account=_user(request), anonymous=anonymous)
        except AccountError as refused:
            messages.error(request, str(refused))
        else:
            messages.success(request, _brought_text(brought))
        request.session.pop(identity.SESSION_KEY, None)
    return redirect(goal)


def _brought_text(brought: accounts.Brought) -> str:
    text = ngettext("%(count)d game came along.", "%(count)d games came along.", brought.games) % {
        "count": brought.games
    }
    if not brought.stayed:
        return text
    stayed = ngettext(
        "%(count)d stayed: your account sat in it too.",
        "%(count)d stayed: your account sat in them too.",
        brought.stayed,
    ) % {"count": brought.stayed}
    return f"{text} {stayed}"


@method_decorator(never_cache, name="dispatch")
class ChangePassword(PasswordChangeView):
    """Another password; every other browser is signed out by it."""

    template_name = "registration/password.html"
    success_url = reverse_lazy("account")
    title = gettext_lazy("Change the password")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, _("Your password is changed. Other browsers have to sign in again."))
        return super().form_valid(form)

    def render_to_response(self, context: dict[str, Any], **how: Any) -> HttpResponse:
        if context["form"].errors:
            how["status"] = 400
        return super().render_to_response(context, **how)


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@never_cache
def delete(request: HttpRequest) -> HttpResponse:
    """Erases the person after the password was typed once more."""
    user = _user(request)
    participant = identity.participant_of(request.session)
    error = _("An account of the staff is removed in the administration.") if user.is_staff else ""
    if request.method == "POST" and not error:
        # By way of authenticate, so that guesses are counted and locked out.
        typed = request.POST.get("password", "")
        if authenticate(request, username=user.get_username(), password=typed) is None:
            error = _("That is not your password. Nothing was erased.")
        else:
            try:
                accounts.erase(account=user)
            except AccountError as refused:
                error = str(refused)
            else:
                logout(request)
                messages.success(request, _("You are erased: account, name and words. The moves stay without them."))
                return redirect("home")
    context = {
        "error": error,
        "is_staff": user.is_staff,
        "games_text": _played(participant),
    }
    return render(
        request, "registration/delete.html", context, status=400 if error and request.method == "POST" else 200
    )


def _user(request: HttpRequest) -> User:
    """Who is signed in, where `login_required` has seen to it that somebody is."""
    user = request.user
    assert isinstance(user, User)
    return user
