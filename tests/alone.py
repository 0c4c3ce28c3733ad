"""Run a test while no other test runs, where time is measured; a plugin of pytest.

Rule: the processes of a suite share two locks. Every test holds ``running`` together with the others, and a test marked
``alone`` holds it by itself. A test that waits for ``running`` holds ``gate``, so that a test marked ``alone`` waits
for the tests that have begun and not for others.
"""

import fcntl
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest


@contextmanager
def locked(path: Path, operation: int) -> Iterator[None]:
    """Hold the lock of a file, with others (``fcntl.LOCK_SH``) or without (``fcntl.LOCK_EX``)."""
    with path.open("a") as file:
        fcntl.flock(file, operation)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # processes that were forked meanwhile have the file open, too


@pytest.hookimpl(wrapper=True, tryfirst=True)  # the time of a test begins when its turn has come
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Wait until the test may run, and keep away the tests that may not run beside it."""
    assert item.config.cache is not None
    folder = item.config.cache.mkdir("alone")
    operation = fcntl.LOCK_SH if item.get_closest_marker("alone") is None else fcntl.LOCK_EX
    with ExitStack() as held:
        with locked(folder / "gate", operation):
            held.enter_context(locked(folder / "running", operation))
        return (yield)
