"""A game, a model and a run that fit into a second."""

from pathlib import Path
from typing import Any

from training import model as models
from training import tokenizer as words
from training.config import Evaluation, Game, Grpo, Model, RunConfig, Sft
from training.demonstrations import demonstrate
from training.grpo import build_trainer
from training.rollout import EpisodeTrainer

GAME = Game(sizes=((2, 3),), costs=(0.0, 20.0))
MODEL = Model(hidden=32, layers=2, heads=2, feed_forward=48)


def config(**changes: Any) -> RunConfig:
    """A run of a few small rollouts; `changes` are fields of its GRPO stage."""
    grpo = {"rollouts": 6, "games": 2, "group": 4, "save_every": 1, "learning_rate": 3e-3, **changes}
    return RunConfig(
        name="tiny", seed=3, game=GAME, model=MODEL, sft=Sft(), grpo=Grpo(**grpo), evaluation=Evaluation(every=0)
    )


def taught(seed: int = 0) -> tuple[Any, Any]:
    """(model, tokenizer): random weights that were shown some dialogues, so that answers can be read."""
    import torch

    tokenizer = words.build()
    model = models.build(MODEL, tokenizer, seed=seed)
    codec = words.Codec(tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    rows = [codec.whole(d.messages) for d in demonstrate(GAME, episodes=48, seed=seed)]
    width = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([own + [codec.pad] * (width - len(own)) for own, _ in rows])
    labels = torch.tensor(
        [[n if m else -100 for n, m in zip(own, mask, strict=True)] + [-100] * (width - len(own)) for own, mask in rows]
    )
    for _ in range(40):
        optimizer.zero_grad()
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
    return model, tokenizer


def trainer(folder: Path, run: RunConfig, model: Any, tokenizer: Any) -> EpisodeTrainer:
    """TRL's trainer as a run uses it."""
    return build_trainer(run, folder, model, tokenizer)[0]
