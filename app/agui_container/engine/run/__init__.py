"""One run, from its input to its terminal event."""
