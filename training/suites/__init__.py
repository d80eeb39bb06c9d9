"""Benchmark suites: the same negotiations for every agent, frozen, numbered and hashed.

`cards` reads what a suite is from the file beside it, `games` draws and plays it, `measure` says what it
came to. Pure: no Django, no tables; the products come from whoever calls.
"""
