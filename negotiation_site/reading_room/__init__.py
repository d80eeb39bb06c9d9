"""The reading room: finding transcripts, reading them turn by turn, two side by side, and the staff's notes on them."""
