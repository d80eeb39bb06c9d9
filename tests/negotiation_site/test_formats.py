"""One way of writing dates on the whole site; two would leave a reader to guess which number is the month."""

import re
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.template import Context, Template
from django.utils.formats import date_format

WHEN = datetime(2026, 3, 9, 14, 5, tzinfo=UTC)
BASE = Path(settings.BASE_DIR)
OWN_FORMAT = re.compile(r"\|\s*date:(?!\"(?:DATE|DATETIME|TIME)_FORMAT\")|\|\s*time\b|\{[^{}\"]*:%[YmdHB]")
EXCEPT = {
    "templates/_operations.html": "to the second, beside logs that write so",
    "markets/models.py": "names of rows in the administration",
    "negotiation_site/studies/models.py": "names of rows in the administration",
}


def test_dates_and_times_read_the_same_long_and_short():
    assert date_format(WHEN) == date_format(WHEN, "SHORT_DATE_FORMAT") == "9 Mar 2026"
    assert date_format(WHEN, "DATETIME_FORMAT") == date_format(WHEN, "SHORT_DATETIME_FORMAT") == "9 Mar 2026, 14:05"
    assert Template("{{ when }}").render(Context({"when": WHEN})) == "9 Mar 2026, 14:05"


def test_no_page_writes_dates_in_a_way_of_its_own():
    sources = [*BASE.glob("templates/**/*.html"), *BASE.glob("negotiation_site/**/*.py"), *BASE.glob("markets/**/*.py")]
    found = {
        path.relative_to(BASE).as_posix()
        for path in sources
        if "migrations" not in path.parts and OWN_FORMAT.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(EXCEPT)
