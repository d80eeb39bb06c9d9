"""Signals of the markets package: `turn_due` is sent after commit, `words_erased` within its transaction."""

from django.dispatch import Signal

turn_due = Signal()
"""An agent owes a move. Arguments: `turn_id`, the primary key of the `AgentTurn`; `delay_s`, seconds
until it may start, where it may not yet."""

words_erased = Signal()
"""A person who sat in rooms is being erased. Argument: `room_ids`, their primary keys. Whoever keeps words of those
rooms in tables of its own empties them and returns in how many rows."""

person_erased = Signal()
"""A person is being erased, in the transaction that does it. Keyword argument: `participant`. Packages above forget
whatever of that person their own tables hold; whoever withdraws data sets that hold the person returns how many."""

party_erased = Signal()
"""A party of an imported dialogue is being erased, in the transaction that does it. Keyword argument: `corpora`, the
names of those that held it. Whoever withdraws data sets made of them returns how many."""

people_merged = Signal()
"""A guest's games become an account's, in the transaction that does it. Keyword arguments: `guest`, `own`, two
participants. Packages above let what they keep of the guest be the account's."""
