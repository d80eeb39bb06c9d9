"""Agents: who sits at the table when no person does.

Strategies, prompts and back ends are pure; `models`, `turns`, `tasks` and `views` are the part that knows Django.
Knows `markets`, nothing of `training` or the site.
"""
