"""What is installed is what is written down, and a weakness that is known of it is told."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import metadata

import pytest
from packaging.requirements import Requirement

from tests import audit

PINNED = {path.name: audit.pins(path) for path in audit.FILES}
EVERY = {name: version for pins in PINNED.values() for name, version in pins.items()}


# --- The pins -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["django", "django>=5", "django==5.*", "git+https://example.org/x.git", "x @ https://example.org/x.whl", "-e .",
     "https://example.org/x.whl", "--index-url https://example.org", "django==5.2\ndjango==5.2"],
)  # fmt: skip
def test_a_version_that_floats_or_comes_from_elsewhere_is_refused(line, tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text(line + "\n")
    with pytest.raises(audit.Unpinned):
        audit.pins(path)


def test_no_package_has_two_versions():
    held: dict[str, tuple[str, str]] = {}
    for file, pins in PINNED.items():
        for name, version in pins.items():
            other, there = held.setdefault(name, (version, file))
            assert other == version, f"{name} is {other} in {there} and {version} in {file}"


def test_whatever_the_pinned_packages_pull_in_is_pinned_too():
    """Two installs a year apart are the same; what the machine does not need has no version here."""
    lacking = set()
    for name in EVERY.keys() - PINNED["requirements-models.txt"].keys():  # those are installed without dependencies
        try:
            wanted = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # Of another platform, or of a part that is not installed here.
        for requirement in map(Requirement, wanted):
            needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if needed and audit.canonical(requirement.name) not in EVERY:
                lacking.add(f"{requirement.name}, for {name}")
    assert lacking == set(), "pin these in constraints.txt"


def test_what_is_installed_here_has_the_version_that_is_written_down():
    other = {}
    for name, version in EVERY.items():
        try:
            here = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        if here.split("+")[0] != version:
            other[name] = f"{here} instead of {version}"
    assert other == {}


# --- What is known of them ----------------------------------------------------------------------------


@pytest.fixture
def database() -> Iterator[tuple[str, dict[str, object]]]:
    """A server in place of the advisory database, and what it answers by address."""
    answers: dict[str, object] = {}

    class Answering(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = answers.get(self.path)
            self.send_response(500 if answer is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_GET = do_POST = answer  # noqa: N815  (what the standard library calls them)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    server.shutdown()
    server.server_close()


def found_in(answers: dict[str, object], package: str) -> None:
    answers["/querybatch"] = {
        "results": [{"vulns": [{"id": "GHSA-1"}]} if name == package else {} for name in sorted(EVERY)]
    }
    answers["/vulns/GHSA-1"] = {
        "summary": "Anybody may\nread everything",
        "affected": [
            {
                "package": {"name": package.title()},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "5.2.20"}]}],
            }
        ],
    }


def test_a_weakness_is_told_with_the_version_that_mends_it_and_fails(database, capsys):
    address, answers = database
    found_in(answers, "django")
    assert audit.main(database=address) == 1
    told = capsys.readouterr().out
    assert f"django {EVERY['django']}: GHSA-1, mended in 5.2.20. Anybody may read everything" in told


def test_none_known_or_one_accepted_passes(database, capsys, monkeypatch):
    address, answers = database
    answers["/querybatch"] = {"results": [{} for _ in EVERY]}
    assert audit.main(database=address) == 0
    found_in(answers, "django")
    monkeypatch.setattr(audit, "ACCEPTED", {"GHSA-1": "We do not use that part."})
    assert audit.main(database=address) == 0
    assert f"{len(EVERY)} packages asked for, 0 advisories, 1 accepted." in capsys.readouterr().out


@pytest.mark.parametrize("answer", [None, [], {"results": []}])
def test_a_database_that_does_not_answer_is_a_skip_with_the_reason_unless_required(
    answer, database, capsys, monkeypatch
):
    address, answers = database
    answers["/querybatch"] = answer
    monkeypatch.delenv("PARLEY_REQUIRE", raising=False)
    assert audit.main(database=address) == 0
    assert "skipped: the advisory database cannot be asked (" in capsys.readouterr().out
    monkeypatch.setenv("PARLEY_REQUIRE", "advisories")
    assert audit.main(database=address) == 1
