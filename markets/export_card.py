"""The head of a data card: what `datasets.load_dataset` reads to load a folder as it is.

Here: the YAML between the dashes of README.md. Not here: the words below it, which are each export's own.

Contract: a split without a row is not declared, because a file without a line tells no types; where no split
has a row, each table's first file is. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from markets.export_splits import SPLITS

NOTHING = (
    "There are no rows. `datasets` builds no split of nothing: read it with "
    "`load_dataset(DIR, streaming=True)`, or the files as they are."
)
"""What a card says of a data set without a row."""


def head(
    *, licence: str, tables: Mapping[str, Mapping[str, int]], features: Sequence[Mapping[str, Any]] = ()
) -> list[str]:
    """Lines of the head, dashes included. `tables` has per table the rows of each file."""
    lines = ["---", f"license: {licence}", "configs:"]
    for table, files in tables.items():
        lines += [f"- config_name: {table}", "  data_files:"]
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
