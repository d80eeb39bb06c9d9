"""How the embedded model speaks for a strategy: seconds, and what becomes of its words.

    python -m benchmarks.narrator --corpus PATH/craigslist_bargain/dev.json [--replies 100] [--speech free] [--show]
    python -m benchmarks.narrator --corpus PATH/craigslist_bargain/dev.json --together 3 [--replies 20]

With `--together N` as many narrators as that are asked at the same moment, `--replies` times over, and
the seconds are those until the last has answered. People's own lines of CraigslistBargain are said to a narrator that has decided on a price; what it
answers, how long it takes and whether its words were used is printed as JSON, with `--show` each pair
above it. The model is the one that a running lab serves (PARLEY_VAR), or that `python -m
agents.inference` serves at `--url`. Times depend on what else the machine does: the load average is
printed with them.
"""

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agents import backends, calls
from agents.backends.config import read
from agents.base import Turn
from agents.inference import embedded
from agents.narrator import Narrator, Speech
from agents.scripted.talk import short_name
from markets.engine import rules
from markets.engine.observation import observe
from markets.engine.priors import BandsSpec, UniformSpec
from markets.engine.protocol import SELLER, Action, LogEntry, MakeOffer, Role, Say
from markets.engine.scenarios import Alternating, Family, Prior, Product, Scenario
from markets.engine.state import initial
from markets.engine.talk_prices import ReadingKind, find_prices

OFFER_SHARE = 0.8
"""The price that the narrator has decided on, as a share of the listing's."""


class Decided:
    """A strategy that has made up its mind."""

    def __init__(self, action: Action) -> None:
        self._action = action

    def act(self, turn: Turn) -> Action:
        """Always the same."""
        return self._action


def lines(corpus: Path) -> list[tuple[Role, str, str, int]]:
    """Who spoke, the words, and the listing's title and price in whole dollars."""
    found = []
    for dialogue in json.loads(corpus.read_text()):
        people = [kb["personal"]["Role"] for kb in dialogue["scenario"]["kbs"]]
        item = dialogue["scenario"]["kbs"][0]["item"]
        for event in dialogue["events"]:
            if event["action"] == "message" and isinstance(event["data"], str) and event["data"].strip():
                price = max(2, int(float(item["Price"])))
                found.append((Role(people[event["agent"]]), event["data"], item["Title"], price))
    return found


def heard(role: Role, words: str, title: str, dollars: int) -> tuple[Turn, Action]:
    """A turn of the side that was spoken to, and the offer it has decided on."""
    product = Product(sku="x", title=title, list_price_cents=dollars * 100, stock=1)
    scenario = Scenario(
        family=Family.BILATERAL,
        mechanism=Alternating(rounds=6, opener=role),
        products=(product,),
        seller_values_cents=(dollars * 50,),
        buyer_values_cents=((dollars * 100,),),
        prior=Prior(value_spec=BandsSpec(), cost_spec=UniformSpec(low=0.1, high=0.9), scales_cents=(dollars * 100,)),
        seed=1,
    )
    speaker, listener = (SELLER, "buyer-1") if role is Role.SELLER else ("buyer-1", SELLER)
    events, state = rules.step(initial(scenario), speaker, Say(talk=words[:2000]))
    log: Sequence[LogEntry] = rules.number(events, after=0, at_ms=0)
    turn = Turn(
        observation=observe(state, listener),
        seed=random.getrandbits(30),
        party=listener,
        slug="narrator",
        position=1,
        log=(scenario, log),
        words_at=lambda n: words if n == 1 else "",
    )
    return turn, MakeOffer(price_cents=max(1, int(dollars * OFFER_SHARE)) * 100)


def names_other_price(words: str, turn: Turn, offer: MakeOffer) -> bool:
    """Whether an amount is named that is not the offer's; names of products may hold any."""
    for product in turn.observation.products:
        words = words.replace(product.title, "it").replace(short_name(product.title), "it")
    return any(
        mention.kind is not ReadingKind.NON_PRICE and mention.cents != offer.price_cents
        for mention in find_prices(words, currency="USD").mentions
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--replies", type=int, default=100)
    parser.add_argument("--speech", type=Speech, choices=list(Speech), default=Speech.PHRASEBOOK)
    parser.add_argument("--together", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--url", default="")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args(arguments)
    environment = {
        "PARLEY_LLM_EMBEDDED_URL": options.url,
        "PARLEY_LLM_EMBEDDED_MODEL": embedded.NAME,
        "PARLEY_LLM_EMBEDDED_GRAMMAR": "true",
    }
    if not options.url:
        environment = json.loads((Path(os.environ.get("PARLEY_VAR", "var")) / "run" / "inference.json").read_text())
    backends.configure(read(environment | {"PARLEY_LLM_EMBEDDED_TIMEOUT": str(options.timeout)}))
    random.seed(options.seed)
    if options.together > 1:
        spread = _together(lines(options.corpus), options.together, options.replies, options.speech)
        print(json.dumps({"together": options.together, "all_s": spread, "load_average": os.getloadavg()[0]}))
        return 0
    outcomes: Counter[str] = Counter()
    first_s, full_s, foreign = [], [], 0
    for role, words, title, dollars in random.sample(lines(options.corpus), options.replies):
        turn, action = heard(role, words, title, dollars)
        made: list[calls.Call] = []
        narrator = Narrator(strategy=Decided(action), backend="embedded", speech=options.speech)
        began = time.perf_counter()
        with calls.listening(calls.Listener(made.append)):
            answer = narrator.act(turn)
        full_s.append(time.perf_counter() - began)
        (call,) = made
        outcomes[call.outcome] += 1
        if call.reply is not None and call.reply.first_ms is not None:
            first_s.append(call.reply.first_ms / 1000)
        assert isinstance(action, MakeOffer)
        foreign += names_other_price(answer.talk, turn, action)
        if options.show:
            raw = "" if call.used or call.reply is None else f"\n    [{call.outcome}] {call.reply.text!r}"
            print(f"{role.value}: {words!r}\n    {answer.talk}{raw}")
    print(
        json.dumps(
            {
                "replies": options.replies,
                "speech": options.speech.value,
                "outcomes": dict(outcomes),
                "names_other_price": foreign,
                "first_s": _spread(first_s),
                "full_s": _spread(full_s),
                "load_average": os.getloadavg()[0],
            }
        )
    )
    return 0


def _together(said: Sequence[tuple[Role, str, str, int]], narrators: int, times: int, speech: Speech) -> dict[str, Any]:
    """Seconds until as many narrators as that, asked at the same moment, have all answered."""
    seconds = []
    with ThreadPoolExecutor(narrators) as pool:
        for _ in range(times):
            asked = [heard(*each) for each in random.sample(said, narrators)]
            began = time.perf_counter()
            answers = pool.map(
                lambda turn: Narrator(strategy=Decided(turn[1]), backend="embedded", speech=speech).act(turn[0]), asked
            )
            assert len([answer.talk for answer in answers]) == narrators
            seconds.append(time.perf_counter() - began)
    return _spread(seconds) | {"longest": round(max(seconds), 2)}


def _spread(seconds: list[float]) -> dict[str, Any]:
    ordered = sorted(seconds)
    at = {"p50": 0.5, "p95": 0.95}
    return {name: round(ordered[int(share * (len(ordered) - 1))], 2) if ordered else None for name, share in at.items()}


if __name__ == "__main__":
    sys.exit(main())
