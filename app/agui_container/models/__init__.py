"""Models: each turns a prompt into a stream of deltas.

Rule: a model imports ``ports``, ``protocol`` and ``runtime`` only, and raises its failures as ``AppError`` with a
``MODEL_*`` code.
"""
