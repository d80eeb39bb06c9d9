"""Breaks a running site while bots play in its rooms, and counts what was lost. `python -m tests.faults`, or `make faults`.

Here: the command (`__main__`), the sites that are broken (`worlds`), how they are broken (`injuries`), who plays
(`players`), what is looked at in the database (`clerk`) and what counts as lost (`audit`). Not here: the page without a
browser (`negotiation_site.room_client`), and how fast rooms are (`benchmarks.rooms`).
"""
