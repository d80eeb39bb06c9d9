"""Shows how the rules as they are would change the golden transcripts; `--write` changes them."""

import difflib
import sys

from tests.markets.engine import golden


def main(arguments: list[str]) -> int:
    """Exit status: 1 where something differs and nothing was written."""
    if arguments not in ([], ["--write"]):
        sys.stderr.write("usage: python -m tests.markets.engine.golden [--write]\n")
        return 2
    changed = False
    for name in golden.names():
        path = golden.FOLDER / f"{name}.json"
        old, new = path.read_text(encoding="utf-8"), golden.written(golden.load(name))
        if old == new:
            continue
        changed = True
        sys.stdout.writelines(
            difflib.unified_diff(
                old.splitlines(keepends=True), new.splitlines(keepends=True), f"{name} as stored", f"{name} as played"
            )
        )
        if arguments:
            path.write_text(new, encoding="utf-8")
    return 1 if changed and not arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
