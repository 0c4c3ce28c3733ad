"""The agent sessions of Roboto over HTTP: a session is a thread, a turn is a run.

Rule: this package translates. Requests become run inputs and commands of the engine, and what the engine keeps of a
thread becomes Roboto's records and deltas. Nothing of it is imported unless ``AGUI_ROBOTO`` is on.

Source: ``roboto.ai.agent_session`` of the package ``roboto`` 0.44 and ``roboto.ai.agent_thread`` of 0.62.
"""
