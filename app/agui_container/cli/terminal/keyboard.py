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
    """Show typed keys, or keep them for later, also over a Ctrl-C. Nothing happens without a terminal."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    changed = list(before)
    flags = before[LOCAL_FLAGS]
    # Without NOFLSH a Ctrl-C discards the keys, and what the program has written and the terminal has not shown yet.
    changed[LOCAL_FLAGS] = (flags | termios.ECHO) if on else (flags & ~termios.ECHO) | termios.NOFLSH
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, changed)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def discard_typed_keys() -> None:
    """Forget keys that were typed and not read. Nothing happens without a terminal."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
