"""Every address of the site, read from its configuration, for tests that must leave none out.

Here: the list, and how an address of each kind is written with names that exist or that do not. Not here: what a test
expects of them. Django's own administration is left out; it has tests of its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import get_resolver, reverse
from django.urls.resolvers import RoutePattern, URLPattern, URLResolver


@dataclass(frozen=True)
class Address:
    """One pattern of the configuration."""

    name: str
    route: str
    parameters: tuple[str, ...]
    numbers: frozenset[str]
    """Parameters that are whole numbers."""

    def written(self, known: Mapping[str, Any]) -> str:
        """The address with its parameters filled in."""
        return reverse(self.name, kwargs={name: known[name] for name in self.parameters})


def addresses() -> list[Address]:
    """All that have a name, in the order of the configuration."""
    return list(_walk(get_resolver()))


def _walk(resolver: URLResolver, before: str = "") -> Iterator[Address]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            if pattern.app_name != "admin":
                yield from _walk(pattern, before + str(pattern.pattern))
        elif isinstance(pattern, URLPattern) and pattern.name and isinstance(pattern.pattern, RoutePattern):
            converters = pattern.pattern.converters
            yield Address(
                name=f"{resolver.namespace}:{pattern.name}" if resolver.namespace else pattern.name,
                route=before + str(pattern.pattern),
                parameters=tuple(converters),
                numbers=frozenset(name for name, kind in converters.items() if type(kind).__name__ == "IntConverter"),
            )
