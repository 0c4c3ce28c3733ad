"""Compiled messages of roz, version 1."""
