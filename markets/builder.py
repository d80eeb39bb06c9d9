"""Writes of the market builder: saving a version, retiring one, bringing it back.

A saved version is immutable but for `retired_at`: rooms and episodes point to the version they were
played under and keep it. A change is the next version under the same slug. Everybody else finds the
newest version that is not retired (`selectors.market`). Refusals raise `BuilderError`, or what
`setup.new_market` raises, and change nothing.
"""

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from markets import recipe_text, selectors, setup
from markets.models import Market
from markets.setup import MarketSpec

MOST_VERSIONS = 1_000


class BuilderError(ValueError):
    """Something that the builder does not do; the sentence says why."""


def save_market(spec: MarketSpec, *, author: User | None) -> Market:
    """The first version of a market under a slug of its own."""
    if selectors.newest_version(spec.slug) is not None:
        raise BuilderError(
            _("There is a market at the address %(slug)s already: choose another, or make a new version of it.")
            % {"slug": spec.slug}
        )
    return _saved(setup.new_market(spec), version=1, note="", author=author)


def save_version(spec: MarketSpec, *, based_on: int, note: str, author: User | None) -> Market:
    """The next version of the market `spec.slug`, written from version `based_on`."""
    newest = selectors.newest_version(spec.slug)
    if newest is None:
        raise BuilderError(_("There is no market at the address %(slug)s.") % {"slug": spec.slug})
    if newest.version != based_on:
        raise BuilderError(
            _("Version %(version)d was saved in the meantime. Look at it, then make your change again.")
            % {"version": newest.version}
        )
    if newest.version >= MOST_VERSIONS:
        raise BuilderError(_("A market has at most %(most)d versions; copy it.") % {"most": MOST_VERSIONS})
    if len(note) > 200:
        raise BuilderError(_("What has changed is told in at most 200 characters."))
    market = setup.new_market(spec)
    if recipe_text.facts(market) == recipe_text.facts(newest) and setup.rules_of(market) == setup.rules_of(newest):
        raise BuilderError(_("Nothing is different from version %(version)d.") % {"version": newest.version})
    return _saved(market, version=newest.version + 1, note=note, author=author)


def _saved(market: Market, *, version: int, note: str, author: User | None) -> Market:
    market.version, market.note, market.created_by = version, note.strip(), author
    try:
        with transaction.atomic():
            market.save(force_insert=True)
    except IntegrityError:
        raise BuilderError(
            _("Somebody saved version %(version)d in this moment. Look at it, then make your change again.")
            % {"version": version}
        ) from None
    return market


def retire(market: Market) -> bool:
    """Take a version off the shelf: nobody opens it anew, rooms that are going go on. False where it was off already."""
    return bool(Market.objects.filter(pk=market.pk, retired_at=None).update(retired_at=timezone.now()))


def retire_all(slug: str) -> int:
    """Take every version of a market off the shelf; how many that were."""
    return Market.objects.filter(slug=slug, retired_at=None).update(retired_at=timezone.now())


def restore(market: Market) -> bool:
    """Put a retired version back. False where it was there already."""
    return bool(Market.objects.filter(pk=market.pk, retired_at__isnull=False).update(retired_at=None))
