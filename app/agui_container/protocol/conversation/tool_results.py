"""Failure marks of tool results.

Rule: the text of a result is never interpreted, because a successful tool may return any text. A failed tool of the
server is marked in the ``metadata`` of its result, because TOOL_CALL_RESULT has no field for an error and clients store
the metadata with the message. A failed tool of the client has ``error``.

Sources: AG-UI spec 1.1, basic/metadata and events/tool-calls#frontend-tools.
"""

from ag_ui.core import ToolMessage

FAILED = "failed"
"""Metadata key of a failed result. Its value is true. Successful results do not have it."""

DURATION = "durationMs"
"""Metadata key of the run time of a server tool, in whole milliseconds."""


def has_failed(result: ToolMessage) -> bool:
    """Return True if the tool failed or did not run."""
    return result.error is not None or (result.metadata or {}).get(FAILED) is True
