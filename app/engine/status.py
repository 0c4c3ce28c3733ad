"""Where a run is in its life.

Rule: the words are those of the API; all but ``queued`` are also the store's (``RunStatus``).
"""

from enum import StrEnum


class Status(StrEnum):
    """Where a run is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    ERROR = "error"
