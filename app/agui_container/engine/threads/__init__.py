"""Threads as callers read and change them."""
