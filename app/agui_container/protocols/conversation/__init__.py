"""Conversations of foreign protocols: the port that a protocol implements, and the one loop that all of them run on."""
