"""An adapter that is published while the lab runs is served without a restart of the site."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from agents import adapters
from agents.backends.config import Secret
from negotiation_site.management.commands import lab
from negotiation_site.supervisor import Child, Program
from tests.agents.test_adapters import CARD


class Told:
    """A supervisor that starts nothing."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    def start(self, program: Program) -> Child:
        self.programs.append(program)
        return Child(program=program)

    def renew(self, child: Child, program: Program) -> None:
        self.programs.append(program)


def test_the_model_server_alone_starts_again_with_a_new_adapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(settings, "INFERENCE_FILE", tmp_path / "inference.json")
    monkeypatch.setattr(settings, "INFERENCE_CHECKPOINTS", [])
    monkeypatch.setattr(lab, "LOOK_FOR_ADAPTERS_S", 0.0)
    found: list[tuple[Path, adapters.Card]] = []
    monkeypatch.setattr(adapters, "cards", lambda: list(found))
    supervisor: Any = Told()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        inference = lab.Inference(supervisor=supervisor, listener=listener, key=Secret("k"), own=True, taught=[])
        assert set(inference.start()) >= {"PARLEY_LLM_EMBEDDED_URL"}
        inference.look()
        assert len(supervisor.programs) == 1, "nothing is new"
        found.append((tmp_path / CARD.slug, CARD))
        with caplog.at_level("WARNING"):
            inference.look()
        inference.look()
    first, second = supervisor.programs
    assert "--adapter" not in first.argv
    assert [str(tmp_path / CARD.slug)] == [
        second.argv[k + 1] for k, option in enumerate(second.argv) if option == "--adapter"
    ]
    assert second.pass_fds == first.pass_fds, "the address stays"
    told = json.loads((tmp_path / "inference.json").read_text())
    assert told["PARLEY_LLM_LITTLE_HAGGLER_URL"] == told["PARLEY_LLM_EMBEDDED_URL"]
    assert os.stat(tmp_path / "inference.json").st_mode & 0o077 == 0
    assert "little-haggler" in caplog.text
