"""What agents say sounds like a person and gives nothing away: a private value in talk would decide the game."""

import random
import re
from collections import Counter

import pytest

from agents import registry
from agents.base import Kind
from agents.play import turn_for
from agents.scripted import talk
from agents.scripted.talk import MAX_NAME_CHARS, SENTENCES, Situation, short_name, situation, speak
from agents.simulation import simulate
from agents.words import with_words
from markets.engine import rules
from markets.engine.money import format_amount
from markets.engine.observation import observe
from markets.engine.protocol import MAX_TALK_CHARS, MakeOffer, Role, buyer_party
from markets.engine.scenarios import Alternating, Family, SellerTurns
from markets.engine.state import evolve, initial
from tests import effort
from tests.agents.tables import SHOP, Opponent, buyers, listed_market, sellers
from tests.markets.engine.factories import B1, LEAVE, SELLER, Table, accept, bilateral, multi_buyer, offer, reject, say


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("kind", list(Situation))
def test_there_are_six_ways_or_more_to_say_each_thing(role: Role, kind: Situation) -> None:
    variants = SENTENCES[role, kind]
    assert len(set(variants)) == len(variants) >= 6
    priced = kind in (
        Situation.OPENING,
        Situation.FIRST_REPLY,
        Situation.COUNTER,
        Situation.HOLDING,
        Situation.LAST_TURN,
    )
    for sentence in variants:
        assert ("{price}" in sentence) is priced, sentence
        assert not re.search(r"\d", sentence), sentence
        assert sentence[-1] in ".?!", sentence
        assert len(sentence) < 110, sentence


@pytest.mark.parametrize("role", list(Role))
def test_what_opens_or_closes_a_deal_names_the_product(role: Role) -> None:
    for kind in (Situation.OPENING, Situation.FIRST_REPLY, Situation.INVITATION, Situation.ACCEPT):
        assert all("{item}" in sentence for sentence in SENTENCES[role, kind]), kind


def test_talk_holds_no_number_but_the_price_of_its_own_offer() -> None:
    """Every family and agent; the number in a product's own title does not count."""
    chance, each = random.Random(5), effort.games(60, thorough=400)
    said, games = Counter[str](), 0
    for family in Family:
        recipe = listed_market(family)
        for _ in range(each):
            seller, buyer = (registry.get(chance.choice(slugs)) for slugs in (sellers(family), buyers(family)))
            run = simulate(
                recipe=recipe,
                pool=SHOP,
                seller=seller,
                buyers=[buyer],
                episodes=1,
                seed=chance.randrange(10**9),
                words=with_words,
            )
            for scenario, played in run:
                games += 1
                names = [short_name(product.title) for product in scenario.products]
                for action in played.actions.values():
                    rest = action.talk
                    if isinstance(action, MakeOffer):
                        rest = rest.replace(format_amount(action.price_cents, scenario.currency), "", 1)
                    for name in names:
                        rest = rest.replace(name, "")
                    assert not re.search(r"\d", rest), action
                    assert len(action.talk) < MAX_TALK_CHARS
                    said[action.talk] += 1
    assert games == each * len(Family)
    assert len(said) > 1_000, "and it is not always the same"


SITUATIONS = [
    (Role.SELLER, [], offer(9_000), Situation.OPENING),
    (Role.SELLER, [(SELLER, offer(9_000)), (B1, offer(4_000))], offer(8_000), Situation.COUNTER),
    (Role.SELLER, [(SELLER, offer(9_000)), (B1, offer(4_000))], offer(9_000), Situation.HOLDING),
    (Role.SELLER, [(SELLER, offer(9_000)), (B1, offer(4_000))], accept(2), Situation.ACCEPT),
    (Role.SELLER, [(SELLER, offer(9_000)), (B1, offer(4_000))], reject(2), Situation.REJECT),
    (Role.SELLER, [], say(), Situation.INVITATION),
    (Role.SELLER, [], LEAVE, Situation.LEAVING),
    (Role.BUYER, [(SELLER, offer(9_000))], offer(4_000), Situation.FIRST_REPLY),
    (Role.BUYER, [(SELLER, say())], offer(4_000), Situation.FIRST_REPLY),
    (Role.BUYER, [(SELLER, offer(9_000)), (B1, offer(4_000)), (SELLER, offer(8_000))], offer(5_000), Situation.COUNTER),
    (Role.BUYER, [(SELLER, offer(9_000)), (B1, offer(4_000)), (SELLER, offer(8_000))], offer(4_000), Situation.HOLDING),
    (Role.BUYER, [(SELLER, offer(9_000))], LEAVE, Situation.LEAVING),
]


@pytest.mark.parametrize(("role", "before", "action", "expected"), SITUATIONS)
def test_the_sentence_fits_the_move(role: Role, before: list, action: object, expected: Situation) -> None:
    table = Table(bilateral(opener=Role.SELLER)).play_all(*before)
    party = SELLER if role is Role.SELLER else B1
    seen = table.sees(party)
    assert situation(seen, seen.threads[0], action) is expected
    talk = speak(observation=seen, action=action, chance=random.Random(1))
    price = format_amount(action.price_cents, "USD") if isinstance(action, MakeOffer) else ""
    assert talk in {sentence.format(item="Thing 0", price=price) for sentence in SENTENCES[role, expected]}


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("kind", list(Situation))
def test_goods_without_a_name_are_no_the_item_a(role: Role, kind: Situation) -> None:
    one = talk.worded("I like the {item}. The {item}!", title="Item A", alone=True)
    assert one == "I like the item. The item!"
    for sentence in SENTENCES[role, kind]:
        several = talk.worded(sentence, title="Item B", alone=False).format(price="$1")
        assert not re.search(r"[Tt]he [Ii]tem", several)
        assert several.count("Item B") == sentence.count("{item}")
        assert talk.worded(sentence, title="Desk lamp", alone=False).count("Desk lamp") == sentence.count("{item}")


def test_a_buyer_who_opens_says_so() -> None:
    seen = Table(bilateral()).sees(B1)
    assert situation(seen, seen.threads[0], offer(4_000)) is Situation.OPENING


def test_the_last_round_is_named_where_both_sides_can_count() -> None:
    seen = Table(bilateral(opener=Role.SELLER, rounds=1)).sees(SELLER)
    assert situation(seen, seen.threads[0], offer(9_000)) is Situation.LAST_TURN


def test_a_sellers_last_turn_is_not_given_away_to_buyers_who_cannot_count_it() -> None:
    table = Table(multi_buyer(turns=3))
    table.play_all((SELLER, offer(9_000, to=1)), (B1, reject(1)), (SELLER, offer(9_000, to=2)), ("buyer-2", reject(1)))
    seen = table.sees(SELLER)
    assert seen.turns_left == 1
    assert situation(seen, seen.threads[0], offer(8_000, to=1)) is Situation.COUNTER


def test_the_words_in_a_thread_do_not_depend_on_what_was_said_in_another() -> None:
    quiet = Table(multi_buyer(turns=8))
    busy = Table(multi_buyer(turns=8))
    busy.play_all((SELLER, offer(9_000, to=2)), ("buyer-2", offer(4_000)))
    kinds = {situation(t.sees(SELLER), t.sees(SELLER).threads[0], offer(9_500, to=1)) for t in (quiet, busy)}
    assert kinds == {Situation.OPENING}


def test_a_long_title_is_cut_after_a_word_and_braces_are_harmless() -> None:
    long = short_name(SHOP[3].title)
    assert long == "Extraordinarily long-winded title of a"
    assert short_name("x" * 80) == "x" * MAX_NAME_CHARS
    assert short_name("Desk lamp") == "Desk lamp"
    assert short_name("a\nb  c") == "a b c"


def test_every_reply_of_a_persons_opponent_is_in_words() -> None:
    for mechanism in (Alternating(6), SellerTurns(8)):
        scenario = bilateral() if isinstance(mechanism, Alternating) else multi_buyer()
        state = initial(scenario)
        opening = rules.opening_events(state)
        for event in opening:
            state = evolve(state, event)
        log = rules.number(opening, after=0, at_ms=0)
        for party in rules.parties_to_move(state):
            role = observe(state, party).role
            for spec in registry.all_specs():
                if spec.kind is Kind.SCRIPTED and spec.can_play(role=role, family=scenario.family):
                    turn = turn_for(state, party, spec, log)
                    assert with_words(spec.build().act(turn), turn).talk


def test_an_agent_does_not_repeat_itself_word_for_word() -> None:
    table = Table(bilateral(opener=Role.SELLER, rounds=8))
    seller = Opponent(table, SELLER, "linear")
    talks = []
    for _ in range(7):
        turn = turn_for(table.state, SELLER, seller.spec)
        action = with_words(seller.answer(), turn)
        talks.append(action.talk.replace(format_amount(action.price_cents, "USD"), ""))
        table.play(buyer_party(1), offer(100))
    assert len(set(talks)) >= 4
