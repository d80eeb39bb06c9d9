"""Markets and live rooms. `markets.engine` is the pure game; the rest keeps, serves and shows it.

Knows nothing of `agents`, `training` or the site: a seat stores an agent's slug and version as text.
"""
