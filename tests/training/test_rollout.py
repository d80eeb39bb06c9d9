"""TRL against the oracle. If these fail, what we train is not what we say we train."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from markets.engine.protocol import MoveRefused
from markets.engine.seeds import derive_seed
from tests.training import reference_loop, tiny
from training import model as models
from training import rollout
from training import tokenizer as words
from training.config import RunConfig
from training.environment import Episode, draw_table


@pytest.fixture(scope="module")
def taught() -> tuple[Any, Any]:
    torch.set_num_threads(1)
    return tiny.taught()


@pytest.fixture(autouse=True)
def few_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches here are cut up too, as large ones are in a run."""
    monkeypatch.setattr(rollout, "ROWS_SCORED_TOGETHER", 3)


def settings(run: RunConfig) -> reference_loop.Settings:
    steps = run.grpo.rollouts * run.grpo.updates
    return reference_loop.Settings(
        group=run.grpo.group,
        clip=run.grpo.clip,
        entropy_bonus=run.grpo.entropy_bonus,
        entropy_end=run.grpo.entropy_until * steps,
        learning_rate=run.grpo.learning_rate,
        final_learning_rate=run.grpo.final_learning_rate,
        steps=steps,
        per_turn=run.grpo.turn_baseline,
    )


def reference_episodes(trainer: rollout.EpisodeTrainer) -> list[reference_loop.Played]:
    rollouts = trainer.rollout_func
    return [
        reference_loop.Played(t.prompt_ids, t.completion_ids, t.mask, t.turns, t.episode.reward(rollouts._reward))
        for t in rollouts.latest
    ]


def drawn_from(trainer: rollout.EpisodeTrainer, run: RunConfig) -> list[list[list[int] | None]]:
    """What each word of a limited rollout was drawn from, told by playing the games again."""
    codec, found = trainer.rollout_func._codec, []
    for k, t in enumerate(trainer.rollout_func.latest):
        again = Episode(draw_table(run.game, derive_seed("train", run.seed, k // run.grpo.group)))
        again.opening()
        own: list[list[int] | None] = []
        answer: list[str] = []
        for number, written, following in zip(t.completion_ids, t.mask, [*t.mask[1:], 0], strict=True):
            if not written:
                own.append(None)
                continue
            own.append(codec.ids(again.allowed(answer)) or [codec.end])
            answer += codec.words([number])
            if not following:
                again.act(answer[:-1])
                answer = []
        found.append(own)
    return found


def first_batch(trainer: rollout.EpisodeTrainer) -> dict[str, torch.Tensor]:
    """What the trainer makes of its first rollout, as `_compute_loss` takes it."""
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    return trainer._generate_and_score_completions(next(iter(trainer.get_train_dataloader())))


@pytest.mark.parametrize("turn_baseline", [True, False])
@pytest.mark.parametrize(("entropy_bonus", "limited"), [(0.05, False), (0.0, False), (0.05, True)])
def test_trl_and_the_plain_loop_agree_on_loss_and_gradient(
    tmp_path: Path, taught: tuple[Any, Any], turn_baseline: bool, entropy_bonus: float, limited: bool
) -> None:
    run = tiny.config(turn_baseline=turn_baseline, entropy_bonus=entropy_bonus)
    if limited:
        run = msgspec.structs.replace(run, game=msgspec.structs.replace(run.game, limited=True))
    model, other = copy.deepcopy(taught[0]), copy.deepcopy(taught[0])
    trainer = tiny.trainer(tmp_path, run, model, taught[1])
    batch = first_batch(trainer)
    played = reference_episodes(trainer)
    if limited:
        played = [replace(each, allowed=own) for each, own in zip(played, drawn_from(trainer, run), strict=True)]
    assert len({episode.reward for episode in played}) > 2
    with torch.no_grad():
        old = [reference_loop.score(other, episode)[0] for episode in played]
        for m in (model, other):  # Off the policy that played, so that ratios and clipping count.
            torch.manual_seed(7)
            for weight in m.parameters():
                weight += 0.05 * torch.randn_like(weight)

    loss = trainer._compute_loss(model, batch)
    loss.backward()
    expected = reference_loop.loss(other, played, old, settings(run), step=0)
    expected.backward()

    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    clipped = trainer._metrics["train"]["clip_ratio/region_mean"][-1]
    assert 0 < clipped < 1
    for (name, ours), theirs in zip(model.named_parameters(), other.parameters(), strict=True):
        assert torch.allclose(ours.grad, theirs.grad, atol=2e-6), name
    assert max(weight.grad.abs().max() for weight in other.parameters()) > 1e-3


def test_whole_updates_leave_the_same_weights_as_the_plain_loop(tmp_path: Path, taught: tuple[Any, Any]) -> None:
    run = tiny.config(rollouts=3)
    model, other = copy.deepcopy(taught[0]), copy.deepcopy(taught[0])
    trainer = tiny.trainer(tmp_path, run, model, taught[1])
    rollouts = []
    play = trainer.rollout_func

    def recorded(prompts: list[str], of: Any) -> dict[str, list]:
        out = play(prompts, of)
        rollouts.append(reference_episodes_of(play))
        return out

    trainer.rollout_func = recorded
    trainer.train()
    losses = reference_loop.train(other, rollouts, settings(run), updates=run.grpo.updates)
    assert len(losses) == 6
    moved = max((a - b).abs().max().item() for a, b in zip(other.parameters(), taught[0].parameters(), strict=True))
    assert moved > 5e-3
    for (name, ours), theirs in zip(model.named_parameters(), other.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=2e-4), name


def reference_episodes_of(play: Any) -> list[reference_loop.Played]:
    return [
        reference_loop.Played(t.prompt_ids, t.completion_ids, t.mask, t.turns, t.episode.reward(play._reward))
        for t in play.latest
    ]


def test_nothing_that_the_table_wrote_or_that_pads_a_row_pulls_on_the_weights(
    tmp_path: Path, taught: tuple[Any, Any]
) -> None:
    model = copy.deepcopy(taught[0])
    trainer = tiny.trainer(tmp_path, tiny.config(), model, taught[1])
    batch = first_batch(trainer)
    asked: list[torch.Tensor] = []
    scored = trainer._get_per_token_logps_and_entropies

    def kept(*arguments: Any, **keywords: Any) -> tuple:
        logprobs, entropies, auxiliary = scored(*arguments, **keywords)
        asked.extend(x.retain_grad() or x for x in (logprobs, entropies))
        return logprobs, entropies, auxiliary

    trainer._get_per_token_logps_and_entropies = kept
    trainer._compute_loss(model, batch).backward()
    own = (batch["completion_mask"] * batch["tool_mask"]).bool()
    assert own.any()
    assert (~own).any()
    for tensor in asked:
        assert tensor.grad[~own].abs().max() == 0
        assert tensor.grad[own].abs().max() > 0


def test_the_stop_token_of_every_answer_is_trained_and_ids_are_those_that_were_sampled(
    tmp_path: Path, taught: tuple[Any, Any]
) -> None:
    trainer = tiny.trainer(tmp_path, tiny.config(), copy.deepcopy(taught[0]), taught[1])
    batch = first_batch(trainer)
    end = taught[1].eos_token_id
    stops = 0
    for row, trajectory in enumerate(trainer.rollout_func.latest):
        size = len(trajectory.completion_ids)
        assert batch["completion_ids"][row, :size].tolist() == trajectory.completion_ids
        assert batch["tool_mask"][row, :size].tolist() == trajectory.mask
        stops += sum(n == end and m == 1 for n, m in zip(trajectory.completion_ids, trajectory.mask, strict=True))
    assert stops > 0


def test_where_answers_are_limited_a_novice_writes_none_that_cannot_be_read_or_loses_money(tmp_path: Path) -> None:
    run = tiny.config(games=4)
    run = msgspec.structs.replace(run, game=msgspec.structs.replace(run.game, limited=True, costs=(40.0,)))
    tokenizer = words.build()
    novice = models.build(tiny.MODEL, tokenizer, seed=1)
    trainer = tiny.trainer(tmp_path, run, novice, tokenizer)
    batch = first_batch(trainer)
    assert not any(isinstance(e.event, MoveRefused) for t in trainer.rollout_func.latest for e in t.episode.log)
    assert min(trainer.rollout_func.rewards) >= 0
    gap = (batch["old_per_token_logps"] - batch["sampling_per_token_logps"]) * batch["tool_mask"]
    assert gap.abs().max() < 1e-5


def test_what_was_sampled_is_scored_alike_with_and_without_cache_and_padding(
    tmp_path: Path, taught: tuple[Any, Any]
) -> None:
    trainer = tiny.trainer(tmp_path, tiny.config(games=4), copy.deepcopy(taught[0]), taught[1])
    batch = first_batch(trainer)
    gap = (batch["old_per_token_logps"] - batch["sampling_per_token_logps"]) * batch["tool_mask"]
    assert gap.abs().max() < 1e-5
    lengths = {len(t.completion_ids) for t in trainer.rollout_func.latest}
    assert len(lengths) > 1


def test_a_group_shares_its_game_and_its_opponents(tmp_path: Path, taught: tuple[Any, Any]) -> None:
    trainer = tiny.trainer(tmp_path, tiny.config(), copy.deepcopy(taught[0]), taught[1])
    first_batch(trainer)
    scenarios = [t.episode.scenario for t in trainer.rollout_func.latest]
    assert all(scenario is scenarios[0] for scenario in scenarios[:4])
    assert all(scenario is scenarios[4] for scenario in scenarios[4:])
    assert scenarios[0].buyer_values_cents != scenarios[4].buyer_values_cents


def test_a_turns_baseline_is_taken_over_those_who_still_had_the_turn() -> None:
    rows = rollout.turn_advantages([1.0, 0.0, 0.5], [[0, 0], [0, -1, 1], [0, -1, 1, -1, 2]], group=3, per_turn=True)
    assert rows == [[0.5, 0.5], [-0.5, 0.0, -0.25], [0.0, 0.0, 0.25, 0.0, 0.0]]
    flat = rollout.turn_advantages([1.0, 0.0], [[0], [0, -1, 1]], group=2, per_turn=False)
    assert flat == [[0.5], [-0.5, 0.0, -0.5]]


def losses(trainer: rollout.EpisodeTrainer) -> list[tuple[int, float, float]]:
    return [(line["step"], line["reward"], line["entropy"]) for line in trainer.state.log_history if "reward" in line]


def test_the_same_seed_makes_the_same_first_ten_steps(tmp_path: Path, taught: tuple[Any, Any]) -> None:
    run = tiny.config(rollouts=5)
    trainers = []
    for name in ("a", "b"):
        trainer = tiny.trainer(tmp_path / name, run, copy.deepcopy(taught[0]), taught[1])
        trainer.train()
        trainers.append(trainer)
    assert trainers[0].state.global_step == 10
    assert losses(trainers[0]) == losses(trainers[1])
    for ours, theirs in zip(trainers[0].model.parameters(), trainers[1].model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_resumed_run_takes_the_step_that_would_have_come_next(tmp_path: Path, taught: tuple[Any, Any]) -> None:
    run = tiny.config(rollouts=4)
    unbroken = tiny.trainer(tmp_path, run, copy.deepcopy(taught[0]), taught[1])
    unbroken.train()
    halfway = tmp_path / "grpo-trainer" / "checkpoint-6"
    assert halfway.is_dir()
    resumed = tiny.trainer(tmp_path, run, copy.deepcopy(taught[0]), taught[1])
    resumed.train(resume_from_checkpoint=str(halfway))
    assert resumed.state.global_step == 8
    assert losses(resumed)[-1] == losses(unbroken)[-1]
    for ours, theirs in zip(resumed.model.parameters(), unbroken.model.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-7)


def test_rate_and_bonus_fall_and_start_again_at_half() -> None:
    run = tiny.config(
        rollouts=30, restarts=(10,), learning_rate=1e-3, final_learning_rate=1e-4, entropy_bonus=0.02, entropy_until=0.5
    )
    rates = [rollout.learning_rate(run, step) for step in range(60)]
    bonuses = [rollout.entropy_coefficient(run, step) for step in range(60)]
    assert (rates[0], rates[20]) == (1e-3, 5e-4)
    assert rates[10] == pytest.approx(5.5e-4)
    assert 1e-4 < rates[59] < rates[19] < 1.5e-4
    assert (bonuses[0], bonuses[10], bonuses[19], bonuses[20], bonuses[40]) == (0.02, 0.0, 0.0, 0.01, 0.0)
    assert sorted(rates[20:], reverse=True) == rates[20:]


def test_the_trainer_follows_the_rate_of_the_run(tmp_path: Path, taught: tuple[Any, Any]) -> None:
    run = tiny.config(rollouts=4, restarts=(2,))
    trainer = tiny.trainer(tmp_path, run, copy.deepcopy(taught[0]), taught[1])
    trainer.train()
    logged = [line["learning_rate"] for line in trainer.state.log_history if "reward" in line]
    assert logged == [pytest.approx(rollout.learning_rate(run, step)) for step in (1, 3, 5, 7)]
