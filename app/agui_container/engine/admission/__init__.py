"""Admission: what the process and an identity may use, and which run gives way."""
