"""The site: settings, addresses, processes, and what looks across markets, agents and training.

The top layer: it may import every other package and none may import it.
"""
