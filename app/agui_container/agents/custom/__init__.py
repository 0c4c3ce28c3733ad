"""Agents made of a user's own functions and objects."""
