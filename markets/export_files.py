"""Files of an export: rows as JSON lines, CSV or Parquet, and a folder that appears only when it is whole.

Here: writing and hashing. Not here: what a row is (`export_tables`, `training.rows`) and which
episodes there are.

Contract: a writer holds a bounded number of rows at a time. The same rows give the same bytes (Parquet: with
the same release of pyarrow). A folder is written beside its place under another name and moved when it is
whole; whoever is killed leaves a draft that the next export clears away. Half a character becomes a question mark.
"""

import csv
import errno
import hashlib
import json
import os
import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from markets.export import ExportError
from markets.export_masking import whole
from markets.export_tables import Column

ROW_GROUP = 8_000
"""Rows of one group of a Parquet file, unless they are long: what a writer holds."""
LONG_ROW_GROUP = 1_000
"""The same for rows with whole scenarios in them."""
SUMS = "SHA256SUMS"
MANIFEST = "export.json"
"""Facts of an export; a folder is one of ours when it has both."""
_DANGEROUS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


class Rows(ABC):
    """A file of rows that is being written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        path.parent.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def add(self, row: Any) -> None:
        """One more row."""

    @abstractmethod
    def close(self) -> None:
        """Write what is held."""


def line(row: Any) -> bytes:
    """A row as one line of JSON."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


class JsonLines(Rows):
    """One JSON object a line."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = path.open("wb")

    def add(self, row: Any) -> None:
        self._file.write(line(row))
        self.count += 1

    def close(self) -> None:
        self._file.close()


class Csv(Rows):
    """RFC 4180 in UTF-8; a cell that a spreadsheet would take for a formula begins with an apostrophe."""

    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        super().__init__(path)
        self._file = path.open("w", encoding="utf-8", errors="replace", newline="")
        self._writer = csv.writer(self._file)
        self._writer.writerow([column.name for column in columns])

    def add(self, row: Any) -> None:
        self._writer.writerow([neutral(cell) for cell in row])
        self.count += 1

    def close(self) -> None:
        self._file.close()


def neutral(cell: Any) -> Any:
    """A cell that no spreadsheet computes."""
    if isinstance(cell, str) and cell.lstrip(" \n\ufeff").startswith(_DANGEROUS):
        return f"'{cell}"
    return "" if cell is None else cell


class Parquet(Rows):
    """Columns in row groups of a bounded size, compressed with zstd. Raises `ExportError` where pyarrow is missing."""

    def __init__(self, path: Path, columns: Sequence[Column], *, group: int = ROW_GROUP) -> None:
        super().__init__(path)
        self._group = group
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError as error:
            raise ExportError(
                "Parquet needs the package pyarrow, which `make install` brings; jsonl and csv do without."
            ) from error
        self._arrow = pyarrow
        kinds = {
            "string": pyarrow.string(),
            "int64": pyarrow.int64(),
            "float64": pyarrow.float64(),
            "bool": pyarrow.bool_(),
        }
        self._schema = pyarrow.schema([(column.name, kinds[column.type]) for column in columns])
        self._texts = [k for k, column in enumerate(columns) if column.type == "string"]
        self._writer = parquet.ParquetWriter(str(path), self._schema, compression="zstd")
        self._rows: list[Any] = []

    def add(self, row: Any) -> None:
        self._rows.append(row)
        self.count += 1
        if len(self._rows) >= self._group:
            self._flush()

    def close(self) -> None:
        if self._rows:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        columns = [list(column) for column in zip(*self._rows, strict=True)]
        self._rows = []
        try:
            arrays = self._arrays(columns)
        except UnicodeEncodeError:
            for k in self._texts:
                columns[k] = [None if cell is None else whole(cell) for cell in columns[k]]
            arrays = self._arrays(columns)
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema), row_group_size=self._group)

    def _arrays(self, columns: list[list[Any]]) -> list[Any]:
        return [self._arrow.array(column, type=kind) for column, kind in zip(columns, self._schema.types, strict=True)]


# --- Hashes -----------------------------------------------------------------------------------------


def sha256_of(path: Path) -> str:
    """Hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sums(folder: Path, files: Iterable[Path]) -> str:
    """`HASH  PATH` of files of a folder, one a line, as `sha256sum -c` reads it."""
    return "".join(f"{sha256_of(path)}  {path.relative_to(folder).as_posix()}\n" for path in sorted(files))


def content_hash(folder: Path, files: Sequence[Path]) -> str:
    """Hash of the data: the file's own where there is one, else that of the list of their hashes."""
    return sha256_of(files[0]) if len(files) == 1 else hashlib.sha256(sums(folder, files).encode()).hexdigest()


# --- The folder -------------------------------------------------------------------------------------


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `out` when the block is left without an error.

    `out` may not be there, be empty, or hold an export of ours and nothing else, which is then replaced.
    Raises `ExportError` with a sentence for anything else, for a place that cannot be written and for a full disk.
    """
    draft = out.parent / f"{_drafts(out)}{os.getpid()}.{secrets.token_hex(4)}"
    try:
        _check(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        _clear_dead(out)
        draft.mkdir()
        yield draft
        _move(draft, out)
    except OSError as error:
        raise ExportError(f"{str(out)!r} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _drafts(out: Path) -> str:
    """How the names of drafts for `out` begin; short, so that a long name has one too."""
    return f".export-{hashlib.sha256(out.name.encode('utf-8', 'replace')).hexdigest()[:12]}."


def _check(out: Path) -> None:
    if out.parent.exists() and not out.parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not out.exists():
        return
    if not out.is_dir():
        raise ExportError(f"{str(out)!r} is a file; name a folder to write into.")
    if any(out.iterdir()) and not is_export(out):
        raise ExportError(f"{str(out)!r} is not empty; name a new or empty folder.")
    if not os.access(out, os.W_OK | os.X_OK):
        raise ExportError(f"{str(out)!r} cannot be written: Permission denied.")


def is_export(folder: Path) -> bool:
    """Whether a folder holds one export of ours and nothing else."""
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError):
        return False
    listed = {line.partition("  ")[2] for line in lines} | {SUMS}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    return MANIFEST in listed and there <= listed


def _clear_dead(out: Path) -> None:
    """Remove drafts whose process is gone."""
    for path in out.parent.glob(f"{_drafts(out)}*"):
        pid = path.name.removeprefix(_drafts(out)).partition(".")[0]
        if pid.isdigit() and not _lives(int(pid)):
            shutil.rmtree(path, ignore_errors=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _move(draft: Path, out: Path) -> None:
    """Put the whole folder in its place; an earlier export is there or gone, never half."""
    for path in draft.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    if not out.exists() or not any(out.iterdir()):
        draft.rename(out)
        return
    old = draft.with_name(f"{draft.name}.old")
    out.rename(old)
    try:
        draft.rename(out)
    except OSError:
        with suppress(OSError):
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)
