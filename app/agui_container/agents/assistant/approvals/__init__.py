"""Calls that need an approval, and what becomes of them."""
