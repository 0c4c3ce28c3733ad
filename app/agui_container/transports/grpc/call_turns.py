"""Turns in which calls begin: one call of each caller in a turn of the event loop.

One read can begin a hundred calls, and a caller can have hundreds of connections. Between two calls of one caller,
other connections are served, and the calls are counted.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from h2.frame_buffer import FrameBuffer
from hyperframe.frame import Frame, HeadersFrame


class CallTurns:
    """Turns of all callers."""

    def __init__(self) -> None:
        self._taken = set[str]()
        self._is_scheduled = False
        self._waiting: dict[str, deque[Callable[[], None]]] = {}

    def take(self, account: str) -> bool:
        """Take the turn of a caller. Returns False if it has been taken in this turn of the event loop."""
        if account in self._taken:
            return False
        self._taken.add(account)
        self._schedule()
        return True

    def wait(self, account: str, resume: Callable[[], None]) -> None:
        """Call ``resume`` in a later turn of a caller, after those that wait already."""
        self._waiting.setdefault(account, deque()).append(resume)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """Begin a turn of the event loop. A connection that has ended meanwhile does nothing with its caller's turn."""
        self._is_scheduled = False
        self._taken.clear()
        for account, waiting in tuple(self._waiting.items()):
            resume = waiting.popleft()
            if not waiting:
                del self._waiting[account]
            resume()
        if self._waiting:
            self._schedule()


class CallBuffer(FrameBuffer):
    """Buffer of the frames of a connection, which holds a call back until it is the caller's turn.

    Args:
        turns: turns of all callers.
        account: the caller.
    """

    def __init__(self, turns: CallTurns, account: str) -> None:
        super().__init__(server=True)
        self._turns = turns
        self._account = account
        self._held: Frame | None = None

    def __next__(self) -> Frame:
        frame = self._held or super().__next__()
        self._held = None
        if isinstance(frame, HeadersFrame) and not self._turns.take(self._account):
            self._held = frame
            raise StopIteration
        return frame

    @property
    def is_holding(self) -> bool:
        """True if a call is held back."""
        return self._held is not None

    @property
    def incomplete_bytes(self) -> int:
        """Bytes of the frame and of the headers that have not arrived in full. 0 while a call is held back."""
        headers = sum(len(frame.data) for frame in self._headers_buffer)
        return 0 if self.is_holding else len(self._data) + headers

    def wait(self, resume: Callable[[], None]) -> None:
        """Call ``resume`` in a later turn."""
        self._turns.wait(self._account, resume)
