"""Opening the files of a corpus and cutting them into records, within bounds.

Here: which files of a folder are data, JSON lists read record by record, lines, and the checks of
single values that every format shares. Not here: what a record means (a module a format).

Contract: a file that is not what it was said to be raises `CorpusError` with a sentence that names it;
a record that cannot be used is a `BadRecord` with its place, and those around it are read. Never more
than one record and one piece of a file are in memory. Nothing is unpacked.
"""

import codecs
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from markets.engine.money import Cents
from markets.importers.craigslist_bargain import CorpusError

MAX_FILE_BYTES = 64 * 2**20
MAX_FOLDER_BYTES = 256 * 2**20
MAX_RECORD_CHARACTERS = 8 * 2**20
MAX_LINE_BYTES = 2**20
MAX_TEXT_CHARACTERS = 20_000
MAX_EVENTS = 2_000
MAX_AMOUNT = 10**9
"""Largest amount of a record, in units of the currency."""
CHUNK = 2**20

_NOT_DATA = re.compile(r"(?i)(readme|licen[cs]e|notice|copying|citation|changelog)\b.*|\..*")
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")
# A string ends on its own line, so that one stray quotation mark upsets no later line.
_BRACKETS_AND_COMMAS = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\[\]{},]')


class RecordError(Exception):
    """One record cannot be used; the message is a sentence."""


@dataclass(frozen=True)
class BadRecord:
    """A record that was left out, and why."""

    place: str
    """`dev.json, record 3`"""
    reason: str


@dataclass(frozen=True)
class Repeat:
    """A record that adds nothing: another view of a dialogue that was read already, or the same one again."""

    place: str


@dataclass(frozen=True)
class Raw:
    """A record as it lies in its file."""

    place: str
    content: Any


# --- Files --------------------------------------------------------------------------------------------


def data_files(path: Path, *, suffix: str, largest: int | None = MAX_FILE_BYTES) -> list[Path]:
    """The data files of a folder and the folders in it, by name, or the one file. Raises `CorpusError`.

    Files that tell about the data (README, licence) are passed over, and so is what has another ending.
    """
    try:
        if path.is_dir():
            files = sorted(
                file
                for file in path.rglob("*")
                if file.suffix.lower() == suffix and not _NOT_DATA.fullmatch(file.name) and file.is_file()
            )
            if not files:
                raise CorpusError(f"The folder {str(path)!r} holds no data: no file in it ends in {suffix}.")
        elif path.is_file():
            files = [path]
        elif path.exists():
            raise CorpusError(f"{str(path)!r} is neither a file nor a folder.")
        else:
            raise CorpusError(f"There is no file or folder {str(path)!r}.")
        sizes = {file: file.stat().st_size for file in files}
    except OSError as error:
        raise CorpusError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    for file, size in sizes.items():
        if not size:
            raise CorpusError(f"The file {str(file)!r} is empty.")
        if largest is not None and size > largest:
            raise CorpusError(
                f"The file {str(file)!r} has {size / 2**20:,.0f} MB; files of at most {largest / 2**20:,.0f} MB are read."
            )
    if largest is not None and sum(sizes.values()) > MAX_FOLDER_BYTES:
        raise CorpusError(f"The folder {str(path)!r} holds more than {MAX_FOLDER_BYTES / 2**20:,.0f} MB of data.")
    return files


def _opened(path: Path) -> BinaryIO:
    try:
        file = path.open("rb")
        if b"\0" in file.read(8192):
            file.close()
            raise CorpusError(f"The file {str(path)!r} is not text; archives are not unpacked.")
        file.seek(0)
    except OSError as error:
        raise CorpusError(f"The file {str(path)!r} cannot be read: {error.strerror}.") from error
    return file


class _Text:
    """A file's text from where it was read to on, a piece at a time."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.text = ""
        self.at = 0
        self.ended = False
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogatepass")

    def more(self) -> None:
        """Read a piece on; sets `ended` where there was none."""
        chunk = self._file.read(CHUNK)
        try:
            piece = self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            raise CorpusError(f"The file {str(self.path)!r} is not UTF-8 text.") from error
        self.text, self.at = self.text[self.at :] + piece, 0
        self.ended = not chunk

    def next_character(self) -> str:
        """The next character that is no blank, without taking it; empty at the end."""
        while True:
            match = _BLANKS.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.text) or self.ended:
                return self.text[self.at : self.at + 1]
            self.more()


def json_list(path: Path, *, of: str) -> Iterator[Raw | BadRecord]:
    """The records of a JSON list. Raises `CorpusError` where the file as a whole is none."""
    with _opened(path) as file:
        source = _Text(path, file)
        if source.next_character() != "[":
            raise CorpusError(f"The file {str(path)!r} is not a JSON list of {of}.")
        source.at += 1
        number = 0
        while (following := source.next_character()) != "]":
            number += 1
            place = f"{path.name}, record {number}"
            if not following:
                raise _cut_short(path, number)
            yield _next_record(source, place, number)
            following = source.next_character()
            if following == ",":
                source.at += 1
            elif following != "]":
                raise _cut_short(path, number)
        source.at += 1
        if source.next_character():
            raise CorpusError(f"The file {str(path)!r} goes on after the end of its list.")
        if not number:
            raise CorpusError(f"The file {str(path)!r} is an empty list: it holds no {of}.")


def _cut_short(path: Path, number: int) -> CorpusError:
    return CorpusError(f"The file {str(path)!r} is cut short or damaged at record {number}; nothing was imported.")


def _next_record(source: _Text, place: str, number: int) -> Raw | BadRecord:
    while True:
        try:
            content, end = _DECODER.raw_decode(source.text, source.at)
        except (ValueError, RecursionError) as error:
            broken_to = _end_of_broken_record(source.text, source.at)
            if broken_to is not None:
                source.at = broken_to
                return BadRecord(place, f"This is not valid JSON ({_why(error)}).")
        else:
            if end < len(source.text) or source.ended:
                source.at = end
                return Raw(place, content)
        if source.ended:
            raise _cut_short(source.path, number)
        if len(source.text) - source.at > MAX_RECORD_CHARACTERS:
            raise CorpusError(
                f"Record {number} of {str(source.path)!r} has more than {MAX_RECORD_CHARACTERS:,} characters."
            )
        source.more()


def _why(error: Exception) -> str:
    return error.msg if isinstance(error, json.JSONDecodeError) else "it is nested too deeply or a number is too long"


def _end_of_broken_record(text: str, start: int) -> int | None:
    """Position of the comma or bracket after the record at `start`; None if it has no end in this text."""
    depth = 0
    for token in _BRACKETS_AND_COMMAS.finditer(text, start):
        if depth == 0 and token[0] in {",", "]"}:
            return token.start()
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
    return None


def lines(path: Path, *, longest: int = MAX_LINE_BYTES) -> Iterator[Raw | BadRecord]:
    """The lines of a text file that are not blank, as text; a line longer than `longest` bytes is a bad record."""
    with _opened(path) as file:
        number = 0
        while line := file.readline(longest):
            number += 1
            place = f"{path.name}, line {number}"
            if len(line) == longest and not line.endswith(b"\n"):
                while line and not line.endswith(b"\n"):
                    line = file.readline(longest)
                yield BadRecord(place, f"This line has more than {longest:,} bytes.")
            elif line.strip():
                try:
                    yield Raw(place, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n"))
                except UnicodeDecodeError:
                    yield BadRecord(place, "This line is not UTF-8 text.")


def json_object(path: Path) -> Raw | BadRecord:
    """A file that is one JSON object."""
    with _opened(path) as file:
        content = file.read(MAX_RECORD_CHARACTERS + 1)
    place = "/".join(path.parts[-2:])
    if len(content) > MAX_RECORD_CHARACTERS:
        return BadRecord(place, f"This file has more than {MAX_RECORD_CHARACTERS:,} bytes.")
    try:
        return Raw(place, json.loads(content))
    except (ValueError, RecursionError) as error:
        return BadRecord(place, f"This is not valid JSON ({_why(error)}): the file may be cut short.")


# --- Values -------------------------------------------------------------------------------------------


def named(value: Any, *, what: str) -> dict[str, Any]:
    """`value` if it is a record with named fields."""
    if not isinstance(value, dict):
        raise RecordError(f"The {what} is no record with named fields.")
    return value


def listed(value: Any, *, what: str) -> list[Any]:
    """`value` if it is a list of a size that a dialogue has."""
    if not isinstance(value, list):
        raise RecordError(f"The {what} is no list.")
    if len(value) > MAX_EVENTS:
        raise RecordError(f"The {what} has {len(value):,} entries; at most {MAX_EVENTS:,} are possible.")
    return value


def words(value: Any, *, what: str, limit: int = MAX_TEXT_CHARACTERS) -> str:
    """`value` if it is text that a database, a page and an export can hold."""
    if not isinstance(value, str):
        raise RecordError(f"The {what} is no text.")
    if len(value) > limit:
        raise RecordError(f"The {what} has {len(value):,} characters; at most {limit:,} are possible.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise RecordError(f"The {what} holds half of an emoji or other broken text.")
    if "\0" in value:
        raise RecordError(f"The {what} holds an unprintable character.")
    return value


def key(value: Any, *, what: str) -> str:
    """What names a dialogue: something that can stand in an address."""
    if not isinstance(value, str) or not _KEY.fullmatch(value):
        raise RecordError(f"The {what} is no name of letters, digits, dots and hyphens, at most 100.")
    return value


def cents(value: Any, *, what: str) -> Cents:
    """An amount of the file, in units of its currency, as cents; 0 is one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RecordError(f"The {what} is no amount.")
    if not 0 <= value <= MAX_AMOUNT:
        raise RecordError(f"The {what} {value} is below 0 or too large.")
    return round(value * 100)


def count(value: Any, *, what: str, limit: int = 10_000) -> int:
    """A whole number from 0, which may stand there as text."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limit:
        raise RecordError(f"The {what} is no whole number from 0 to {limit:,}.")
    return value
