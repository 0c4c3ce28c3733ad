"""The agent sessions of Roboto over HTTP: a session is a thread, a turn is a run.

Rule: this package translates. It turns requests into run inputs and commands of the engine, and threads into Roboto's
records and deltas. The start imports only ``routes``, and the first request imports the rest.

Source: ``roboto.ai.agent_session`` of the package ``roboto`` 0.44 and ``roboto.ai.agent_thread`` of 0.62.
"""

OLD_PREFIX, NEW_PREFIX = "/v1/ai/chats", "/v1/ai/threads"
"""Prefixes of the paths for clients before 0.46, and for clients since then."""
