"""What lies beside the data of an export: README with a head for `datasets`, dictionary of fields, manifest.

Contract: nothing here depends on the time of day, so the same data gives the same bytes. A split without a
row is not declared, because `datasets` refuses to load one; its file is there, empty.
"""

from typing import Any

import msgspec

from markets.export_card import NOTHING, Described, head
from markets.export_tables import EPISODES, EVENTS, Column
from negotiation_site.exports.asked import Asked
from training.rows import Field

CREATIVE_COMMONS = "https://creativecommons.org/licenses/by/4.0/"
LICENCES = {
    "public": "Everybody in these games gave them as open data (CC BY 4.0); simulations are free of rights.",
    "research": "For research by those who run the server; not to be passed on. It holds games that are not open data.",
}


def readme(
    *,
    asked: Asked,
    protocol: str,
    tables: dict[str, dict[str, int]],
    fields: tuple[Field, ...],
    manifest: dict[str, Any],
) -> str:
    """The data card. `tables` has per table the rows of each file, `fields` the columns of a training format."""
    top = head(
        licence="cc-by-4.0" if asked.consent == "public" else "other",
        tables=tables,
        features=_features(asked, fields),
    )
    rows = "\n".join(f"| `{path}` | {count} |" for files in tables.values() for path, count in files.items())
    columns = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in dictionary(asked, fields))
    asked_for = "\n".join(f"- `{name}`: {value}" for name, value in sorted(msgspec.to_builtins(asked).items()) if value)
    learned = (
        f"\nThe learner is the {asked.side.value}; the protocol is `{protocol}`, with the prompts that a model at the "
        "table is given. Only its moves stand under the role `assistant`: train with `assistant_only_loss=True`, or on "
        "completions alone. A wait that lies behind a move is seen as the table stood when the move arrived.\n"
        if asked.is_training
        else ""
    )
    return "\n".join(
        (
            *top,
            "",
            f"# Negotiations from Parley, `{asked.format}`",
            "",
            f"{manifest['episodes']} episodes, {manifest['rows']} rows, schema version {manifest['schema_version']}.",
            learned,
            *(() if manifest["rows"] else (NOTHING, "")),
            "## Licence and consent",
            "",
            f"Scope `{asked.consent}`. {LICENCES[asked.consent]}",
            "People are pseudonyms that hold within this export alone. No demographics are in it.",
            "Words are as they were typed."
            if asked.keep_text_as_is
            else "E-mail addresses, links and telephone numbers in words are masked as [email], [link] and [phone].",
            "",
            "## What was asked for",
            "",
            asked_for,
            "",
            "## Files",
            "",
            "| file | rows |",
            "|---|---|",
            rows,
            "",
            "Splits are by scenario (80, 10 and 10 %): no scenario and no participant is in two. A split without a row "
            "is not declared above.",
            "",
            "## Fields",
            "",
            "| field | meaning |",
            "|---|---|",
            columns,
            "",
        )
    )


def _features(asked: Asked, fields: tuple[Field, ...]) -> list[dict[str, Any]]:
    """The columns with their types, for formats whose rows do not tell them where there are none."""
    if asked.format == "jsonl":
        return [{"name": name, "dtype": dtype} for name, dtype, _meaning in RECORD]
    return [{"name": field.name, **field.feature} for field in fields]


def dictionary(asked: Asked, fields: tuple[Field, ...]) -> list[tuple[str, str]]:
    """Name and meaning of every field."""
    if fields:
        return [(field.name, field.meaning) for field in fields]
    if asked.format == "jsonl":
        return [(name, meaning) for name, _dtype, meaning in RECORD]
    columns: list[Column] = [*EPISODES, *EVENTS]
    return [(column.name, column.meaning) for column in columns]


RECORD = (
    ("schema_version", "string", "version of this table"),
    ("episode", "string", "public identifier"),
    ("source", "string", "live or simulated"),
    ("market", "string", "slug of the market that drew the scenario"),
    ("market_version", "int64", "version of that market"),
    ("protocol_version", "string", "version of events and actions"),
    ("ended_at", "string", "when it ended"),
    ("consent_scope", "string", "whom the people in it let use it"),
    ("record_sha256", "string", "hash of the economic record"),
    ("scenario", "json", "everything settled before the first move, private values included"),
    ("seats", "json", "who sat where: party, role, kind, agent, surplus, participant (a pseudonym)"),
    ("events", "json", "the economic log"),
    ("texts", "json", "words by event number; thoughts where asked for"),
    ("outcome", "json", "deals, surpluses, messages, violations"),
    ("times", "json", "per event n: server_time (wall clock, live rooms) and think_ms"),
    ("split", "string", "train, validation or test"),
)
"""Name, type and meaning of the fields of a record."""


def described(asked: Asked, fields: tuple[Field, ...]) -> dict[str, list[Described]]:
    """The columns of every table, as Croissant tells of them."""
    if fields:
        return {"default": [Described(each.name, each.feature.get("dtype", "json"), each.meaning) for each in fields]}
    if asked.format == "jsonl":
        return {"default": [Described(*each) for each in RECORD]}
    tables = {"episodes": EPISODES, "events": EVENTS}
    return {name: [Described(*column) for column in columns] for name, columns in tables.items()}
