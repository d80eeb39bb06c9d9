"""What stands where the staff took words away, the same in every table and for every reader."""

REMOVED = "[removed by the staff]"
"""In English in every language: it is part of the record, and data sets leave it out by this text."""
