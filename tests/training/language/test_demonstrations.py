"""What a language model imitates is what play asks of it, said by a strategy that saw no more than it will."""

import json
import re
from typing import Any

import msgspec
import pytest

from agents import calls
from agents.backends import ChatReply, ToolCall
from agents.llm import ModelAgent
from agents.parsing import FourPart, Tools
from agents.play import Seat, play
from markets.engine import splits
from markets.engine.protocol import MakeOffer, Role
from markets.engine.scenarios import Split
from markets.export_times import sender
from tests.training.language import tiny
from training.language import demonstrations
from training.language.games import held_out_game, pool, training_game
from training.language.judging import BACKEND, spec_of

RUN = tiny.config("nowhere")
LINE = re.compile(r"^Action: \[(SELL|BUY|DEAL|REJECT|TALK|QUIT)\]", re.MULTILINE)


def games(count: int = 12) -> list[demonstrations.Demonstrated]:
    return [demonstrations.demonstrate(RUN, number) for number in range(count)]


def test_the_prompts_are_those_of_play(monkeypatch: pytest.MonkeyPatch):
    """A model that answers as the teacher did is asked exactly the rows' questions, and plays the teacher's game."""
    from agents import backends
    from agents.backends.fake import FakeBackend

    shown = demonstrations.demonstrate(RUN, 1)
    rows = list(demonstrations.rows_of(RUN, shown))
    fake = FakeBackend([ChatReply(text=row.answer["content"]) for row in rows], name=BACKEND)
    monkeypatch.setattr(backends, "_configs", {})
    monkeypatch.setattr(backends, "_seated", {})
    backends.seat(fake)
    spec = spec_of(ModelAgent(backend=BACKEND, codec=FourPart(), regulated=True))
    own, other = demonstrations.party_of(shown.game.role), demonstrations.other_party(shown.game.role)
    played = play(shown.game.scenario, {own: Seat(spec, spec.build()), other: shown.game.opponent})
    assert [entry.event for entry in played.log] == [entry.event for entry in shown.played.log]
    asked = [[{"role": m.role, "content": m.content} for m in request.messages] for request in fake.requests]
    assert asked == [row.messages for row in rows]


def test_every_answer_reads_back_in_either_protocol():
    for protocol, codec in (("four_part", FourPart()), ("tools", Tools())):
        run = msgspec.structs.replace(RUN, protocol=protocol)
        shown = [demonstrations.demonstrate(run, number) for number in range(6)]
        for game in shown:
            own = demonstrations.party_of(game.game.role)
            moves = [entry for entry in game.played.log if sender(entry.event) == own]
            rows = list(demonstrations.rows_of(run, game))
            assert len(rows) == len(moves)
            for row in rows:
                calls = [
                    ToolCall(call["function"]["name"], json.dumps(call["function"]["arguments"]))
                    for call in row.answer.get("tool_calls", ())
                ]
                assert bool(calls) is (codec.name == "tools")
                assert {call.name for call in calls} <= {tool["function"]["name"] for tool in row.tools}
                assert codec.name == "tools" or LINE.search(row.answer["content"])


def test_prices_are_whole_and_never_lose_money():
    for shown in games():
        product = shown.game.scenario.products[0]
        for entry in shown.played.log:
            action = shown.played.actions.get(entry.n)
            if isinstance(action, MakeOffer) and action.thought:
                if product.list_price_cents >= demonstrations.WHOLE_FROM_CENTS:
                    assert action.price_cents % 100 == 0
                scenario, role = shown.game.scenario, shown.game.role
                limit = scenario.reservation_value_cents(role=role, buyer=1, product=0)
                gain = action.price_cents - limit if role is Role.SELLER else limit - action.price_cents
                assert gain > -100, "a whole price is to the own side's good"
                assert f"{action.price_cents // 100}" in action.talk.replace(",", "")


def test_a_thought_says_how_much_of_the_limit_a_price_is():
    """What follows from the words before it is learned: a price among all prices is mixed up digit by digit."""
    aimed = re.compile(r"I stay (above|below) \$([\d,.]+) and (?:ask|bid) (\d+)%: \$([\d,.]+)\.\n")
    found = 0
    for shown in games():
        for row in demonstrations.rows_of(RUN, shown):
            for side, *named in aimed.findall(row.answer["content"]):
                limit, part, price = (float(number.replace(",", "")) for number in named)
                assert part % demonstrations.STEP == 0
                assert part > 100 if side == "above" else part < 100
                assert abs(limit * part / 100 - price) <= 1
                found += 1
    assert found > 10


@pytest.mark.parametrize("protocol", ["four_part", "tools"])
def test_a_repair_is_asked_for_as_play_asks_for_it(protocol: str, monkeypatch: pytest.MonkeyPatch):
    """A model that writes the wrong reply is told, word for word, what the lesson has after it."""
    from agents import backends
    from agents.backends.fake import FakeBackend

    run = msgspec.structs.replace(RUN, protocol=protocol, sft=msgspec.structs.replace(RUN.sft, repairs=1.0))
    monkeypatch.setattr(backends, "_configs", {})
    monkeypatch.setattr(backends, "_seated", {})
    reasons: set[str] = set()
    for number in range(4):
        shown = demonstrations.demonstrate(run, number)
        rows = list(demonstrations.rows_of(run, shown))
        own, other = demonstrations.party_of(shown.game.role), demonstrations.other_party(shown.game.role)
        replies = []
        for row in rows:
            if len(row.messages) > 2:
                replies.insert(-1, wrong_reply(row, protocol))  # Before the teacher's answer to the same question.
            else:
                replies.append(reply_of(row.answer))
        fake = FakeBackend(replies, name=BACKEND)
        backends.seat(fake)
        codec = {"four_part": FourPart, "tools": Tools}[protocol]()
        spec = spec_of(ModelAgent(backend=BACKEND, codec=codec, regulated=True))
        with calls.listening(calls.Listener(lambda call: reasons.add(call.outcome))):
            played = play(shown.game.scenario, {own: Seat(spec, spec.build()), other: shown.game.opponent})
        assert [entry.event for entry in played.log] == [entry.event for entry in shown.played.log]
        asked = [[{"role": m.role, "content": m.content} for m in request.messages] for request in fake.requests]
        assert asked == [row.messages for row in rows]
    assert reasons >= {"used", "at_a_loss"}


def reply_of(answer: dict[str, Any]) -> ChatReply:
    called = (call["function"] for call in answer.get("tool_calls", ()))
    return ChatReply(
        text=answer["content"],
        tool_calls=tuple(ToolCall(call["name"], json.dumps(call["arguments"])) for call in called),
    )


def wrong_reply(row: demonstrations.Row, protocol: str) -> ChatReply:
    """The reply that a repair goes back to, from what the model is shown of it."""
    said = row.messages[2]["content"]
    if protocol == "four_part":
        return ChatReply(text=said)
    text, *called = said.split("\n")
    return ChatReply(
        text=text, tool_calls=tuple(ToolCall(*line.removesuffix(")").split("(", 1)) for line in called if line)
    )


def test_thoughts_name_no_value_of_the_other_side():
    for shown in games():
        scenario, role = shown.game.scenario, shown.game.role
        other = Role.BUYER if role is Role.SELLER else Role.SELLER
        hidden = scenario.reservation_value_cents(role=other, buyer=1, product=0)
        offers = {entry.event.price_cents for entry in shown.played.log if hasattr(entry.event, "price_cents")}
        if hidden in offers or hidden == scenario.reservation_value_cents(role=role, buyer=1, product=0):
            continue
        told = f"{hidden / 100:,.2f}"
        for row in demonstrations.rows_of(RUN, shown):
            assert told not in row.answer["content"]
            assert all(told not in message["content"] for message in row.messages)


def test_only_games_that_went_well_are_imitated():
    run = msgspec.structs.replace(RUN, sft=msgspec.structs.replace(RUN.sft, rows=40, least_share=0.6))
    found = demonstrations.collect(run)
    assert sum(map(len, found.games)) >= 40
    assert found.played > len(found.games)
    assert min(found.shares) >= 0.6


def test_judging_sees_other_products_and_other_games_than_training():
    learned = {training_game(RUN.market, k, seed=1, stage="demonstration").scenario.products[0].sku for k in range(60)}
    judged = {held_out_game(RUN.market, k, rounds=4).scenario.products[0].sku for k in range(60)}
    assert not learned & judged
    assert all(
        splits.split_of(sku=fact.sku, list_price_cents=fact.list_price_cents) is Split.TRAINING
        for fact in pool(RUN.market, Split.TRAINING)
    )


def test_a_game_is_fixed_by_its_number():
    first, again = (demonstrations.demonstrate(RUN, 3) for _ in range(2))
    assert first.played.log == again.played.log
    assert list(demonstrations.rows_of(RUN, first)) == list(demonstrations.rows_of(RUN, again))
    assert {demonstrations.demonstrate(RUN, k).game.role for k in range(2)} == set(Role)
