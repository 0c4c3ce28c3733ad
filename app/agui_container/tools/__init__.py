"""Tools: functions that the server runs for a model.

Rule: a tool imports ``ports``, ``protocol`` and ``runtime`` only, and raises ``ToolError`` with a text that the model
may read and correct.
"""
