"""Data sets made of stored episodes, in any format: chosen, written, counted, described.

`asked` says which episodes and how, `making` writes a folder, `card` describes it, `jobs` and `tasks` do it
in the background for the pages (`negotiation_site.export_pages`); the table of past exports is in `models`.
"""
