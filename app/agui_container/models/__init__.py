"""Models: what turns a prompt into deltas.

Rule: a model imports ``ports`` and ``core`` only, and raises its failures as ``AppError`` with a ``MODEL_*`` code.
"""
