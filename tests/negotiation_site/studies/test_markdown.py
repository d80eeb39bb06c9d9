"""Authors' words are shown as they meant them, and can do nothing else."""

import pytest

from negotiation_site.studies.markdown import html


def test_markdown_is_rendered():
    assert html("# One\n\n- *two*\n- **three**").replace("\n", "") == (
        "<h1>One</h1><ul><li><em>two</em></li><li><strong>three</strong></li></ul>"
    )
    assert "<table>" in html("| a | b |\n|---|---|\n| 1 | 2 |")


def test_a_link_opens_beside_the_study():
    link = html("[terms](https://example.org/terms)")
    assert 'href="https://example.org/terms"' in link
    assert 'target="_blank"' in link
    assert 'rel="noopener noreferrer"' in link
    assert html("[mail](mailto:ada@example.org)").startswith("<p><a href=")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html;base64,xxxx)",
        "[x](vbscript:x)",
        "![x](https://example.org/pixel.png)",
        "<https://example.org/><b onclick=x>",
        "[x](<java\nscript:alert(1)>)",
    ],
)
def test_nothing_that_runs_or_loads_gets_through(text):
    shown = html(text)
    for tag in ("<script", "<img", "<b ", "onerror=alert(1)>", 'href="java', 'href="data', 'href="vb', 'href="Java'):
        assert tag not in shown
