"""Tools: the functions that the server runs for a model.

Rule: a tool imports ``ports`` and ``core`` only, and raises ``ToolError`` for what a model may read and correct.
"""
