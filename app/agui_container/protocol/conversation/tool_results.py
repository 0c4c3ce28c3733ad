"""How a tool message says that its tool failed.

Rule: words are never asked, because a tool that works may give any text. A result of the server is marked in its
``metadata``: TOOL_CALL_RESULT has no other place for it, and a client that folds the event keeps it with the message. A
result of the client has ``error``. Sources: AG-UI spec 1.1, basic/metadata and events/tool-calls#frontend-tools.
"""

from ag_ui.core import ToolMessage

FAILED = "failed"
"""The key of the mark; its value is true. What succeeded has none."""

DURATION = "durationMs"
"""The key of how long a server tool ran, in whole milliseconds."""


def has_failed(result: ToolMessage) -> bool:
    """Whether the tool failed, or never ran."""
    return result.error is not None or (result.metadata or {}).get(FAILED) is True
