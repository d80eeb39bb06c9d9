"""A study's data for whoever runs it: one download, made while one waits.

For the staff and the study's own researcher; to everybody else it is not there (`building.study_of`).
"""

import tempfile
import zipfile
from io import BytesIO
from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from negotiation_site.studies import building, dataset

FIXED_TIME = (1980, 1, 1, 0, 0, 0)
"""Of every file in an archive: the same data give the same bytes."""


@require_GET
@building.for_researchers
def download(request: HttpRequest, slug: str) -> HttpResponse:
    """The data set as a ZIP archive; `?consent=public` takes open data alone."""
    study = building.study_of(request, slug)
    scope = request.GET.get("consent", "research")
    if scope not in dataset.SCOPES:
        return HttpResponse(_("Data are exported for research, or as open data (public)."), status=400)
    packed = BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        made = dataset.make(study, Path(folder) / slug, scope=scope)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(made.folder.iterdir()):
                entry = zipfile.ZipInfo(f"{slug}/{path.name}", FIXED_TIME)
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(entry, path.read_bytes())
    response = HttpResponse(packed.getvalue(), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{slug}-{scope}.zip"'
    return response
