"""Turns with words in them, for tests of what models are told and what they answer."""

from collections.abc import Mapping

from agents.backends import ChatReply, ToolCall
from agents.base import Turn
from markets.engine import rules
from markets.engine.protocol import Party
from tests.markets.engine.factories import Table


def turn(table: Table, party: Party, *, words: Mapping[int, str] | None = None, slug: str = "test") -> Turn:
    """What an agent on a chair of `table` is asked; `words` went with the events of these numbers."""
    said = words or {}
    return Turn(
        observation=table.sees(party),
        seed=table.scenario.seed,
        party=party,
        slug=slug,
        position=rules.position(table.state, party),
        log=(table.scenario, table.log),
        words_at=lambda n: said.get(n, ""),
    )


def text(reply: str) -> ChatReply:
    """A reply in words."""
    return ChatReply(text=reply)


def calls(*named: tuple[str, str], words: str = "") -> ChatReply:
    """A reply of function calls: name and arguments as the model wrote them."""
    return ChatReply(text=words, tool_calls=tuple(ToolCall(name, arguments) for name, arguments in named))
