"""negmas: alternating offers over a price between two aspiration negotiators.

Runs alone in an environment that holds `negmas`; prints one JSON object. negmas is AGPL: it is
measured here and imported by nothing else.
"""

import argparse
import json
import time
import warnings

from negmas import SAOMechanism, make_issue
from negmas.preferences import LinearUtilityFunction
from negmas.sao import AspirationNegotiator

ROUNDS = 10
PRICES = 101


def negotiate() -> int:
    """One negotiation; the number of messages in it."""
    mechanism = SAOMechanism(issues=[make_issue(PRICES, "price")], n_steps=ROUNDS)
    for name, slope, bias in (("seller", 1.0, 0.0), ("buyer", -1.0, PRICES - 1.0)):
        worth = LinearUtilityFunction(weights={"price": slope}, bias=bias, issues=mechanism.issues)
        mechanism.add(AspirationNegotiator(name=name), preferences=worth)
    mechanism.run()
    return len(mechanism.full_trace)


def main() -> None:
    """Negotiate for the seconds of CPU time that are given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=["aspiration"], required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    messages = games = 0
    started = time.process_time()
    while (spent := time.process_time() - started) < options.seconds:
        messages += negotiate()
        games += 1
    print(json.dumps({"messages": messages, "games": games, "cpu_s": spent}))


if __name__ == "__main__":
    main()
