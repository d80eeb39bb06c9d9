"""Draws docs/modules.md from the code: every module with the first sentence it says of itself.

`make module-map` writes the page; `tests/test_module_map.py` holds it to the code.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "modules.md"
PACKAGES = {
    "markets/engine": "The rules",
    "markets": "Markets, rooms and the record",
    "agents": "Agents",
    "training": "Training, tournaments and what is said of agents",
    "negotiation_site": "The site",
    "benchmarks": "Benchmarks",
}
INTRODUCTION = """# Modules

Drawn from the code by `make module-map`: each module with the first sentence it says of itself. What depends on what,
and how one move travels, is in [architecture.md](architecture.md).
"""


def modules(package: str) -> Iterator[Path]:
    """Python files of a package that are read by people: no migrations, no empty package files, no nested entry of
    this map."""
    nested = [other for other in PACKAGES if other.startswith(f"{package}/")]
    for path in sorted((ROOT / package).rglob("*.py")):
        inside = path.relative_to(ROOT).as_posix()
        if "/migrations/" in inside or any(inside.startswith(f"{other}/") for other in nested):
            continue
        if path.name == "__init__.py" and not path.read_text().strip():
            continue
        yield path


def first_sentence(path: Path) -> str:
    """Of the module's docstring; empty where it has none."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


def name(path: Path, package: str) -> str:
    inside = path.relative_to(ROOT / package).with_suffix("").as_posix()
    return inside.removesuffix("/__init__") if inside != "__init__" else "(package)"


def page() -> str:
    parts = [INTRODUCTION]
    for package, title in PACKAGES.items():
        rows = [f"| `{name(path, package)}` | {first_sentence(path).replace('|', '/')} |" for path in modules(package)]
        parts.append(f"## {title}: `{package}`\n\n| module | what it says |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
