"""Opening a catalogue file: everything that can be wrong with a file as a whole.

Rows and their faults are in `rows`. Contract: `read_text` returns the decoded text of one regular
file or raises `CatalogueError` with a sentence that names the file.
"""

from pathlib import Path


class CatalogueError(Exception):
    """A catalogue cannot be read at all; the message is a sentence that names the file."""


def read_text(path: Path) -> str:
    """Text of a UTF-8 file, without its byte order mark.

    An encoded half of a surrogate pair is let through, so that it costs its row and not the file.
    """
    if not path.exists():
        raise CatalogueError(f"There is no file {str(path)!r}.")
    if not path.is_file():
        raise CatalogueError(f"{str(path)!r} is not a file.")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CatalogueError(f"{str(path)!r} cannot be opened: {error.strerror}.") from error
    if not content.strip():
        raise CatalogueError(f"{str(path)!r} is empty.")
    try:
        text = content.decode("utf-8-sig", errors="surrogatepass")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CatalogueError(
            f"{str(path)!r} is not UTF-8 text: line {line} holds bytes that cannot be read."
        ) from error
    if not text.strip():
        raise CatalogueError(f"{str(path)!r} is empty.")
    return text
