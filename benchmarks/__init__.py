"""Speed, measured and compared; asserted nowhere.

`run` compares the engine with its peers in interleaved rounds, `ours` holds our side of each
comparison, `peers` one script a peer, each run by an interpreter of its own. Not part of the site.
"""
