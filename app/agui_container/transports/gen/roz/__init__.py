"""Compiled messages of roz."""
