"""What is known of the packages that are pinned: `python -m tests.audit`.

Asks the advisory database of OSV (PyPI's and GitHub's advisories) once for all pins of requirements*.txt and
constraints.txt, and once more for each advisory found. Exit status 0 where there is none that is not accepted below;
1 where there is, with its sentence and the version that mends it; 0 and the reason where the database cannot be asked,
unless PARLEY_REQUIRE names advisories. Names and versions of packages are all that leaves the machine. Reading the pins
is here too; that they are pins is `test_requirements`.
"""

import json
import re
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import machine

ROOT = Path(__file__).resolve().parent.parent
FILES = (*sorted(ROOT.glob("requirements*.txt")), ROOT / "constraints.txt")
OSV = "https://api.osv.dev/v1"
TIMEOUT_S = 8
MOST_TOLD = 25
ACCEPTED: Mapping[str, str] = {}
"""Advisories that do not concern us, by their number, each with the reason."""

_PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[a-z0-9,_-]+\])?==(?P<version>[^\s;]+)(?:\s*;.*)?")


class Unpinned(ValueError):
    """A line that names no exact version from the index."""


class Unasked(Exception):
    """The database could not be asked; the message says why."""


@dataclass(frozen=True)
class Advisory:
    """One weakness that is known of a pinned version."""

    number: str
    package: str
    version: str
    summary: str
    mended_in: str

    def __str__(self) -> str:
        mended = f"mended in {self.mended_in}" if self.mended_in else "not mended yet"
        return f"{self.package} {self.version}: {self.number}, {mended}. {self.summary}"


def canonical(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(path: Path) -> dict[str, str]:
    """Version by canonical name, as one file pins them. Raises `Unpinned` with the line."""
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.split(" #")[0].strip()
        if not text or text.startswith("#") or re.fullmatch(r"-[rc] [a-z-]+\.txt", text):
            continue
        match = _PIN.fullmatch(text)
        if match is None or "*" in match["version"]:
            raise Unpinned(f"{path.name}: {text!r} names no exact version of a package of the index.")
        if canonical(match["name"]) in found:
            raise Unpinned(f"{path.name}: {match['name']} is there twice.")
        found[canonical(match["name"])] = match["version"]
    return found


def known(pinned: Mapping[str, str], *, database: str = OSV) -> list[Advisory]:
    """Advisories about these versions that are not accepted. Raises `Unasked`."""
    names = sorted(pinned)
    queries = [{"package": {"ecosystem": "PyPI", "name": name}, "version": pinned[name]} for name in names]
    answer = _asked(f"{database}/querybatch", {"queries": queries})
    results = answer.get("results")
    if not isinstance(results, list) or len(results) != len(names):
        raise Unasked("its answer is not one for each package")
    numbers = [
        (name, one["id"])
        for name, result in zip(names, results, strict=True)
        for one in result.get("vulns", ())
        if one["id"] not in ACCEPTED
    ]
    told = {number: _asked(f"{database}/vulns/{number}") for _name, number in numbers[:MOST_TOLD]}
    return [_advisory(name, pinned[name], number, told.get(number, {})) for name, number in numbers]


def _advisory(name: str, version: str, number: str, told: dict[str, Any]) -> Advisory:
    mended = [
        event["fixed"]
        for affected in told.get("affected", ())
        if canonical(affected.get("package", {}).get("name", "")) == name
        for span in affected.get("ranges", ())
        if span.get("type") == "ECOSYSTEM"
        for event in span.get("events", ())
        if "fixed" in event
    ]
    return Advisory(number, name, version, " ".join(told.get("summary", "").split()), ", ".join(dict.fromkeys(mended)))


def _asked(address: str, body: object = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            answer = json.load(response)
    except (OSError, ValueError) as error:  # No network, a refusal, an answer that is none.
        raise Unasked(f"{type(error).__name__}: {error}") from error
    if not isinstance(answer, dict):
        raise Unasked("its answer is no object")
    return answer


def main(*, database: str = OSV) -> int:
    """Ask, tell, and say by the status whether something is to be done."""
    say = print
    pinned = {name: version for path in FILES for name, version in pins(path).items()}
    try:
        found = known(pinned, database=database)
    except Unasked as reason:
        say(f"Audit of {len(pinned)} packages skipped: the advisory database cannot be asked ({reason}).", flush=True)
        return 1 if machine.required("advisories") else 0
    for advisory in found:
        say(str(advisory))
    say(f"{len(pinned)} packages asked for, {len(found)} advisories, {len(ACCEPTED)} accepted.", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
