"""Profiles of Magentic Marketplace (Microsoft 2025): what customers want, what businesses charge, and the best they could do.

A folder holds `customers/*.yaml` and `businesses/*.yaml`. Their utility of a purchase is twice the sum of the values of what
was wanted, less the price, where the business has all that was wanted and every amenity; without an amenity it is the price
lost (the published rule). Here: reading, utilities, the optimum, packages as products of a catalogue. Not here: storing.

Contract: `read` gives profiles or raises `ProfileError` with a sentence. Amounts are integer cents. Pure but for files.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from markets.engine.money import Cents
from markets.importers.rows import MAX_TITLE_CHARACTERS, ProductRow

FORMAT = "magentic"
MAX_BYTES = 2**20
MAX_FILES = 10_000


class ProfileError(ValueError):
    """Profiles that cannot be read; the sentence says why."""


class Customer(NamedTuple):
    """Who wants what."""

    key: str
    values: dict[str, Cents]
    """Items that are wanted, all of them, and their values."""
    amenities: frozenset[str]


class Business(NamedTuple):
    """Who sells what."""

    key: str
    name: str
    description: str
    prices: dict[str, Cents]
    amenities: frozenset[str]
    min_price_factor: float
    """Lowest price it takes, as a part of its menu's."""


class Profiles(NamedTuple):
    """A set of both."""

    customers: tuple[Customer, ...]
    businesses: tuple[Business, ...]


class Choice(NamedTuple):
    """A purchase."""

    customer: str
    business: str
    price_cents: Cents
    utility_cents: Cents


# --- Reading --------------------------------------------------------------------------------------------


def read(folder: Path) -> Profiles:
    """The profiles of a folder."""
    customers = tuple(_customer(path, content) for path, content in _files(folder / "customers"))
    businesses = tuple(_business(path, content) for path, content in _files(folder / "businesses"))
    return Profiles(customers, businesses)


def _files(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    try:
        import yaml
    except ImportError as error:
        raise ProfileError("Profiles are YAML, which needs the package PyYAML; `make install` brings it.") from error
    try:
        paths = sorted(folder.glob("*.yaml"))[: MAX_FILES + 1]
        if not paths:
            raise ProfileError(f"The folder {str(folder)!r} holds no profiles: no file in it ends in .yaml.")
        if len(paths) > MAX_FILES:
            raise ProfileError(f"The folder {str(folder)!r} holds more than {MAX_FILES:,} profiles.")
        for path in paths:
            if path.stat().st_size > MAX_BYTES:
                raise ProfileError(f"The profile {str(path)!r} has more than {MAX_BYTES:,} bytes.")
            try:
                content = yaml.safe_load(path.read_text(encoding="utf-8"))
            except (yaml.YAMLError, UnicodeError, RecursionError, ValueError) as error:
                raise ProfileError(f"The profile {str(path)!r} is not valid YAML; it may be cut short.") from error
            if not isinstance(content, dict):
                raise ProfileError(f"The profile {str(path)!r} has no named fields.")
            yield path, content
    except OSError as error:
        raise ProfileError(f"{str(folder)!r} cannot be read: {error.strerror}.") from error


def _customer(path: Path, content: dict[str, Any]) -> Customer:
    amenities = content.get("amenity_features") or []
    if not isinstance(amenities, list) or not all(isinstance(each, str) for each in amenities):
        raise ProfileError(f"The amenities of {str(path)!r} are no list of words.")
    return Customer(_text(path, content, "id"), _amounts(path, content), frozenset(amenities))


def _business(path: Path, content: dict[str, Any]) -> Business:
    amenities = content.get("amenity_features") or {}
    if not isinstance(amenities, dict):
        raise ProfileError(f"The amenities of {str(path)!r} are no list of yes and no.")
    factor = content.get("min_price_factor", 1)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 <= factor <= 1:
        raise ProfileError(f"The min_price_factor of {str(path)!r} is no part of a price.")
    return Business(
        key=_text(path, content, "id"),
        name=_text(path, content, "name"),
        description=str(content.get("description") or ""),
        prices=_amounts(path, content),
        amenities=frozenset(str(name) for name, there in amenities.items() if there is True),
        min_price_factor=float(factor),
    )


def _text(path: Path, content: dict[str, Any], name: str) -> str:
    found = content.get(name)
    if not isinstance(found, str) or not found.strip():
        raise ProfileError(f"The profile {str(path)!r} has no {name}.")
    return found.strip()


def _amounts(path: Path, content: dict[str, Any]) -> dict[str, Cents]:
    found = content.get("menu_features")
    if not isinstance(found, dict) or not found:
        raise ProfileError(f"The profile {str(path)!r} has no menu_features.")
    amounts: dict[str, Cents] = {}
    for item, amount in found.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < 1e9:
            raise ProfileError(f"The amount of {item!r} in {str(path)!r} is none.")
        amounts[str(item)] = round(amount * 100)
    return amounts


# --- What it is worth -----------------------------------------------------------------------------------


def price_cents(customer: Customer, business: Business) -> Cents | None:
    """What a business charges for all that is wanted; None where it lacks something."""
    if not customer.values.keys() <= business.prices.keys():
        return None
    return sum(business.prices[item] for item in customer.values)


def worth_cents(customer: Customer, business: Business) -> Cents:
    """What all that is wanted is worth there: twice its values, nothing without an amenity."""
    return 2 * sum(customer.values.values()) if customer.amenities <= business.amenities else 0


def purchases(profiles: Profiles) -> Iterator[Choice]:
    """Every purchase that can be made."""
    for customer in profiles.customers:
        for business in profiles.businesses:
            price = price_cents(customer, business)
            if price is not None:
                yield Choice(customer.key, business.key, price, worth_cents(customer, business) - price)


def best(profiles: Profiles) -> tuple[Choice, ...]:
    """Each customer's best purchase; nobody buys at a loss. Businesses serve as many as come, so these are the optimum."""
    found: dict[str, Choice] = {}
    for choice in purchases(profiles):
        held = found.get(choice.customer)
        if choice.utility_cents > 0 and (held is None or choice.utility_cents > held.utility_cents):
            found[choice.customer] = choice
    return tuple(found[customer.key] for customer in profiles.customers if customer.key in found)


def packages(profiles: Profiles, *, source: str) -> Iterator[ProductRow]:
    """Purchases that gain, as products: the price as list price, the least that is taken, what it is worth as the highest."""
    businesses = {business.key: business for business in profiles.businesses}
    customers = {customer.key: customer for customer in profiles.customers}
    for choice in purchases(profiles):
        if choice.utility_cents <= 0:
            continue
        business, customer = businesses[choice.business], customers[choice.customer]
        title = f"{business.name}: {', '.join(customer.values)}"
        yield ProductRow(
            sku=f"{choice.business}-{choice.customer}"[:64],
            title=title[:MAX_TITLE_CHARACTERS],
            category="package",
            list_price_cents=choice.price_cents,
            lowest_price_cents=round(choice.price_cents * business.min_price_factor),
            highest_price_cents=choice.price_cents + choice.utility_cents,
            text=business.description[:20_000],
            source=f"{source}: {choice.business}",
        )
