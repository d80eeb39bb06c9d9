"""Several questions and answers in one sequence, what they have in common only once.

The turns of one game ask the same model almost the same: rules, product and the past up to a point are
word for word those of the turn before. Here rows become a forest of tokens: every token knows the one
before it in its row, sees its own row's tokens and no others, and stands at its own row's position. So
the scores are those of the rows one by one, at a fraction of the work.

Contract: pure and exact: a test compares it with rows scored alone.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from training.language.base import Row


class Packed(NamedTuple):
    """A forest of tokens, as a model is fed it."""

    input_ids: torch.Tensor
    """(1, L)"""
    position_ids: torch.Tensor
    """(1, L)"""
    attention_mask: torch.Tensor
    """(1, 1, L, L): whether a token sees another."""
    scored_at: torch.Tensor
    """(N,): the place whose scores tell of each learned token: that of the token before it."""
    labels: torch.Tensor
    """(N,): the learned tokens."""
    rows: torch.Tensor
    """(N,): the row that each belongs to."""


def pack(rows: Sequence[Row]) -> Packed:
    """The rows in one sequence."""
    ids: list[int] = []
    parents: list[int] = []
    positions: list[int] = []
    children: dict[tuple[int, int], int] = {}
    scored_at: list[int] = []
    labels: list[int] = []
    owners: list[int] = []
    for number, row in enumerate(rows):
        at = -1
        for k, token in enumerate((*row.prompt, *row.answer)):
            if k >= len(row.prompt):
                scored_at.append(at)
                labels.append(token)
                owners.append(number)
            following = children.get((at, token))
            if following is None:
                following = len(ids)
                children[at, token] = following
                ids.append(token)
                parents.append(at)
                positions.append(k)
            at = following
    sees = torch.zeros(len(ids), len(ids), dtype=torch.bool)
    for place, parent in enumerate(parents):
        if parent >= 0:
            sees[place] = sees[parent]
        sees[place, place] = True
    return Packed(
        torch.tensor([ids]),
        torch.tensor([positions]),
        sees[None, None],
        torch.tensor(scored_at),
        torch.tensor(labels),
        torch.tensor(owners),
    )


def scores(model: Any, packed: dict[str, Any] | Packed) -> torch.Tensor:
    """Scores of every word at the place of each learned token, (N, V), in float32."""
    batch = packed._asdict() if isinstance(packed, Packed) else packed
    output = model(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        position_ids=batch["position_ids"],
        use_cache=False,
        logits_to_keep=batch["scored_at"],
    )
    return output.logits[0].float()
