"""Agents: the built-in assistant, and the adapters that turn a user's own code into an agent.

Rule: agents know the ports and the protocol, never the engine or a transport. The composition root passes the model
and the tools to an agent.
"""
