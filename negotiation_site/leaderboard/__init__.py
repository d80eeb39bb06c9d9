"""Leaderboards: what agents and people came to over all stored episodes.

`facts` keeps a columnar copy of the record, `tables` turns a selection of it into figures with
intervals (numpy, no Django), `people` rates persons, `charts` draws, `pages` answers requests.
"""
