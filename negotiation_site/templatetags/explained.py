"""`text|explained`: a heading, a label or a table's head whose economic terms lead to the glossary.

The words are those of docs/glossary.md (`negotiation_site.glossary`), nothing is explained here. `static/js/terms.js`
opens the explanation beside the word; without it the link leads to the entry. The filter is built into every template.
Not for the insides of a link or a button, and not for attributes.
"""

from pathlib import Path

from django import template
from django.conf import settings
from django.urls import reverse
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

from markets.presentation import GlossaryTerm
from negotiation_site import glossary

register = template.Library()


@register.filter
def explained(text: object, anchor: str = "") -> SafeString:
    """`text` with the first mention of each term as a link; with `anchor` all of it leads to that entry."""
    words = str(text)
    if not words:
        return SafeString("")
    if anchor:
        return _link(glossary.entry(Path(settings.BASE_DIR), anchor), words)
    parts = glossary.mentions(Path(settings.BASE_DIR), words)
    return format_html_join(
        "", "{}", ((_link(term, part) if term else conditional_escape(part),) for part, term in parts)
    )


def _link(term: GlossaryTerm, words: str) -> SafeString:
    return format_html(
        '<a class="term" href="{}#{}" title="{}">{}</a>', reverse("glossary"), term.anchor, term.lead, words
    )
