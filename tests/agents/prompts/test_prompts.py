"""A prompt is a file with a version: whoever changes it raises the version, and nothing is filled in by mistake."""

import json

import pytest

from agents import prompts


def test_a_changed_prompt_has_a_new_version():
    """To record a new version: add its digest to `agents/prompts/versions.json`; old ones stay."""
    recorded = json.loads((prompts.FOLDER / "versions.json").read_text())
    for name in prompts.names():
        prompt = prompts.load(name)
        assert recorded.get(prompt.label) == prompt.digest, f"{prompt.label} is {prompt.digest}"


def test_versions_only_grow():
    recorded = json.loads((prompts.FOLDER / "versions.json").read_text())
    for name in prompts.names():
        numbers = [int(label.split("@")[1]) for label in recorded if label.split("@")[0] == name]
        assert sorted(numbers) == list(range(1, prompts.load(name).version + 1))


def test_fields_are_filled_in_and_what_is_filled_in_is_not_read_again():
    prompt = prompts.parse("test", "version: 3\n\n## turn\nSay {{words}}!\n")
    assert prompt.label == "test@3"
    assert prompt.fill("turn", words="{{words}}") == "Say {{words}}!"


def test_a_forgotten_field_is_an_error():
    prompt = prompts.parse("test", "version: 1\n\n## turn\n{{a}} {{b}}\n")
    with pytest.raises(KeyError, match="test@1 wants b"):
        prompt.fill("turn", a="x")


@pytest.mark.parametrize("text", ["## turn\nHello\n", "version: 1\nHello\n"])
def test_a_file_without_version_or_section_is_no_prompt(text: str):
    with pytest.raises(ValueError, match="no version or no section"):
        prompts.parse("test", text)
