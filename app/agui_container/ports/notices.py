"""Notices: CUSTOM events that tell the user about a run, and that a thread keeps beside its messages.

Agents name them, and the engine keeps them, so that a client that loads the thread later can show them again.
"""

CONTEXT_COMPACTED = "context.compacted"
MEDIA_DROPPED = "media.dropped"
MODEL_STOPPED = "model.stopped"
TOOLS_UNAVAILABLE = "tools.unavailable"

TOOLS_PROGRESS = "tools.progress"
"""CUSTOM event of a running call. Its value has ``toolCallId``, ``progress``, ``total`` and ``message``. Threads do not
keep it."""

NOTICES = frozenset({CONTEXT_COMPACTED, MEDIA_DROPPED, MODEL_STOPPED, TOOLS_UNAVAILABLE})
