"""The agents that people entered, as rows: saving a version, putting up, retiring, trying, looking up.

A saved version is immutable; a change is the next version under the same slug. Only its author writes
to an agent; the staff may retire one. Here are the rules; who is asking is the pages' business, and what
may stand in an entry `entered`'s. Refusals raise `EnteringError` or `entered.EntryError` with a
sentence and change nothing.
"""

import re
import secrets

import msgspec
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from agents import entered
from agents.base import AgentSpec
from agents.entered import Entry
from agents.models import EnteredAgent, EnteredVersion
from markets import selectors, setup
from markets.models import Market

MOST_AGENTS = 10
"""Of one person, not retired."""
MOST_EVER = 50
"""Of one person, retired ones too."""
MOST_VERSIONS = 50

SANDBOX = "agent-sandbox"
"""Slug of the market in which authors try their agents: in no list, and its games count in no leaderboard."""

_SLUG = re.compile(rf"{entered.PREFIX}[a-z0-9-]+")


class EnteringError(ValueError):
    """Something that is not done; the sentence says why."""


# --- Writing --------------------------------------------------------------------------------------


def enter(entry: Entry, *, author: User) -> EnteredAgent:
    """The first version of an agent under a slug of its own."""
    entry = entered.checked(entry)
    with transaction.atomic():
        User.objects.select_for_update().get(pk=author.pk)  # So that entries sent together count.
        own = EnteredAgent.objects.filter(author=author)
        if own.filter(retired_at=None).count() >= MOST_AGENTS:
            raise EnteringError(
                _("You have %(most)d agents. Retire one before you enter another.") % {"most": MOST_AGENTS}
            )
        if own.count() >= MOST_EVER:
            raise EnteringError(
                _("You have entered %(most)d agents, which is as many as one may.") % {"most": MOST_EVER}
            )
        agent = EnteredAgent.objects.create(slug=_new_slug(entry.name), author=author)
        _save(agent, entry, number=1, note="")
    return agent


def _new_slug(name: str) -> str:
    """An address that nobody had before, not even one whose agents were erased."""
    return f"{entered.PREFIX}{slugify(name)[:40].strip('-_').replace('_', '-') or 'agent'}-{secrets.token_hex(4)}"


def change(agent: EnteredAgent, entry: Entry, *, based_on: int, note: str) -> EnteredVersion:
    """The next version of an agent, written from version `based_on`."""
    entry = entered.checked(entry)
    if len(note) > entered.MAX_NOTE_CHARS:
        raise EnteringError(_("What has changed is told in at most 200 characters."))
    if agent.retired_at is not None:
        raise EnteringError(_("This agent is retired."))
    newest = newest_version(agent)
    if newest.number != based_on:
        raise EnteringError(
            _("Version %(version)d was saved in the meantime. Look at it, then make your change again.")
            % {"version": newest.number}
        )
    if newest.number >= MOST_VERSIONS:
        raise EnteringError(_("An agent has at most %(most)d versions.") % {"most": MOST_VERSIONS})
    if entry_of(newest) == entry:
        raise EnteringError(_("Nothing is different from version %(version)d.") % {"version": newest.number})
    try:
        with transaction.atomic():
            return _save(agent, entry, number=newest.number + 1, note=note.strip())
    except IntegrityError:
        raise EnteringError(
            _("Version %(version)d was saved in the meantime. Look at it, then make your change again.")
            % {"version": newest.number + 1}
        ) from None


def _save(agent: EnteredAgent, entry: Entry, *, number: int, note: str) -> EnteredVersion:
    text = msgspec.json.encode(entry).decode()
    return EnteredVersion.objects.create(agent=agent, number=number, entry=text, note=note)


def put_up(agent: EnteredAgent, *, up: bool) -> None:
    """Offer an agent to everybody, or no longer."""
    if up and agent.retired_at is not None:
        raise EnteringError(_("This agent is retired."))
    EnteredAgent.objects.filter(pk=agent.pk).update(put_up=up)


def retire(agent: EnteredAgent) -> None:
    """Take an agent away for good: nobody seats it anew; rooms and tournaments that have it go on."""
    EnteredAgent.objects.filter(pk=agent.pk, retired_at=None).update(retired_at=timezone.now(), put_up=False)


# --- Reading --------------------------------------------------------------------------------------


def entry_of(version: EnteredVersion) -> Entry:
    """What its author wrote."""
    return msgspec.json.decode(version.entry, type=Entry)


def newest_version(agent: EnteredAgent) -> EnteredVersion:
    """The version that is played from now on."""
    return agent.versions.order_by("-number")[0]


def spec_of(agent: EnteredAgent) -> AgentSpec:
    """The agent in its newest version."""
    version = newest_version(agent)
    return entered.spec_of(agent.slug, version.number, entry_of(version))


def listed() -> tuple[AgentSpec, ...]:
    """Agents that are put up, oldest first."""
    up = EnteredAgent.objects.filter(put_up=True, retired_at=None).prefetch_related("versions")
    found = []
    for agent in up:
        version = agent.versions.all()[0]  # Newest first.
        found.append(entered.spec_of(agent.slug, version.number, entry_of(version)))
    return tuple(found)


def named(slug: str, version: str = "") -> AgentSpec | None:
    """The agent of a slug in the version that a record names, else in its newest; None where there is none."""
    if _SLUG.fullmatch(slug) is None:
        return None
    versions = EnteredVersion.objects.filter(agent__slug=slug).order_by("-number")
    number = entered.number_of(version)
    found = (versions.filter(number=number).first() if number is not None else None) or versions.first()
    return None if found is None else entered.spec_of(slug, found.number, entry_of(found))


# --- The sandbox ----------------------------------------------------------------------------------


def sandbox() -> Market:
    """The market in which authors try their agents, made when the first one asks."""
    market = selectors.market(SANDBOX)
    if market is not None:
        return market
    return setup.create_market(
        setup.MarketSpec(
            slug=SANDBOX,
            name="Sandbox",
            summary="Where people try the agents that they entered. Its games count in no leaderboard.",
            family="bilateral",
            unit="money",
            values="uniform:60:120",
            cost="uniform:30:90",
            turns=8,
            listed=False,
        )
    )
