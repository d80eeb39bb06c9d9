"""Puts a move into words where its agent wrote none. Pure; templates live in `scripted.talk`."""

import msgspec

from agents.base import Turn
from agents.scripted.talk import speak
from markets.engine.protocol import Action, SearchPrice, Wait


def with_words(action: Action, turn: Turn) -> Action:
    """The same move with talk; what is said never changes what is done. Who waits or looks a price
    up says nothing: nobody would hear it."""
    if action.talk or isinstance(action, Wait | SearchPrice):
        return action
    words = speak(observation=turn.observation, action=action, chance=turn.words)
    return msgspec.structs.replace(action, talk=words)
