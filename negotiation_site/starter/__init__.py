"""The world a new site starts with: a catalogue of our own, invented for play.

Here live the data and its loader; what is made of it (markets, scenarios) is decided where the
starter world is seeded. Contract: nothing here is copied from a real shop, no brand is named, and
the file is read by the same importer as everybody's catalogue.
"""
