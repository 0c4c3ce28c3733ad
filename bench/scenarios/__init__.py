"""Scenarios, one module each: a function from ``Options`` to sections of the report."""
