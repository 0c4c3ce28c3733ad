"""Locks between the processes of a suite."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, operation: int) -> Iterator[None]:
    """Hold the lock of a file, with others (``fcntl.LOCK_SH``) or without (``fcntl.LOCK_EX``)."""
    with path.open("a") as file:
        fcntl.flock(file, operation)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # processes that were forked meanwhile have the file open, too
