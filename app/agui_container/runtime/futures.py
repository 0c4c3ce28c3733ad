"""Futures whose results nothing may await.

Rule: asyncio logs the exception of a future that nothing has awaited. A cancelled caller awaits nothing more, so the
exception must be marked as retrieved.
"""

import asyncio
from typing import TypeVar

T = TypeVar("T")


def mark_retrieved(future: asyncio.Future[T]) -> None:
    """Mark the exception of a future as retrieved, because its caller may have been cancelled."""
    if not future.cancelled():
        future.exception()
