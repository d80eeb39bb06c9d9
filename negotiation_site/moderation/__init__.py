"""Strangers who talk to one another: what a person can report, and what the staff can do about it.

`models` keeps reports and words that were taken away, `services` is the only writer, `pages` answers requests.
Muting somebody is the page's own affair (static/js/room.js) and stored nowhere.
"""
