"""TextArena's `SimpleNegotiation`: read a text move, judge it, show the table to the next player.

Runs alone in an environment that holds `textarena`; prints one JSON object. Offers ask for goods
that the other side holds, so that every one is read and checked in full.
"""

import argparse
import json
import random
import time

import textarena

GOODS = ("Wheat", "Wood", "Sheep", "Brick", "Ore")


def play(rng: random.Random) -> int:
    """One game of random offers with a remark each; the number of messages in it."""
    env = textarena.make("SimpleNegotiation-v0")
    env.reset(num_players=2, seed=rng.randrange(1 << 30))
    messages, done = 0, False
    while not done:
        env.get_observation()
        give, want = rng.sample(GOODS, 2)
        done, _ = env.step(action=f"I can do no better than this. [Offer: {rng.randint(1, 3)} {give} -> 1 {want}]")
        messages += 1
    env.close()
    return messages


def main() -> None:
    """Play for the seconds of CPU time that are given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=["simple-negotiation"], required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    rng = random.Random(1)
    messages = games = 0
    started = time.process_time()
    while (spent := time.process_time() - started) < options.seconds:
        messages += play(rng)
        games += 1
    print(json.dumps({"messages": messages, "games": games, "cpu_s": spent}))


if __name__ == "__main__":
    main()
