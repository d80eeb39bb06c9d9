"""A typing error in a run's file must stop the run, not change it silently."""

import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from training import runs
from training.config import ConfigError, Game, load
from training.language.config import load as load_language
from training.presets import preset

GOOD = 'name = "x"\nseed = 2\n[game]\nsizes = [[4, 8]]\n'


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "run.toml"
    file.write_text(text)
    return file


def test_a_file_and_overrides_make_one_configuration(tmp_path: Path) -> None:
    config = load(written(tmp_path, GOOD), ("seed=5", "grpo.rollouts=7", "game.costs=[0.0, 10.0]", "name=other"))
    assert (config.seed, config.grpo.rollouts, config.game.costs, config.name) == (5, 7, (0.0, 10.0), "other")
    assert config.sha256 != load(written(tmp_path, GOOD)).sha256


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        (GOOD + "colour = 1\n", ()),
        (GOOD, ("grpo.rolouts=7",)),
        (GOOD, ("grpo.rollouts=many",)),
        (GOOD, ("grpo.rollouts",)),
        (GOOD, ("grpo.rollouts.many=3",)),
        (GOOD, ("grpo.games=" + "9" * 5_000,)),
        ("name = 3\n", ()),
        ("name = ", ()),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, text: str, overrides: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError):
        load(written(tmp_path, text), overrides)


@pytest.mark.parametrize(
    "change",
    [
        "grpo.games=-5",
        "grpo.games=0",
        "grpo.games=99999999999999999999",
        "grpo.group=1",
        "grpo.save_every=0",
        "grpo.learning_rate=nan",
        "sft.learning_rate=-inf",
        "model.heads=5",
        "game.sizes=[[4, -8]]",
    ],
)
def test_a_number_that_no_run_can_have_is_told_before_an_hour_is_spent_on_it(tmp_path: Path, change: str) -> None:
    key = change.partition("=")[0]
    with pytest.raises(ConfigError, match=key):
        load(written(tmp_path, GOOD), (change,))
    game = load(written(tmp_path, GOOD)).game
    with pytest.raises(ConfigError, match=key):
        preset("tiny", name="x", game=game, overrides=(change,))


@pytest.mark.parametrize("opponent", ["impatient", "satisficer+chatty", "linear+begging"])
def test_an_opponent_that_stays_out_of_training_is_refused(tmp_path: Path, opponent: str) -> None:
    """Else a figure called "against strangers" would be one against old acquaintances."""
    file = tmp_path / "run.toml"
    file.write_text(
        f'name = "x"\n[game]\nsizes = [[2, 4]]\nopponents = ["threshold", "{opponent}"]\n', encoding="utf-8"
    )
    with pytest.raises(ConfigError, match="Held out for evaluation and so never trained on"):
        load(file)
    with pytest.raises(ConfigError, match="Held out for evaluation"):
        preset("tiny", name="x", game=Game(sizes=((2, 4),), opponents=("threshold", opponent)))


def test_values_that_stay_out_of_training_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('name = "x"\n[game]\nsizes = [[2, 4]]\nvalues = "lognormal:50:0.5"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="never trained on: lognormal values"):
        load(file)
    with pytest.raises(ConfigError, match="never trained on: lognormal values"):
        preset("tiny", name="x", game=Game(sizes=((2, 4),), values="lognormal:50:0.5"))


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        load(tmp_path / "nowhere.toml")


def test_a_folder_belongs_to_one_configuration(tmp_path: Path) -> None:
    config = load(written(tmp_path, GOOD))
    runs.begin(tmp_path / "run", config)
    runs.begin(tmp_path / "run", config)
    with pytest.raises(ConfigError, match="another configuration"):
        runs.begin(tmp_path / "run", load(written(tmp_path, GOOD), ("seed=3",)))


def test_metrics_come_back_line_by_line(tmp_path: Path) -> None:
    assert runs.metrics(tmp_path) == []
    runs.append(tmp_path, {"rollout": 1})
    runs.append(tmp_path, {"rollout": 2})
    assert [line["rollout"] for line in runs.metrics(tmp_path)] == [1, 2]


def test_a_resumed_run_forgets_what_it_will_measure_again(tmp_path: Path) -> None:
    for rollout in (1, 2, 3):
        runs.append(tmp_path, {"rollout": rollout})
    runs.cut(tmp_path, after_rollout=2)
    assert [line["rollout"] for line in runs.metrics(tmp_path)] == [1, 2]
    runs.cut(tmp_path, after_rollout=0)
    assert runs.metrics(tmp_path) == []


@pytest.mark.parametrize("file", sorted(Path("training/configs").glob("*.toml")), ids=lambda file: file.stem)
def test_every_shipped_file_loads(file: Path) -> None:
    words = "protocol" in tomllib.loads(file.read_text(encoding="utf-8"))  # A language model's run file.
    assert (load_language(file) if words else load(file)).name


def test_two_who_publish_the_same_folder_at_once_leave_one_of_them_whole(tmp_path: Path) -> None:
    target = tmp_path / "mine"

    def publish(text: str) -> None:
        for _ in range(20):
            with runs.whole(target) as draft:
                for name in ("card", "model"):
                    (draft / name).write_text(text)

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(publish, text) for text in "abc"]:
            done.result()
    assert sorted(file.name for file in target.iterdir()) == ["card", "model"]
    assert len({file.read_text() for file in target.iterdir()}) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_replaced_is_left_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.mkdir()
    (target / "card").write_text("old")
    with pytest.raises(FileNotFoundError), runs.whole(target) as draft:
        draft.rename(tmp_path / "lost")
    assert (target / "card").read_text() == "old"
