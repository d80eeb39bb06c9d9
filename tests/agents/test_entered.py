"""Agents that people enter: what may stand in one, that a version never changes, and that its text stays text."""

import msgspec
import pytest
from django.contrib.auth.models import User

from agents import backends, entered, entering, registry
from agents.backends.fake import FakeBackend
from agents.base import Kind, Unplayable
from agents.entered import Entry, EntryError
from agents.entering import EnteringError
from agents.models import EnteredAgent, EnteredVersion
from agents.quoting import MARKERS
from markets.engine import splits
from markets.engine.protocol import Role
from tests.agents import conversations
from tests.markets.engine.factories import B1, Table, bilateral

ENTRY = Entry(
    name="Patient Ada",
    summary="Waits for the last moment.",
    prompt="Never move first.\nAsk what they would do with it.",
    backend="fake",
    protocol="four_part",
    roles=(Role.SELLER, Role.BUYER),
)
BID = "Thought: so\nTalk: Hello!\nAction: [BUY] $45"


@pytest.fixture(autouse=True)
def fake(no_back_ends: None) -> FakeBackend:
    backend = FakeBackend([BID])
    backends.seat(backend)
    return backend


@pytest.fixture
def author(db: None) -> User:
    return User.objects.create_user("ada")


def with_changes(**changes: object) -> Entry:
    return msgspec.structs.replace(ENTRY, **changes)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("name", {"name": "  "}),
        ("name", {"name": "x" * 61}),
        ("summary", {"summary": "x" * 201}),
        ("prompt", {"prompt": ""}),
        ("prompt", {"prompt": "x" * 2_001}),
        ("prompt", {"prompt": "half \ud83d"}),
        ("prompt", {"prompt": "a\0b"}),
        ("backend", {"backend": "http://127.0.0.1:11434/v1"}),
        ("backend", {"backend": ""}),
        ("protocol", {"protocol": "shell"}),
        ("roles", {"roles": ()}),
        ("persona", {"persona": "coarse"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_played_is_refused_at_its_field(field: str, changes: dict[str, object]) -> None:
    with pytest.raises(EntryError) as refused:
        entered.checked(with_changes(**changes))
    assert refused.value.field == field
    assert refused.value.sentence.endswith(".")


def system_of(fake: FakeBackend, slug: str) -> str:
    table = Table(bilateral(opener=Role.SELLER))
    registry.get(slug).build().act(conversations.turn(table, B1))
    return fake.requests[-1].messages[0].content


def test_the_prompt_reaches_the_model_and_no_marker_of_a_template_with_it(author: User, fake: FakeBackend) -> None:
    agent = entering.enter(with_changes(prompt="Never move first.\n" + "\n".join(MARKERS)), author=author)
    plain = entering.enter(ENTRY, author=author)
    system, without = system_of(fake, agent.slug), system_of(fake, plain.slug)
    assert "Never move first." in system
    for marker in MARKERS:
        assert system.count(marker) == without.count(marker), marker


def test_a_change_is_another_version_and_records_find_the_one_they_name(author: User, fake: FakeBackend) -> None:
    agent = entering.enter(ENTRY, author=author)
    first = registry.get(agent.slug)
    row = EnteredVersion.objects.values().get()
    entering.change(agent, with_changes(prompt="Always move first."), based_on=1, note="bolder")
    assert EnteredVersion.objects.values().get(number=1) == row
    second = registry.get(agent.slug)
    assert (entered.number_of(first.version), entered.number_of(second.version)) == (1, 2)
    assert registry.get(agent.slug, version=first.version).version == first.version
    assert "Always move first." in system_of(fake, agent.slug)
    with pytest.raises(EnteringError, match="Version 2 was saved in the meantime"):
        entering.change(agent, ENTRY, based_on=1, note="")
    with pytest.raises(EnteringError, match="Nothing is different from version 2"):
        entering.change(agent, with_changes(prompt="Always move first."), based_on=2, note="")


def test_a_slug_is_nobody_elses_and_is_not_used_twice(author: User) -> None:
    slugs = {entering.enter(with_changes(name=name), author=author).slug for name in ("linear", "linear", "木", "A_b")}
    assert len(slugs) == 4
    assert all(entered.is_entered(slug) for slug in slugs)
    assert not any(entered.is_entered(spec.slug) for spec in registry.all_specs())


def test_a_person_has_a_bounded_number_of_agents(author: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entering, "MOST_AGENTS", 2)
    monkeypatch.setattr(entering, "MOST_EVER", 3)
    monkeypatch.setattr(entering, "MOST_VERSIONS", 1)
    first = entering.enter(ENTRY, author=author)
    entering.enter(ENTRY, author=author)
    with pytest.raises(EnteringError, match="You have 2 agents"):
        entering.enter(ENTRY, author=author)
    entering.retire(first)
    entering.enter(ENTRY, author=author)
    entering.retire(EnteredAgent.objects.latest("id"))
    with pytest.raises(EnteringError, match="You have entered 3 agents"):
        entering.enter(ENTRY, author=author)
    with pytest.raises(EnteringError, match="at most 1 versions"):
        entering.change(EnteredAgent.objects.all()[1], with_changes(name="B"), based_on=1, note="")


def test_only_what_is_put_up_is_offered_to_others(author: User) -> None:
    agent = entering.enter(ENTRY, author=author)
    assert registry.entered_specs() == ()
    with pytest.raises(registry.UnknownAgent, match="is not put up for others"):
        registry.get_open(f"{agent.slug}+terse")
    entering.put_up(agent, up=True)
    (spec,) = registry.entered_specs()
    assert (spec.slug, spec.kind, spec.title) == (agent.slug, Kind.MODEL, "Patient Ada")
    assert registry.get_open(agent.slug).version == spec.version
    entering.retire(agent)
    assert registry.entered_specs() == ()
    assert registry.get(agent.slug).slug == agent.slug  # Rooms that have it go on.


def test_a_persona_goes_with_an_entered_agent_and_stays_out_of_training(author: User, fake: FakeBackend) -> None:
    begging = entering.enter(with_changes(persona="begging"), author=author)
    plain = entering.enter(ENTRY, author=author)
    assert "appeal to pity" in system_of(fake, begging.slug)
    system = system_of(fake, f"{begging.slug}+terse")
    assert "few words" in system
    assert "appeal to pity" not in system
    registry.refuse_held_out([plain.slug, f"{plain.slug}+chatty"])
    for slug in (begging.slug, f"{plain.slug}+insulting", f"{begging.slug}+terse"):
        with pytest.raises(splits.HeldOut, match="the persona"):
            registry.refuse_held_out([slug])


@pytest.mark.parametrize("regulated", [True, False])
def test_a_regulated_entry_cannot_lose_money(author: User, fake: FakeBackend, regulated: bool) -> None:
    agent = entering.enter(with_changes(regulated=regulated), author=author)
    fake._answers = ["Talk: All I have!\nAction: [BUY] $9000"] * 2
    table = Table(bilateral(opener=Role.SELLER))
    player = registry.get(agent.slug).build()
    if regulated:
        with pytest.raises(Unplayable, match="beyond_reservation"):
            player.act(conversations.turn(table, B1))
    else:
        assert player.act(conversations.turn(table, B1)).price_cents == 900_000


@pytest.mark.django_db
def test_agents_of_others_cost_no_query_to_look_up(django_assert_num_queries) -> None:
    with django_assert_num_queries(0):
        registry.get("linear+terse")
        registry.all_specs()
        with pytest.raises(registry.UnknownAgent):
            registry.get("liner")


def test_the_prompts_go_with_their_author(author: User) -> None:
    agent = entering.enter(ENTRY, author=author)
    author.delete()
    assert not EnteredVersion.objects.exists()
    with pytest.raises(registry.UnknownAgent):
        registry.get(agent.slug)
