"""Admission: what the process and an identity may use, work off the event loop, and which run or thread gives way."""
