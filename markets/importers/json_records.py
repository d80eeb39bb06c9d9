"""Lists of JSON records: reading each with the line it stands on, around those that are broken.

Here: the parts that every JSON format of a catalogue shares. Not here: what the fields mean (a module
a format) or how a field is checked (`rows`). Contract: `read_files` checks every file as a whole
and raises `CatalogueError` where one is no complete list; a record that is not JSON comes out with a
`RowError` in place of its content, and the records around it are read.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from markets.importers.files import CatalogueError, read_text
from markets.importers.rows import RowError

_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")
# A string ends on its own line, so that one stray quotation mark upsets no later line.
_BRACKETS_AND_COMMAS = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\[\]{},]')


class Record(NamedTuple):
    path: Path
    position: int
    """Place in the file's list, from 1: a file may be one long line."""
    line: int
    """Line on which the record starts, from 1."""
    content: Any
    """The decoded JSON value, or a `RowError` where there is none."""


def _end_of_broken_record(text: str, start: int) -> int | None:
    """Position of the comma or bracket after the record at `start`; `None` if it has no end."""
    depth = 0
    for token in _BRACKETS_AND_COMMAS.finditer(text, start):
        if depth == 0 and token[0] in {",", "]"}:
            return token.start()
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
    return None


def _records(path: Path) -> list[Record]:
    """Every record of one file with the line on which it starts."""
    text = read_text(path)
    position = _after_blanks(text, 0)
    if not text.startswith("[", position):
        raise CatalogueError(f"{str(path)!r} does not hold a JSON list of products.")
    records: list[Record] = []
    line, counted = 1, 0
    position = _after_blanks(text, position + 1)
    while not text.startswith("]", position):
        line, counted = line + text.count("\n", counted, position), position
        content: Any
        try:
            content, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            end = _end_of_broken_record(text, position)
            if end is None:
                raise CatalogueError(f"{str(path)!r} is cut short: what starts on line {line} has no end.") from error
            content, position = RowError(f"This record is not valid JSON ({error})."), end
        records.append(Record(path=path, position=len(records) + 1, line=line, content=content))
        position = _after_blanks(text, position)
        if text.startswith(",", position):
            position = _after_blanks(text, position + 1)
        elif not text.startswith("]", position):
            raise CatalogueError(
                f"{str(path)!r} is cut short or lacks a comma after the record that starts on line {line}."
            )
    if _after_blanks(text, position + 1) != len(text):
        raise CatalogueError(f"{str(path)!r} goes on after the end of its list.")
    return records


def _after_blanks(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return match.end() if match else position


def read_files(path: Path) -> list[list[Record]]:
    """The records of a folder's JSON files, by file name, or of one JSON file, in its order."""
    if path.is_dir():
        paths = sorted(file for file in path.glob("*.json") if file.is_file())
        if not paths:
            raise CatalogueError(f"The folder {str(path)!r} holds no JSON file.")
    else:
        paths = [path]
    files = [_records(file) for file in paths]
    if not any(files):
        raise CatalogueError(f"{str(path)!r} holds no products.")
    return files


def fields_of(record: Record) -> dict[str, Any]:
    """The record's named fields. Raises `RowError`."""
    if isinstance(record.content, RowError):
        raise record.content
    if not isinstance(record.content, dict):
        raise RowError("This is not a record with named fields.")
    return record.content


def text_field(fields: dict[str, Any], name: str) -> str:
    """The string under `name`; empty if there is none."""
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RowError(f"The {name} is not text in quotation marks.")
    return value
