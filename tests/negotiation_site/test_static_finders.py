"""Charts are drawn by the library that is installed, from our own address; the wheel's other copies are not served."""

from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

from negotiation_site import static_finders


def test_the_installed_chart_library_is_found() -> None:
    found = finders.find("plotly/plotly.min.js")
    assert found is not None
    assert Path(found).stat().st_size > 1_000_000


def test_it_is_the_only_file_of_the_wheel_that_is_served() -> None:
    assert [name for name, _ in static_finders.PlotlyFinder().list(None)] == ["plotly.min.js"]
    assert finders.find("plotly/widgetbundle.js") is None
    assert finders.find("plotly/../plotly.min.js") is None


def test_a_site_without_plotly_collects_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_finders, "find_spec", lambda name: None)
    assert list(static_finders.PlotlyFinder().list(None)) == []
    assert static_finders.PlotlyFinder().find("plotly/plotly.min.js") == []
