"""Runs: started, held in order, logged, read, cancelled and ended. Async, and neutral towards transports.

Rule: sees ``ports`` and ``core`` only. A run owns itself; a request merely reads its log.
"""
