"""What programs read of an export: the head of its data card, and its description in Croissant.

Here: the YAML between the dashes of README.md, from which `datasets.load_dataset` loads a folder as it is, and
`croissant.json` (the format of MLCommons, version 1.0). Not here: the words of the card, which are each export's own.

Contract: a split without a row is not declared, because a file without a line tells no types; where no split
has a row, each table's first file is. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markets.export_splits import SPLITS

NOTHING = (
    "There are no rows. `datasets` builds no split of nothing: read it with "
    "`load_dataset(DIR, streaming=True)`, or the files as they are."
)
"""What a card says of a data set without a row."""


def head(
    *, licence: str, tables: Mapping[str, Mapping[str, int]], features: Sequence[Mapping[str, Any]] = ()
) -> list[str]:
    """Lines of the head, dashes included. `tables` has per table the rows of each file; the first is the default."""
    lines = ["---", f"license: {licence}", "configs:"]
    for number, (table, files) in enumerate(tables.items()):
        lines += [f"- config_name: {table}", *(["  default: true"] if not number else []), "  data_files:"]
        present = {path: rows for path, rows in files.items() if rows} or files
        for path in present:
            stem = path.rsplit("/", 1)[-1].split(".")[0]
            lines += [f"  - split: {stem if stem in SPLITS else 'full'}", f"    path: {path}"]
    if features:
        lines += ["dataset_info:", "  features:", *_yaml([dict(feature) for feature in features], 2)]
    return [*lines, "---"]


def _yaml(value: Any, depth: int) -> list[str]:
    """Plain lists and mappings of strings, as YAML."""
    space, lines = " " * depth, []
    if isinstance(value, list):
        for item in value:
            first, *rest = _yaml(item, depth + 2)
            lines += [f"{space}- {first.strip()}", *rest]
        return lines
    for key, inner in value.items():
        if isinstance(inner, str):
            lines.append(f"{space}{key}: {inner}")
        else:
            lines += [f"{space}{key}:", *_yaml(inner, depth + 2 if isinstance(inner, dict) else depth)]
    return lines


# --- Croissant ------------------------------------------------------------------------------------------

CROISSANT = "croissant.json"
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_ENCODINGS = {"jsonl": "application/jsonlines", "parquet": "application/x-parquet", "csv": "text/csv"}
_TYPES = {"string": "sc:Text", "int64": "sc:Integer", "float64": "sc:Float", "bool": "sc:Boolean"}
_MOMENTS = ("ended_at",)
_LEFT_OUT = "Columns that hold objects have no type in Croissant 1.0: they are in the files and in fields.json."


class Described(NamedTuple):
    """A column as Croissant tells of it."""

    name: str
    dtype: str
    """A type of ours; what has another holds objects and is left out."""
    meaning: str


def croissant(
    *,
    name: str,
    description: str,
    licence: str,
    version: str,
    tables: Mapping[str, Mapping[str, str]],
    columns: Mapping[str, Sequence[Described]],
) -> dict[str, Any]:
    """The description of an export. `tables` has per table the hash of each file, `columns` the columns of each table."""
    files, sets = [], []
    for table, hashes in tables.items():
        for path, sha256 in sorted(hashes.items()):
            stem, _dot, ending = path.rpartition(".")
            identity = stem.replace("/", "-")
            files.append(
                {
                    "@type": "cr:FileObject",
                    "@id": path,
                    "name": path,
                    "contentUrl": path,
                    "encodingFormat": _ENCODINGS[ending],
                    "sha256": sha256,
                }
            )
            sets.append(
                {
                    "@type": "cr:RecordSet",
                    "@id": f"records-{identity}",
                    "name": f"records-{identity}",
                    "description": _LEFT_OUT,
                    "field": [
                        {
                            "@type": "cr:Field",
                            "@id": f"records-{identity}/{column.name}",
                            "name": column.name,
                            "description": column.meaning,
                            "dataType": "sc:DateTime" if column.name in _MOMENTS else _TYPES[column.dtype],
                            "source": {"fileObject": {"@id": path}, "extract": {"column": column.name}},
                        }
                        for column in columns[table]
                        if column.dtype in _TYPES
                    ],
                }
            )
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": description,
        "license": licence,
        "version": version,
        "distribution": files,
        "recordSet": sets,
    }
