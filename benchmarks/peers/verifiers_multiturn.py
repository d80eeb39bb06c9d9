"""verifiers: its multi-turn rollout loop around a model that answers at once.

Runs alone in an environment that holds `verifiers`; prints one JSON object. The table opposite
only counts turns, so that what is measured is the loop and not a game.
"""

import argparse
import asyncio
import json
import time
from typing import Any

import verifiers as vf
from datasets import Dataset
from verifiers.clients import Client
from verifiers.types import Response, ResponseMessage, Usage

TURNS = 8
ANSWER = "ask b2 84"


class Instant(Client):
    """A model whose answer is always there."""

    def setup_client(self, config: Any) -> Any:
        return None

    async def to_native_tool(self, tool: Any) -> Any:
        return tool

    async def to_native_prompt(self, messages: Any) -> tuple[Any, dict[str, Any]]:
        return messages, {}

    async def get_native_response(self, prompt: Any, model: str, *rest: Any, **more: Any) -> str:
        return ANSWER

    async def raise_from_native_response(self, response: Any) -> None:
        return None

    async def from_native_response(self, response: str) -> Response:
        message = ResponseMessage(content=response, finish_reason="stop", is_truncated=False)
        usage = Usage(prompt_tokens=1, reasoning_tokens=0, completion_tokens=4, total_tokens=5)
        return Response(id="0", created=0, model="instant", usage=usage, message=message)

    async def close(self) -> None:
        return None


class Table(vf.MultiTurnEnv):
    """Says no until the turns are used up."""

    async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
        left = TURNS - len(state["trajectory"])
        return [vf.UserMessage(content=f"b2 no left t{left}")]


async def measure(seconds: float) -> dict[str, float]:
    """Rollouts for `seconds` of CPU time."""
    rows = Dataset.from_list([{"prompt": [{"role": "user", "content": "buyers n4 turns t8"}], "answer": ""}])
    env = Table(dataset=rows, rubric=vf.Rubric(), max_turns=TURNS)
    client = Instant(None)
    given = {"prompt": rows[0]["prompt"], "answer": "", "example_id": 0}
    messages = games = 0
    started = time.process_time()
    while (spent := time.process_time() - started) < seconds:
        states = await asyncio.gather(*(env.rollout(given, client, "instant", {}) for _ in range(16)))
        messages += sum(len(state["trajectory"]) for state in states)
        games += len(states)
    return {"messages": messages, "games": games, "cpu_s": spent}


def main() -> None:
    """Roll out for the seconds of CPU time that are given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=["multi-turn"], required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    print(json.dumps(asyncio.run(measure(options.seconds))))


if __name__ == "__main__":
    main()
