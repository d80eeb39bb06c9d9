"""Attacks on agents by words, and how many get through.

Here: attacks as data with a version (`attacks`), what counts as a breach (`breaches`), playing every
attack against an agent (`suite`). Not here: the command, what is stored (`agents.injection_scores`), pages. Pure.
"""
