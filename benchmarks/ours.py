"""Our side of each comparison: plays for some seconds of CPU time and prints one JSON object.

A case is a function of seconds that gives messages, games and CPU seconds. Cases compute what the
peer computes for a message and nothing less: what may be done, the transition, and what the party
to move next may know. `python -m benchmarks.ours --case NAME --seconds S`.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from typing import Any

from markets.engine import priors, rules
from markets.engine.legal import legal_moves
from markets.engine.observation import observe
from markets.engine.protocol import SELLER, MakeOffer
from markets.engine.scenarios import (
    Alternating,
    Family,
    Mechanism,
    Prior,
    Product,
    Scenario,
    SellerTurns,
)
from markets.engine.state import initial

Measured = dict[str, float]

ROUNDS = 10


def _scenario(*, family: Family, mechanism: Mechanism, buyers: int = 1, products: int = 1) -> Scenario:
    rng = random.Random(1)
    spec = priors.UniformSpec(low=0.0, high=100.0)
    return Scenario(
        family=family,
        mechanism=mechanism,
        products=tuple(Product(sku=f"p{k}", title=f"Item {k}", list_price_cents=10_000) for k in range(products)),
        seller_values_cents=tuple(rng.randrange(1, 5_000) for _ in range(products)),
        buyer_values_cents=tuple(tuple(rng.randrange(5_000, 10_000) for _ in range(products)) for _ in range(buyers)),
        prior=Prior(value_spec=spec, cost_spec=spec, scales_cents=(100,) * products),
        seed=1,
    )


def _measure(play: Callable[[], int], seconds: float) -> Measured:
    messages = games = 0
    started = time.process_time()
    while (spent := time.process_time() - started) < seconds:
        messages += play()
        games += 1
    return {"messages": messages, "games": games, "cpu_s": spent}


def _play_offers(scenario: Scenario, rng: random.Random) -> int:
    """Random offers to the end: per message one observation, what is legal, the transition."""
    state = initial(scenario)
    messages = 0
    while state.end_reason is None:
        party = rules.parties_to_move(state)[0]
        moves = legal_moves(observe(state, party))
        thread = moves.threads[messages // 2 % len(moves.threads)]
        prices = thread.offers[messages % len(thread.offers)]
        offer = MakeOffer(buyer=thread.buyer, product=prices.product, price_cents=1 + int(rng.random() * 10_000))
        _, state = rules.step(state, party, offer)
        messages += 1
    return messages


def typed_bilateral(seconds: float) -> Measured:
    """Offers in turn over one product, ten rounds."""
    scenario = _scenario(family=Family.BILATERAL, mechanism=Alternating(rounds=ROUNDS))
    rng = random.Random(1)
    return _measure(lambda: _play_offers(scenario, rng), seconds)


def many_buyers(seconds: float) -> Measured:
    """One product, eight buyers, thirty-two offers."""
    scenario = _scenario(family=Family.MULTI_BUYER, mechanism=SellerTurns(turns=32), buyers=8)
    rng = random.Random(1)
    return _measure(lambda: _play_offers(scenario, rng), seconds)


def many_products(seconds: float) -> Measured:
    """Ten products, twenty buyers, forty offers."""
    scenario = _scenario(family=Family.CATALOGUE, mechanism=SellerTurns(turns=40), buyers=20, products=10)
    rng = random.Random(1)
    return _measure(lambda: _play_offers(scenario, rng), seconds)


def text_bilateral(seconds: float) -> Measured:
    """Four-part answers over one product, ten rounds: read, judged, and the table told to the next player."""
    from agents.backends import ChatReply
    from agents.parsing import FourPart
    from agents.prompts import table

    scenario = _scenario(family=Family.BILATERAL, mechanism=Alternating(rounds=ROUNDS))
    codec = FourPart()
    rng = random.Random(1)

    def play() -> int:
        state = initial(scenario)
        messages = 0
        while state.end_reason is None:
            party = rules.parties_to_move(state)[0]
            observation = observe(state, party)
            table.standing(observation)
            verb = "SELL" if party == SELLER else "BUY"
            price = f"{1 + int(rng.random() * 9_999)}"
            text = f"Thought: hold\nTalk: I can do no better than this.\nAction: [{verb}] ${price}"
            (action,) = codec.read(ChatReply(text=text), observation)
            _, state = rules.step(state, party, action)
            messages += 1
        return messages

    return _measure(play, seconds)


def learner_messages(seconds: float) -> Measured:
    """What the environment costs per message of a learner: read, judge, answer, show, log.

    The model is a stub that answers at once, so this is also our side of the rollout loop.
    """
    from markets.engine import rewards
    from training.config import Game
    from training.environment import LEARNER_ROLE, Episode, draw_table

    game = Game(sizes=((4, 8),))
    worth = rewards.by_name(game.reward, role=LEARNER_ROLE)
    tables = [draw_table(game, seed) for seed in range(64)]
    rng = random.Random(1)

    def rollout() -> int:
        live = [Episode(rng.choice(tables)) for _ in range(16)]
        transcripts: list[list[Any]] = [list(episode.opening()) for episode in live]
        messages, turn = 0, 0
        going = list(zip(live, transcripts, strict=True))
        while going:
            turn += 1
            words = ("ask", f"b{turn % 4 + 1}", "84")
            for episode, transcript in going:
                transcript.append(words)
                transcript.append(episode.act(words))
                messages += 1
            going = [pair for pair in going if not pair[0].over]
        for episode in live:
            episode.reward(worth)
        return messages

    return _measure(rollout, seconds)


CASES: dict[str, Callable[[float], Measured]] = {
    "typed-bilateral": typed_bilateral,
    "text-bilateral": text_bilateral,
    "8-buyers-32-offers": many_buyers,
    "10-products-20-buyers": many_products,
    "learner-message": learner_messages,
}


def main() -> None:
    """Play the case that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=sorted(CASES), required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    print(json.dumps(CASES[options.case](options.seconds)))


if __name__ == "__main__":
    main()
