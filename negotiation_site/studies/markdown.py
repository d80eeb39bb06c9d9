"""Authors' Markdown as safe HTML: no raw HTML, no images, no addresses but web and mail.

The strict policy of the site (scripts and styles from itself alone) stands behind this, and is not relied on.
"""

from collections.abc import Sequence
from typing import Any

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

ALLOWED = ("http://", "https://", "mailto:", "#", "/")
"""How an address in a link may begin."""


class _Reader(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802  (the reader's own name for it)
        return url.strip().lower().startswith(ALLOWED)

    def link_open(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: dict[str, Any]) -> str:
        """A link opens beside the study, which tells the other page nothing."""
        tokens[index].attrSet("target", "_blank")
        tokens[index].attrSet("rel", "noopener noreferrer")
        return str(self.renderer.renderToken(tokens, index, options, env))  # type: ignore[attr-defined]


_reader = _Reader("commonmark", {"html": False, "typographer": False}).enable("table").disable("image")
_reader.renderer.rules["link_open"] = _reader.link_open  # type: ignore[attr-defined]


def html(text: str) -> SafeString:
    """Rendered; every character that is not Markdown is escaped."""
    return mark_safe(_reader.render(text))  # noqa: S308  (what the reader makes of text is escaped)
