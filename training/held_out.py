"""What a run's game is judged on that it was never trained on: the game moved onto each held-out axis.

Here: which axes a game has. Not here: the axes themselves (`markets.engine.splits`), figures on them (`training.axes`,
`training.comparison`). Pure: no Django and no torch, so that a page can say what was not measured.

Contract: an axis changes nothing but itself; where values are drawn by several laws, it is the game of the first.
"""

import msgspec

from markets.engine import splits
from markets.engine.protocol import Role
from markets.engine.scenarios import Family
from training.config import Game, RunConfig

BUYER_TYPE = "buyer-type"
"""The axis of buyers that no run meets."""


def axes(game: Game) -> dict[str, Game]:
    """The game over products moved onto each held-out axis that is about its family."""
    game = msgspec.structs.replace(game, further_values=())
    found: tuple[str, ...] = ("products", "price-decade")
    if game.family is not Family.BILATERAL:
        own = "structure-" if game.family is Family.CATALOGUE else "buyers-"
        shared = ("products", "price-decade", "lognormal", "rho-")
        bands = ("bands-",) if game.values == "bands" else ()
        found = tuple(name for name in splits.AXES if name.startswith((own, *shared, *bands)))
    moved = {name: msgspec.structs.replace(game, axis=name) for name in found if _fits(game, name)}
    if game.role is Role.SELLER:
        moved[BUYER_TYPE] = msgspec.structs.replace(game, opponents=splits.BUYER_TYPES, weights=())
    return moved


def _fits(game: Game, axis: str) -> bool:
    """Whether an axis changes no more than itself: another law of values would drop a hidden factor."""
    return "*" not in game.values or not axis.startswith(("lognormal", "rho-"))


def moved(config: RunConfig) -> dict[str, Game]:
    """The run's game moved onto each axis that it never trains on, by the axis' name.

    Games over bare values have the buyers that no run meets, and the sizes under `verify` that are not among
    their own; games over products have the axes of `markets.engine.splits`.
    """
    game = config.game
    if game.catalogue:
        return axes(game)
    found = {
        f"{BUYER_TYPE}-{slug}": msgspec.structs.replace(game, opponents=(slug,), weights=())
        for slug in splits.BUYER_TYPES
    }
    for size in dict.fromkeys(config.verify.sizes):
        if size not in game.sizes:
            found["size-{}x{}".format(*size)] = msgspec.structs.replace(game, sizes=(size,))
    return found
