"""The whole proof: what is played for which part, and the rows in their order."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from negotiation_site.economics import bilateral, catalogues, identities, ladders, public_data
from negotiation_site.economics.playing import Job, Sums, play_all
from negotiation_site.economics.rows import Row, Scale

Jobs: TypeAlias = Callable[[Scale], Mapping[str, Job]]
Rows: TypeAlias = Callable[[Mapping[str, Sums], Scale], Iterator[Row]]

PARTS: Mapping[str, tuple[Jobs, Rows]] = {
    "bilateral": (bilateral.jobs, bilateral.rows),
    "ladders": (ladders.jobs, ladders.rows),
    "catalogues": (catalogues.jobs, catalogues.rows),
    "identities": (identities.jobs, identities.rows),
}
PUBLIC_DATA = "public-data"
PART_NAMES = (*PARTS, PUBLIC_DATA)


@dataclass(frozen=True)
class Proof:
    """What was proved and what could not be."""

    rows: list[Row]
    left_out: list[str]
    """Names of the rows whose data is not there."""

    @property
    def failed(self) -> list[Row]:
        """Rows that did not come out."""
        return [row for row in self.rows if not row.ok]


def prove(*, scale: Scale, workers: int, data: Path | None, parts: tuple[str, ...] = PART_NAMES) -> Proof:
    """Play and compute every row of `parts`; `data` is the folder of the public data."""
    chosen = {name: PARTS[name] for name in PARTS if name in parts}
    left_out: list[str] = []
    if PUBLIC_DATA in parts:
        pool = public_data.catalogue(data)
        if pool is None:
            left_out = public_data.names()
        else:
            chosen[PUBLIC_DATA] = (
                lambda scale: public_data.jobs(scale, pool),
                lambda played, scale: public_data.rows(played, scale, pool),
            )
    jobs = {f"{name}: {key}": job for name, (asked, _) in chosen.items() for key, job in asked(scale).items()}
    played = play_all(jobs, workers=workers)
    rows: list[Row] = []
    for name, (_, told) in chosen.items():
        own = {key.removeprefix(f"{name}: "): sums for key, sums in played.items() if key.startswith(f"{name}: ")}
        rows += told(own, scale)
    return Proof(rows, left_out)
