"""A persona changes what is said and nothing else: else a study of words would measure moves."""

import re

import pytest

from agents import backends, registry
from agents.backends.fake import FakeBackend
from agents.play import play, seat, turn_for
from agents.scripted.personas import ADDED, Persona, UnknownPersona, split_slug
from agents.words import with_words
from markets.engine import splits
from markets.engine.money import format_amount
from markets.engine.protocol import SELLER, MakeOffer, Role, encode
from markets.engine.scenarios import Family, sample
from tests.agents import conversations
from tests.agents.scripted.answers import scenario_for
from tests.agents.tables import SHOP, listed_market
from tests.markets.engine.factories import B1, Table, offer

EVERY = list(Persona)


def test_the_personas_are_those_that_studies_and_held_out_sets_name() -> None:
    assert [persona.value for persona in EVERY] == [
        "neutral",
        "begging",
        "insulting",
        "unyielding",
        "chatty",
        "terse",
        "injecting",
    ]
    assert set(registry.HELD_OUT_PERSONAS) == {"begging", "insulting", "unyielding"} <= set(EVERY)


@pytest.mark.parametrize("persona", EVERY)
@pytest.mark.parametrize("family", list(Family))
def test_an_agent_with_a_persona_plays_the_same_game(persona: Persona, family: Family) -> None:
    for seed in range(3):
        scenario = sample(listed_market(family), SHOP, seed)
        logs = []
        for slug in ("random-tit-for-tat", f"random-tit-for-tat+{persona.value}"):
            buyers = {f"buyer-{number}": seat(registry.get("impatient")) for number in range(1, scenario.buyers + 1)}
            logs.append(play(scenario, {SELLER: seat(registry.get(slug)), **buyers}).log)
        assert encode(logs[0]) == encode(logs[1])


@pytest.mark.parametrize("persona", EVERY)
def test_words_name_no_amount_but_the_price_of_the_own_offer(persona: Persona) -> None:
    said = set()
    for seed in range(60):
        table = Table(scenario_for(seed))
        table.play(SELLER, offer(9_500))
        spec = registry.get(f"linear+{persona.value}")
        turn = turn_for(table.state, B1, spec)
        action = with_words(spec.build().act(turn), turn)
        assert isinstance(action, MakeOffer)
        price = format_amount(action.price_cents, "USD")
        assert action.talk.count(price) == 1
        assert not re.search(r"\d", action.talk.replace(price, "").replace("Thing 0", ""))
        said.add(action.talk.replace(price, ""))
    assert len(said) > (1 if persona is not Persona.TERSE else 0)


def test_neutral_says_what_the_agent_would_have_said_and_terse_next_to_nothing() -> None:
    table = Table(scenario_for(4))
    table.play(SELLER, offer(9_500))
    talks = {}
    for slug in ("linear", "linear+neutral", "linear+terse", "linear+chatty"):
        turn = turn_for(table.state, B1, registry.get(slug))
        talks[slug] = with_words(registry.get(slug).build().act(turn), turn).talk
    assert talks["linear"] == talks["linear+neutral"]
    assert len(talks["linear+terse"]) < 12 < len(talks["linear"]) < len(talks["linear+chatty"])


def test_every_persona_has_words_of_its_own_for_either_side() -> None:
    for persona in set(EVERY) - {Persona.NEUTRAL, Persona.TERSE}:
        for role in Role:
            sentences = ADDED[persona, role]
            assert len(set(sentences)) == len(sentences) >= 5
            assert not any(re.search(r"[\d{}$]", sentence) for sentence in sentences)


def test_a_slug_with_a_persona_is_an_agent_that_can_be_seated_and_is_in_no_list() -> None:
    spec = registry.get("tit-for-tat+begging")
    assert (spec.slug, spec.title) == ("tit-for-tat+begging", "Tit for tat, begging")
    assert spec.can_play(role=Role.SELLER, family=Family.CATALOGUE)
    assert not any("+" in each.slug for each in registry.all_specs())


def test_a_misspelt_persona_or_agent_gets_a_sentence() -> None:
    with pytest.raises(registry.UnknownAgent, match=r"There is no persona 'beging'\. The personas are: neutral, "):
        registry.get("linear+beging")
    with pytest.raises(registry.UnknownAgent, match="There is no agent 'liner'"):
        registry.get("liner+begging")
    with pytest.raises(UnknownPersona):
        split_slug("linear+")


@pytest.mark.usefixtures("no_back_ends")
def test_a_narrator_of_the_phrase_book_makes_the_same_moves_in_a_persona_and_adds_its_words() -> None:
    backends.seat(FakeBackend(["Hello there."], name=backends.EMBEDDED))
    plain, begging = (
        play(scenario_for(4), {SELLER: seat(registry.get("linear")), B1: seat(registry.get(slug))}, words=with_words)
        for slug in ("narrator-boulware", "narrator-boulware+begging")
    )
    assert encode(plain.log) == encode(begging.log)
    said = [action.talk for n, action in begging.actions.items() if begging.log[n - 1].event.by is Role.BUYER]
    assert said
    assert all(any(added in talk for added in ADDED[Persona.BEGGING, Role.BUYER]) for talk in said)


@pytest.mark.usefixtures("no_back_ends")
def test_a_model_is_told_of_its_persona_which_makes_another_version_of_it() -> None:
    fake = FakeBackend(["Thought: so\nTalk: Hello!\nAction: [BUY] $45"], name="big")
    backends.seat(fake)
    table = Table(scenario_for(4))
    table.play(SELLER, offer(9_500))
    versions = set()
    for slug in ("big-model", "big-model+terse", "big-model+chatty", "big-narrator+terse"):
        spec = registry.get(slug)
        spec.build().act(conversations.turn(table, B1))
        versions.add(spec.version)
    systems = [request.messages[0].content for request in fake.requests]
    assert ["few words" in system for system in systems] == [False, True, False, True]
    assert "chat about other things" in systems[2]
    assert len(versions) == 4


@pytest.mark.usefixtures("no_back_ends")
def test_a_voice_does_not_bring_what_was_held_out_into_training() -> None:
    with pytest.raises(splits.HeldOut, match="the buyer 'impatient'"):
        registry.refuse_held_out(["narrator-impatient"])
    with pytest.raises(splits.HeldOut, match="the persona 'begging'"):
        registry.refuse_held_out(["narrator+begging"])
    registry.refuse_held_out(["narrator", "narrator+chatty"])


def test_a_pool_of_opponents_may_hold_no_buyer_and_no_persona_that_was_held_out() -> None:
    registry.refuse_held_out(["threshold", "linear+chatty", "boulware"])
    assert len(registry.HELD_OUT_BUYERS) == 2
    for slug in registry.HELD_OUT_BUYERS:
        assert registry.get(slug).can_play(role=Role.BUYER, family=Family.MULTI_BUYER)
        for named in (slug, f"{slug}+chatty"):
            with pytest.raises(splits.HeldOut, match=f"the buyer '{slug}'"):
                registry.refuse_held_out(["threshold", named])
    with pytest.raises(splits.HeldOut, match="the persona 'begging'"):
        registry.refuse_held_out(["linear+begging"])
