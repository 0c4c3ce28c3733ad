"""The agent sessions of Roboto over HTTP: a session is a thread, a turn is a run.

Rule: this package translates. It turns requests into run inputs and commands of the engine, and threads into Roboto's
records and deltas.

Source: ``roboto.ai.agent_session`` of the package ``roboto`` 0.44 and ``roboto.ai.agent_thread`` of 0.62.
"""
