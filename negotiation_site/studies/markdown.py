"""Authors' Markdown as safe HTML: no raw HTML, no images, no addresses but web and mail.

The strict policy of the site (scripts and styles from itself alone) stands behind this, and is not relied on.
"""

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

ALLOWED = ("http://", "https://", "mailto:", "#", "/")
"""How an address in a link may begin."""


class _Reader(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802  (the reader's own name for it)
        return url.strip().lower().startswith(ALLOWED)


_reader = _Reader("commonmark", {"html": False, "typographer": False}).enable("table").disable("image")


def html(text: str) -> SafeString:
    """Rendered; every character that is not Markdown is escaped."""
    return mark_safe(_reader.render(text))  # noqa: S308  (what the reader makes of text is escaped)
