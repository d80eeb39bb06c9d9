"""Addresses of the reading room. A comparison has one without a slash too, as it is written down by hand."""

from django.urls import path

from negotiation_site.reading_room import pages

urlpatterns = [
    path("transcripts/", pages.transcript_list, name="transcripts"),
    path("transcripts/compare", pages.compare, name="transcripts-compare"),
    path("transcripts/compare/", pages.compare),
    path("transcripts/notes/", pages.notes, name="transcript-notes"),
    path("transcripts/notes.csv", pages.notes_file, {"format": "csv"}, name="transcript-notes-csv"),
    path("transcripts/notes.jsonl", pages.notes_file, {"format": "jsonl"}, name="transcript-notes-jsonl"),
    path("transcripts/notes/add/", pages.note_add, name="transcript-notes-add"),
    path("transcripts/notes/<int:number>/", pages.note_change, name="transcript-note"),
    path("transcripts/notes/<int:number>/delete/", pages.note_delete, name="transcript-note-delete"),
]
