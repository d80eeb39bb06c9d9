"""Proof that the economics are right: measured figures beside the values they must have.

Here: rows of (name, reference, measured, tolerance) for the theory of bargaining and posted prices,
the table of ladders, the baselines of catalogues, the facts of the public data and the identities,
and the games that are played for them. Not here: the command that prints them (`verify_economics`),
and the engine and the agents that are being proved.

Contract: pure but for reading the public catalogue; no database. Every figure is measured here and
now, by playing the engine, by its exact functions, or by an independent simulation; references are
constants, written down with their source and never read back from what is measured. The same seed
gives the same figures in any number of processes.
"""
