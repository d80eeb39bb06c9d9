"""What a model thought leaves this server only where whoever exports asks for thoughts: every protocol, family and format."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command

from agents import backends
from agents.backends import ChatReply, ChatRequest, ToolCall
from agents.backends.fake import FakeBackend
from markets.models import EpisodeText
from negotiation_site.exports import asked as asking
from tests.agents.conftest import no_back_ends
from tests.markets.rooms import market

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_back_ends")]

__all__ = ["no_back_ends"]  # a fixture of the agents' tests

PLAN = "XYZZY"
"""In every thought, and in no word that is said."""
FAMILIES = ("bilateral", "multi_buyer", "catalogue")


def in_four_parts(request: ChatRequest) -> str:
    """Thinks, and offers something at its table."""
    system = request.messages[0].content
    target = "Target: Buyer 1\n" if "Target" in system else ""
    item = "#1 " if "#1" in system else ""
    act = f"[SELL] {item}$70" if "as the seller" in system else f"[BUY] {item}$45"
    return f"Thought: {PLAN} they will give in\n{target}Talk: Here is my price.\nAction: {act}"


def in_calls(request: ChatRequest) -> ChatReply:
    """The same by calling a function, with the thought beside it."""
    price = 70 if "as the seller" in request.messages[0].content else 45
    arguments = f'{{"price": {price}, "message": "Here is my price.", "buyer": 1, "product": 1}}'
    call = ToolCall("make_offer", arguments)
    return ChatReply(text=f"{PLAN} they will give in", tool_calls=(call,), model="fake")


PROTOCOLS: dict[str, Callable[[ChatRequest], str | ChatReply]] = {
    "fake-model-unregulated": in_four_parts,
    "fake-model-tools-unregulated": in_calls,
}


def played(agent: str, family: str) -> None:
    """A stored game between models, all of which think."""
    backends.seat(FakeBackend(script=PROTOCOLS[agent]))
    slug = market(family).slug
    words = ["--market", slug, "--seller", agent, "--buyers", agent, "--episodes", "1", "--seed", "1", "--store"]
    call_command("simulate", *words, "--json", stdout=io.StringIO())


def exported(folder: Path, form: str, *options: str) -> bytes:
    """Every byte of an export; columns of Parquet compress, so they are read as rows."""
    call_command("export_episodes", "--format", form, "--out", str(folder), *options, "--json", stdout=io.StringIO())
    return b"".join(_bytes(file) for file in sorted(folder.rglob("*")) if file.is_file())


def _bytes(file: Path) -> bytes:
    if file.suffix != ".parquet":
        return file.read_bytes()
    import pyarrow.parquet as parquet

    return repr(parquet.read_table(file).to_pylist()).encode()


@pytest.mark.parametrize("agent", PROTOCOLS)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_thought_leaves_unless_it_is_asked_for(agent: str, family: str, tmp_path: Path) -> None:
    played(agent, family)
    assert EpisodeText.objects.filter(thought__contains=PLAN).exists()
    assert not EpisodeText.objects.filter(talk__contains=PLAN).exists()
    for form in asking.FORMATS:
        assert PLAN.encode() not in exported(tmp_path / f"without-{form}", form), form
    with_thoughts = exported(tmp_path / "with", "jsonl", "--thoughts", "with")
    assert PLAN.encode() in with_thoughts
