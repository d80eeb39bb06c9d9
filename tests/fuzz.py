"""Throws strange input at every address and every frame, and counts what the server could not bear.

    python -m tests.fuzz --inputs 100000 --seed 1 --json      (or: make fuzz)

Here: a seeded stream of inputs for a small world (`fuzz_world`), and the count of answers. An input is a frame for a
seat, a form, a query or a path; each is undone afterwards, cookies too, so that the ten-thousandth meets the same world as
the first. Not here: whether an answer is right, which the other tests ask. A server error is an answer of 500 and above, or
an exception that reached the client. Any other answer is fine.

Frames go in as a page without a socket sends them, by the code that reads the socket's (`wire`, `room_frames`).
"""

import argparse
import json
import logging
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fuzz_world import World

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

NASTY: tuple[str, ...] = (
    "", " ", "0", "-1", "1", "2", "1e309", "-1e-9", "NaN", "Infinity", "null", "true", "on", "None", "[]", "{}", "\x00", "a\x00b",
    "\u202e\u0661\u0662", "🍋" * 40, "e\u0301" * 30, "١٢٣", "1,000.50", "1.000,50", "$12", "12.345", "9" * 400, "0" * 400 + "1",
    "x" * 5_000, "../../etc/passwd", "..%2f..", "<script>alert(1)</script>", "' OR 1=1 --", "=cmd|x", "%s%n%x", "{{7*7}}", "{% now %}",
    "2026-13-45", "2026-02-30T25:61", "1970-01-01", "9999-12-31", "-5:x", "uniform:0:1", "uniform:1:0", "bands*uniform:2:1",
    "lognormal:-1:nan", "constant:1e400", "seller", "buyer", "linear", "linear+begging", "greedy", "multi_buyer", "\ufeffx", "\r\nSet-Cookie: a=b",
    "http://169.254.169.254/latest", "file:///etc/passwd", "a@b.co", "https://x.y/z?q=1#f",
)  # fmt: skip
FRAMES: tuple[dict[str, Any], ...] = (
    {"type": "act", "client_move_id": "m", "seen": 0, "action": {"type": "say", "buyer": 1, "talk": "x"}},
    {"type": "act", "client_move_id": "m", "action": {"type": "make_offer", "buyer": 1, "product": 0, "price": "60", "talk": ""}},
    {"type": "act", "client_move_id": "m", "action": {"type": "accept_offer", "buyer": 1, "offer_id": 1}},
    {"type": "act", "client_move_id": "m", "action": {"type": "reject_offer", "buyer": 1, "offer_id": 1}},
    {"type": "act", "client_move_id": "m", "action": {"type": "wait", "buyer": 1, "for_ms": 1_000}},
    {"type": "act", "client_move_id": "m", "action": {"type": "search_price", "buyer": 1, "product": 0}},
    {"type": "act", "client_move_id": "m", "action": {"type": "leave"}},
    {"type": "preview", "id": 1, "buyer": 1, "product": 0, "price": "60"},
    {"type": "read_price", "id": 1, "buyer": 1, "text": "would you take 60?"},
    {"type": "typing", "buyer": 1},
    {"type": "resync", "after": 0},
    {"type": "ping"},
)  # fmt: skip
MOST_SHOWN = 20
TOLD_EVERY = 5_000
"""Inputs between two lines about how far it is."""
PART = 25_000
"""Inputs of one world; each part has a process, a database and a seed of its own."""


def main() -> int:
    """Run, print, and fail where the server did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="parts that run side by side")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inputs < 1 or options.processes < 1:
        parser.error("--inputs and --processes are at least 1")
    if options.part:
        sys.stdout.write(json.dumps(part(inputs=options.inputs, seed=options.seed)))
        return 0
    document = run_all(inputs=options.inputs, seed=options.seed, processes=options.processes)
    if options.json:
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
    else:
        sys.stdout.write(
            f"{document['inputs']:,} inputs in {document['seconds']:.0f} s: {document['server_errors']} server errors. "
            f"Answers: {document['by_status']}\n"
        )
        for error in document["errors"]:
            sys.stdout.write(
                f"  {error['as']} {error['method']} {error['path']}: {error['error']}\n    {error['input']}\n"
            )
    return 1 if document["server_errors"] else 0


def run_all(*, inputs: int, seed: int, processes: int) -> dict[str, Any]:
    """The parts of a run, side by side; what they throw does not depend on how many processes there are."""
    began = time.monotonic()
    parts = [(min(PART, inputs - done), seed * 1_000 + done // PART) for done in range(0, inputs, PART)]
    with ThreadPoolExecutor(processes) as pool:
        documents = list(pool.map(_part_beside, parts))
    errors = [error for document in documents for error in document["errors"]]

    def together(name: str) -> dict[str, int]:
        return dict(sorted(sum((Counter(document[name]) for document in documents), Counter()).items()))

    return {
        "inputs": inputs,
        "seed": seed,
        "by_kind": together("by_kind"),
        "by_status": together("by_status"),
        **{
            name: max(document[name] for document in documents)
            for name in ("addresses", "addresses_that_answered_with_a_page")
        },
        "server_errors": sum(document["server_errors"] for document in documents),
        "errors": errors[:MOST_SHOWN],
        "seconds": round(time.monotonic() - began, 1),
    }


def _part_beside(asked: tuple[int, int]) -> dict[str, Any]:
    """One part, in a process of its own: no memory of another's."""
    inputs, seed = asked
    argv = [sys.executable, "-m", "tests.fuzz", "--part", "--inputs", str(inputs), "--seed", str(seed)]
    ended = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
    if ended.returncode:
        raise SystemExit(f"The part with seed {seed} ended with status {ended.returncode}; what it said stands above.")
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def part(*, inputs: int, seed: int) -> dict[str, Any]:
    """One part, in a database of its own."""
    import django

    django.setup()
    from django.db import connection
    from django.test.utils import setup_test_environment

    logging.disable(logging.CRITICAL)
    setup_test_environment()
    own = connection.settings_dict["TEST"]
    own["NAME"] = f"{own['NAME'] or 'parley'}_{seed}"
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        return run(inputs=inputs, seed=seed)
    finally:
        connection.creation.destroy_test_db(own["NAME"], verbosity=0)


def run(*, inputs: int, seed: int) -> dict[str, Any]:
    """Throw `inputs` at a world of its own; deterministic in its arguments but for the time it takes."""
    from django.db import transaction

    rng = random.Random(seed)
    from tests.fuzz_world import make_world

    world = make_world()
    by_kind: Counter[str] = Counter()
    by_status: Counter[int] = Counter()
    errors: list[dict[str, str]] = []
    seen: set[str] = set()
    began = time.monotonic()
    kinds: dict[str, Callable[[random.Random, World], Thrown]] = {
        "frame": frame, "form": form, "query": query, "path": path,
    }  # fmt: skip
    for number in range(inputs):
        if number and number % TOLD_EVERY == 0:
            left_s = (time.monotonic() - began) / number * (inputs - number)
            sys.stderr.write(
                f"part {seed}: {number:,} inputs, {len(errors)} server errors; some {left_s / 60:.0f} minutes to go\n"
            )
        kind = rng.choices(tuple(kinds), weights=(5, 6, 4, 1))[0]
        by_kind[kind] += 1
        with transaction.atomic():
            thrown = kinds[kind](rng, world)
            world.undo(thrown.who)
            status, error = answered(world, thrown)
            transaction.set_rollback(True)
        world.undo(thrown.who)
        by_status[status] += 1
        if status == 200 and thrown.address:
            seen.add(thrown.address)
        if status == 405 and thrown.address:
            world.read_only.add(thrown.address)
        if status >= 500:
            errors.append(
                {
                    "as": thrown.who,
                    "method": thrown.method,
                    "path": thrown.path[:200],
                    "input": repr(thrown.body)[:400],
                    "error": error,
                }
            )
            sys.stderr.write(f"part {seed}: {errors[-1]}\n")
    return {
        "inputs": inputs,
        "seed": seed,
        "by_kind": dict(sorted(by_kind.items())),
        "by_status": {str(status): count for status, count in sorted(by_status.items())},
        "addresses": len(world.addresses),
        "addresses_that_answered_with_a_page": len(seen),
        "server_errors": len(errors),
        "errors": errors[:MOST_SHOWN],
        "seconds": round(time.monotonic() - began, 1),
    }


# --- Inputs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Thrown:
    """One input."""

    who: str
    method: str
    path: str
    body: Any = None
    kind: str = "form"
    address: str = ""
    """Name of the address."""


def answered(world: "World", thrown: Thrown) -> tuple[int, str]:
    """Status of the answer, and of a failure what it was."""
    client = world.clients[thrown.who]
    try:
        if thrown.kind == "frame":
            response = client.post(thrown.path, thrown.body, content_type="application/json")
        elif thrown.method == "POST":
            response = client.post(thrown.path, thrown.body)
        else:
            response = client.get(thrown.path, thrown.body or {})
        if response.streaming:
            b"".join(response.streaming_content)
    except Exception as error:  # noqa: BLE001  (whatever came through is what is looked for)
        return 599, f"{type(error).__name__}: {error}"[:300]
    failure = getattr(response, "exc_info", None)
    return response.status_code, f"{failure[0].__name__}: {failure[1]}"[:300] if failure else ""


def frame(rng: random.Random, world: "World") -> Thrown:
    """A frame of a page, spoilt somewhere."""
    who, address = rng.choice(world.seats)
    text = json.dumps(spoilt(rng, rng.choice(FRAMES)), ensure_ascii=rng.random() < 0.7)
    if rng.random() < 0.15:
        cut = rng.randrange(len(text) + 1)
        text = text[:cut] + rng.choice(("", "}", "[" * 500, "\\ud83d", '"', ",", "\x00")) + text[cut:]
    return Thrown(who, "POST", address, text.encode("utf-8", "surrogatepass"), "frame")


def spoilt(rng: random.Random, told: Any) -> Any:
    """The same with something changed, somewhere."""
    if isinstance(told, dict) and told and rng.random() < 0.85:
        changed = dict(told)
        key = rng.choice(sorted(changed))
        roll = rng.random()
        if roll < 0.1:
            del changed[key]
        elif roll < 0.2:
            changed[rng.choice(("thought", "by", "price_cents", "x", key.upper()))] = anything(rng)
        else:
            changed[key] = spoilt(rng, changed[key])
        return changed
    return anything(rng) if rng.random() < 0.7 else told


def anything(rng: random.Random) -> Any:
    """A value of any kind."""
    return rng.choice(
        (
            rng.choice(NASTY), rng.randint(-(2**70), 2**70), rng.randint(-3, 12), rng.random() * 10 ** rng.randint(-320, 300),
            None, True, False, [], {}, [rng.choice(NASTY)], {"type": rng.choice(NASTY)}, "\ud83d", "y" * rng.randint(1, 70_000),
        )
    )  # fmt: skip


def form(rng: random.Random, world: "World") -> Thrown:
    """A form of some address, or one that nobody made."""
    who, name, written = _somewhere(rng, world, without=world.read_only)
    names = _fields(world, who, written)
    chosen = rng.sample(names, rng.randint(0, len(names))) if names else []
    body = {name: _word(rng, world) if rng.random() < 0.9 else [_word(rng, world) for _ in range(3)] for name in chosen}
    if rng.random() < 0.2:
        body[_word(rng, world)[:60] or "x"] = _word(rng, world)
    return Thrown(who, "POST", written, body, address=name)


def query(rng: random.Random, world: "World") -> Thrown:
    """An address with strange parameters."""
    who, name, written = _somewhere(rng, world)
    names = [
        *_fields(world, who, written),
        "page",
        "q",
        "family",
        "market",
        "role",
        "kind",
        "after",
        "a",
        "b",
        "sort",
        "next",
    ]
    return Thrown(
        who, "GET", written, {rng.choice(names): _word(rng, world) for _ in range(rng.randint(0, 4))}, address=name
    )


def path(rng: random.Random, world: "World") -> Thrown:
    """An address that nobody gave out."""
    from urllib.parse import quote

    who = rng.choice(sorted(world.clients))
    parts = [
        rng.choice(("rooms", "markets", "agents", "episodes", "study", "api/v1", "runs", "exports", _word(rng, world)))
    ]
    parts += [quote(_word(rng, world)[:200], safe=rng.choice(("", "/"))) for _ in range(rng.randint(0, 3))]
    return Thrown(who, rng.choice(("GET", "POST")), "/" + "/".join(parts) + rng.choice(("", "/")), {})


def _somewhere(rng: random.Random, world: "World", *, without: Collection[str] = ()) -> tuple[str, str, str]:
    """Who knocks where: the person, the address's name, the address."""
    address = rng.choice([address for address in world.addresses if address.name not in without])
    who = rng.choice(sorted(world.clients))
    filled = {
        name: rng.choice(world.values(address, name))
        if rng.random() < 0.85
        else rng.choice((0, 7, 2**31, 2**63, 10**30))
        if name in address.numbers
        else "nobody-knows_me"
        for name in address.parameters
    }
    if rng.random() < 0.7:
        filled |= {name: value for name, value in world.owned(who, address).items() if name in filled}
    return who, address.name, address.written(filled)


def _fields(world: "World", who: str, written: str) -> list[str]:
    """Names of the fields on the page at an address, looked up once a person."""
    key = f"{who} {written}"
    if key not in world.fields:
        response = world.clients[who].get(written)
        text = b"" if response.streaming else response.content
        named = re.findall(rb'<(?:input|select|textarea|button)[^>]*\bname="([^"]+)"', text)
        world.fields[key] = sorted({name.decode() for name in named} - {"csrfmiddlewaretoken"})
    return world.fields[key]


def _word(rng: random.Random, world: "World") -> str:
    return str(rng.choice(rng.choice(list(world.known.values())))) if rng.random() < 0.2 else rng.choice(NASTY)


if __name__ == "__main__":
    sys.exit(main())
