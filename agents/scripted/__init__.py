"""Scripted agents: strategies that decide by rule, and the sentences they say.

One module per kind of strategy; `situation` reads a turn for all of them and `talk` speaks for
all of them. Nothing here draws chance except from its turn, and nothing is remembered between
turns: a strategy works its schedule out again from the visible past, so a worker that answers one
turn of a live room and a simulation of ten thousand episodes give the same moves.
"""
