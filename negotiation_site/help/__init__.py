"""Help for newcomers: the guided first negotiation and the page that leads to all help.

Not here: what a word means (`negotiation_site.glossary`), what earns here (`negotiation_site.guide`).
"""
