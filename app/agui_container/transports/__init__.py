"""The transports. Each only translates: parse, start or attach, send envelopes, map errors.

Rule: transports know the engine's door and ``core``, never a plug-in and never each other.
"""
