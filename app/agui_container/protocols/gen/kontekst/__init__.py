"""Compiled messages of kontekst."""
