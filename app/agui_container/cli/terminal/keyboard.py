"""The keyboard while nothing is asked: keys are not shown, and wait for the next message.

Rule: a key that was typed before a question was there answers no question. Otherwise it could allow a call that the
person has not seen.
"""

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

LOCAL_FLAGS = 3
"""Index of the flags with ``ECHO`` in what ``tcgetattr`` returns."""


@contextmanager
def echo(*, on: bool) -> Iterator[None]:
    """Show typed keys, or do not. Nothing happens without a terminal."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    changed = list(before)
    changed[LOCAL_FLAGS] = before[LOCAL_FLAGS] | termios.ECHO if on else before[LOCAL_FLAGS] & ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, changed)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def discard_typed_keys() -> None:
    """Forget keys that were typed and not read. Nothing happens without a terminal."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
