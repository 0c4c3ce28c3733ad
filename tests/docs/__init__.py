"""The documents say what is there, and their examples run."""
