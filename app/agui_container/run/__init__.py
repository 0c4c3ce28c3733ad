"""One run: its input, its events, its log, its readers, its record and its end."""
