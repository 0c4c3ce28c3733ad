"""Measurements, run by hand; each file says how."""
