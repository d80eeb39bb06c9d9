"""OpenSpiel's `bargaining` and `negotiation`: legal actions, one action, what the next player knows.

Runs alone in an environment that holds `open_spiel`; prints one JSON object. What a player knows is
the information state's tensor; `negotiation` has none, so its observation's tensor stands in for it.
"""

import argparse
import json
import random
import time
from typing import Any

import pyspiel


def play(game: Any, seconds: float, rng: random.Random) -> dict[str, float]:
    """Random games for `seconds` of CPU time: messages and what they cost."""
    has_state = game.get_type().short_name == "bargaining"
    knows = "information_state_tensor" if has_state else "observation_tensor"
    messages = games = 0
    started = time.process_time()
    while (spent := time.process_time() - started) < seconds:
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                actions, odds = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(rng.choices(actions, odds)[0])
                continue
            state.apply_action(rng.choice(state.legal_actions()))
            messages += 1
            if not state.is_terminal():
                getattr(state, knows)(state.current_player())
        games += 1
    return {"messages": messages, "games": games, "cpu_s": spent}


def main() -> None:
    """Play the game that is named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=["bargaining", "negotiation"], required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    print(json.dumps(play(pyspiel.load_game(options.case), options.seconds, random.Random(1))))


if __name__ == "__main__":
    main()
