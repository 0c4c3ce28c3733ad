"""Adapters for a user's own generator functions and objects."""
