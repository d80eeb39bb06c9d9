"""English: see `formats`."""
