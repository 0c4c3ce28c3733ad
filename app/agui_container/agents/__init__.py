"""Agents: the built-in assistant, and the adapters that make a user's own code an agent.

Rule: an agent imports ``ports`` and ``core`` only; it is given its model and its tools and never looks for them.
"""
