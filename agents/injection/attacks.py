"""Attacks as data: what is said, where, and what it is after.

The set that comes with the code is `attacks.jsonl`, one JSON object a line; own sets have the same
fields. Here: reading and checking them, and their words for one table. Not here: saying them.

Contract: a set's digest is of everything in it, whatever the order of its lines; a changed set that
comes with the code has a new `VERSION` (a test holds the two together). Words are filled in first
and encoded afterwards. Pure.
"""

import base64
import codecs
import hashlib
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from markets.engine.protocol import MAX_TALK_CHARS, Role, is_text

VERSION = "1"
SHIPPED = Path(__file__).with_name("attacks.jsonl")
MAX_TEXT_CHARS = 600
"""Characters of a template: encoded and filled in, it still is a message that a room takes."""
MAX_ATTACKS = 2_000
MAX_FILE_BYTES = 4_000_000


class Aim(StrEnum):
    """What an attack is after."""

    DEAL_AT_A_LOSS = "deal_at_a_loss"
    """Either of the next two, by the seat."""
    SELL_BELOW_COST = "sell_below_cost"
    """Said to sellers alone."""
    BUY_ABOVE_VALUE = "buy_above_value"
    """Said to buyers alone."""
    REVEAL_VALUE = "reveal_value"
    CHANGE_ROLE = "change_role"


class Place(StrEnum):
    """Where the words stand."""

    TALK = "talk"
    PRODUCT_TEXT = "product_text"
    PRODUCT_TITLE = "product_title"


class Encoding(StrEnum):
    """How the words are written."""

    PLAIN = "plain"
    BASE64 = "base64"
    ROT13 = "rot13"
    ZERO_WIDTH = "zero_width"
    """An invisible character between any two."""
    FULL_WIDTH = "full_width"


class Attack(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"kind": "class"}):
    """One attack."""

    id: str
    kind: str
    """`class` in a file: what breaches are counted by."""
    aim: Aim
    text: str
    """Template: `{price}`, `{product}`, `{role}`, `{other}`, `{verb}` and `{worth}` are filled in."""
    place: Place = Place.TALK
    encoding: Encoding = Encoding.PLAIN
    language: str = "en"

    def is_for(self, role: Role) -> bool:
        """Whether it is said to a party of this role."""
        only = {Aim.SELL_BELOW_COST: Role.SELLER, Aim.BUY_ABOVE_VALUE: Role.BUYER}.get(self.aim)
        return only in (None, role)

    def words(self, *, role: Role, price: str, product: str) -> str:
        """What is said to a party of this role about an offer of `price`."""
        seller = role is Role.SELLER
        fields = {
            "price": price,
            "product": product,
            "role": role.value,
            "other": (Role.BUYER if seller else Role.SELLER).value,
            "verb": "sell" if seller else "buy",
            "worth": "cost" if seller else "value",
        }
        return _encoded(_FIELD.sub(lambda found: fields[found[1]], self.text), self.encoding)


class AttackSet(msgspec.Struct, frozen=True, kw_only=True):
    """Attacks with a name and a version."""

    name: str
    version: str
    digest: str
    attacks: tuple[Attack, ...]


class AttackError(ValueError):
    """Attacks that cannot be used; the message is a sentence."""


FIELDS = ("price", "product", "role", "other", "verb", "worth")
_FIELD = re.compile(r"\{([a-z_]+)\}")
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_CLASS = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
_ZERO_WIDTH_SPACE = "\N{ZERO WIDTH SPACE}"
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


def _encoded(words: str, encoding: Encoding) -> str:
    match encoding:
        case Encoding.BASE64:
            return base64.b64encode(words.encode()).decode()
        case Encoding.ROT13:
            return codecs.encode(words, "rot13")
        case Encoding.ZERO_WIDTH:
            return _ZERO_WIDTH_SPACE.join(words)
        case Encoding.FULL_WIDTH:
            return words.translate(_FULL_WIDTH)
        case _:
            return words


def shipped() -> AttackSet:
    """The set that comes with the code."""
    attacks = parse(SHIPPED.read_text("utf-8"), source=SHIPPED.name)
    return AttackSet(name="parley", version=VERSION, digest=digest(attacks), attacks=attacks)


def read(path: Path) -> AttackSet:
    """The set in a file of one's own; its version is its digest. Raises `AttackError`."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise AttackError(f"The file {path} is larger than {MAX_FILE_BYTES:,} bytes.")
        text = path.read_text("utf-8")
    except OSError as error:
        raise AttackError(f"The file {path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise AttackError(f"The file {path} is not UTF-8 text.") from error
    attacks = parse(text, source=str(path))
    return AttackSet(name=path.name, version=digest(attacks), digest=digest(attacks), attacks=attacks)


def parse(text: str, *, source: str) -> tuple[Attack, ...]:
    """The attacks of JSON lines; empty lines are passed over. Raises `AttackError` with the line."""
    found: dict[str, Attack] = {}
    for number, line in enumerate(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            attack = msgspec.json.decode(line, type=Attack)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise AttackError(f"Line {number} of {source} is no attack: {error}.") from error
        fault = _fault(attack)
        if not fault and attack.id in found:
            fault = f"the id {attack.id!r} is there already"
        if fault:
            raise AttackError(f"Line {number} of {source} is no attack: {fault}.")
        found[attack.id] = attack
    if not found:
        raise AttackError(f"There is no attack in {source}.")
    if len(found) > MAX_ATTACKS:
        raise AttackError(f"There are {len(found):,} attacks in {source}; {MAX_ATTACKS:,} are the most.")
    return tuple(found.values())


def _fault(attack: Attack) -> str:
    """Why an attack cannot be used; empty where it can."""
    if not _ID.fullmatch(attack.id):
        return f"an id is up to 60 small letters, digits and hyphens, not {attack.id[:80]!r}"
    if not _CLASS.fullmatch(attack.kind):
        return f"a class is up to 40 small letters, digits and underscores, not {attack.kind[:80]!r}"
    if not _LANGUAGE.fullmatch(attack.language):
        return f"a language is a code such as en or pt-BR, not {attack.language[:40]!r}"
    if not attack.text.strip():
        return "its text is empty"
    if len(attack.text) > MAX_TEXT_CHARS:
        return f"its text has {len(attack.text):,} characters; {MAX_TEXT_CHARS} are the most"
    if not is_text(attack.text):
        return "its text holds half a character or a NUL"
    for name in _FIELD.findall(attack.text):
        if name not in FIELDS:
            return f"{{{name}}} is not filled in; there are {', '.join(f'{{{known}}}' for known in FIELDS)}"
    longest = attack.words(role=Role.SELLER, price="$999,999,999.99", product="p" * 60)
    if len(longest) > MAX_TALK_CHARS:
        return f"filled in it has more than the {MAX_TALK_CHARS:,} characters of a message"
    return ""


def digest(attacks: tuple[Attack, ...]) -> str:
    """Of everything in the attacks, in any order."""
    lines: Mapping[str, bytes] = {attack.id: msgspec.json.encode(attack) for attack in attacks}
    return hashlib.sha256(b"\n".join(lines[name] for name in sorted(lines))).hexdigest()[:12]
