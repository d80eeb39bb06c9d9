"""What an export wrote trains through TRL as it is, and the loss lies on the chosen side's words alone."""

import copy
from pathlib import Path
from typing import Any

import pytest

from negotiation_site.exports import making
from negotiation_site.exports.asked import FORMATS, Asked
from tests.markets import rooms
from tests.negotiation_site.leaderboard.records import stored
from training.rows import check_turns, merged

pytestmark = pytest.mark.django_db

TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def games() -> None:
    bench = rooms.market("bilateral", slug="bench")
    for seller in ("linear", "boulware"):
        stored(bench, seller=seller, count=12)


def model_and_tokenizer() -> tuple[Any, Any]:
    """A model of random weights that reads bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    specials = ["<|pad|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = Tokenizer(models.BPE(vocab={word: k for k, word in enumerate([*specials, *alphabet])}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|pad|>", eos_token="<|im_end|>", extra_special_tokens=["<|im_start|>"]
    )
    fast.chat_template = TEMPLATE
    config = LlamaConfig(
        vocab_size=len(fast), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=4096, pad_token_id=fast.pad_token_id, eos_token_id=fast.eos_token_id,
    )  # fmt: skip
    return LlamaForCausalLM(config), fast


def loaded(form: str, folder: Path, **how: Any) -> Any:
    from datasets import load_dataset

    making.make(Asked(format=form, **how), folder / "data")
    return load_dataset(str(folder / "data"), cache_dir=str(folder / "cache"))


def settings(folder: Path) -> dict[str, Any]:
    return {
        "output_dir": str(folder / "run"), "max_steps": 2, "per_device_train_batch_size": 2, "use_cpu": True, "bf16": False,
        "report_to": [], "save_strategy": "no", "disable_tqdm": True, "max_length": 4096, "gradient_checkpointing": False,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sft", "prompt-completion"])
def test_two_steps_of_sft_train_on_the_chosen_side_alone(games, tmp_path, form):
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    model, tokenizer = model_and_tokenizer()
    data = loaded(form, tmp_path)["train"]
    trainer = SFTTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=data,
        args=SFTConfig(assistant_only_loss=form == "sft", activation_checkpointing=False, **settings(tmp_path)),
    )
    batch = next(iter(trainer.get_train_dataloader()))
    for ids, labels in zip(batch["input_ids"], batch["labels"], strict=True):
        learned = tokenizer.decode([int(token) for token in ids[labels != -100]])
        assert learned.startswith("Talk:")
        assert "Action: [" in learned
        assert "You negotiate as" not in learned
        assert learned.rstrip("\n").endswith("<|im_end|>")
    assert trainer.train().global_step == 2


@pytest.mark.slow
def test_two_steps_of_dpo_train_on_pairs(games, tmp_path):
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    model, tokenizer = model_and_tokenizer()
    trainer = DPOTrainer(
        model=model,
        ref_model=copy.deepcopy(model),
        processing_class=tokenizer,
        train_dataset=loaded("preference", tmp_path)["train"],
        args=DPOConfig(**settings(tmp_path)),
    )
    assert trainer.train().global_step == 2


@pytest.mark.parametrize("form", ["sft", "prompt-completion", "preference", "rl", "parquet", "jsonl", "csv"])
def test_a_folder_loads_without_an_edit(games, tmp_path, form):
    from datasets import load_dataset

    making.make(Asked(format=form), tmp_path / "data")
    name = {"parquet": "events", "csv": "events"}.get(form)
    data = load_dataset(str(tmp_path / "data"), name, cache_dir=str(tmp_path / "cache"))
    assert sum(map(len, data.values())) > 0


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_without_a_name_the_table_of_episodes_loads(games, tmp_path, form):
    from datasets import load_dataset

    making.make(Asked(format=form), tmp_path / "data")
    data = load_dataset(str(tmp_path / "data"), cache_dir=str(tmp_path / "cache"))
    assert "record_sha256" in next(iter(data.values())).column_names


@pytest.mark.parametrize("form", FORMATS)
def test_a_data_set_of_nothing_is_read_with_its_columns(tmp_path, form):
    """`datasets` builds no split of nothing ("corresponds to no data"), so it is streamed."""
    from datasets import load_dataset

    made = making.make(Asked(format=form), tmp_path / "data")
    assert "streaming=True" in (tmp_path / "data" / "README.md").read_text("utf-8")
    for name in {"parquet": ("episodes", "events"), "csv": ("episodes", "events")}.get(form, ("default",)):
        for split in load_dataset(str(tmp_path / "data"), name, streaming=True).values():
            assert list(split) == []
            if form != "csv":
                assert "episode" in split.features
    if form == "parquet":
        from pyarrow import parquet

        for path in made.files:
            table = parquet.read_table(path)
            assert (table.num_rows, "split" in table.column_names) == (0, True)


def test_functions_come_back_as_they_were_called(tmp_path):
    stored(rooms.market("bilateral", slug="bench", mechanism="event_driven"), seller="linear", count=8)
    data = loaded("sft", tmp_path)["train"]
    calls = [call["function"] for row in data for call in row["messages"][-1]["tool_calls"]]
    assert {"make_offer"} <= {call["name"] for call in calls}
    assert all(None not in call["arguments"].values() for call in calls)
    assert "make_offer" in data[0]["tools"]


def test_turns_of_one_role_are_made_one_and_wrong_ones_refused():
    told = [{"role": role, "content": role} for role in ("system", "user", "user", "assistant")]
    joined = merged(told)
    assert [message["role"] for message in joined] == ["system", "user", "assistant"]
    assert joined[1]["content"] == "user\n\nuser"
    check_turns(joined)
    with pytest.raises(ValueError, match="no chat template"):
        check_turns(told)
