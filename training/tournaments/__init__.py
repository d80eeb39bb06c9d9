"""Tournaments: every ordered pair of agents in the same scenarios, shared out among workers.

`design` says who meets whom and how the work is cut (pure), `games` plays a share of it (pure),
`services` writes, `results` reads, `worker` and `tasks` are the two ways in for processes.
"""
