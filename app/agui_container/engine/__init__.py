"""Runs: start, order, log, read, cancel and end. Async and independent of transports.

Rule: imports ``ports``, ``protocol``, ``runtime`` and ``telemetry`` only. A run does not depend on a request; a request
only reads its log.
"""
