"""Studies: experiments with people, from a consent form to a bonus sheet.

`design` says what a study is, `checks` what is wrong with one; `models` are the tables. `authoring` writes
studies and their versions; `conduct` is the single writer of a participation's life, with `assignment`
(conditions), `play` (rooms and rounds), `matching` (people with people) and `pay` (what it comes to). `pages`,
`consumers` and `clock` are the edges for participants, `building` and `building_form` those for researchers.
"""
