"""Where static files come from besides `static/` and the apps: the chart library inside the installed plotly wheel.

Only the one file that pages load is offered; the wheel holds other copies of the same library.
"""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage, Storage

FILE = "plotly.min.js"
PREFIX = "plotly"


def plotly_folder() -> Path | None:
    """The wheel's folder with the browser bundle, `None` where plotly is not installed. Imports nothing."""
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "package_data"
    return folder if (folder / FILE).is_file() else None


class PlotlyFinder(BaseFinder):
    """Serves the wheel's bundle as `plotly/plotly.min.js`."""

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        folder = plotly_folder()
        found = [str(folder / FILE)] if folder and path == f"{PREFIX}/{FILE}" else []
        return found if find_all or kwargs.get("all") else (found[0] if found else [])

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterable[tuple[str, Storage]]:
        folder = plotly_folder()
        if folder:
            storage = FileSystemStorage(location=folder)
            storage.prefix = PREFIX  # type: ignore[attr-defined]  # the protocol between finders and collectstatic
            yield FILE, storage
