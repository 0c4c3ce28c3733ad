"""Conversations as data: messages, shared state, and their changes."""
