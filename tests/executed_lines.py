"""Lines of Python that a computation executes: its work as a number that is the same on every machine."""

import sys
from collections.abc import Callable
from typing import Any


def lines_of(work: Callable[[], object]) -> int:
    """Return the number of executed lines of Python."""
    lines, before = 0, sys.gettrace()

    def count(*_: object) -> Any:  # noqa: ANN401 - itself
        nonlocal lines
        lines += 1
        return count

    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines
