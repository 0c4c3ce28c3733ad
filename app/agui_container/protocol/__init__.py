"""The pure part: event order, chunk expansion, encoding, parsing and the error table.

Rule: no await, no clock, no I/O and no framework. Functions take values and return values.
"""
