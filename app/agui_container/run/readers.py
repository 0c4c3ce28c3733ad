"""Readers of one run: those of this process, those that other replicas report, and the grace of a run without any.

Rule: a run without readers may be cancelled (``OnDisconnect``). A reader on another replica prevents that, and so does
a call that ended at its deadline: the run continues without readers until another one subscribes. Each renewal of the
run's lease says if it is read on another replica. All readers there count as one.
"""

from collections.abc import Callable
from functools import partial

from agui_container.ports import Clock, Timer
from agui_container.run.endings import CancelReason


class Readers:
    """Readers of one run. ``cancel`` is called ``grace`` seconds after the last one has left: None is never."""

    __slots__ = ("_cancel", "_clock", "_grace", "_is_read_elsewhere", "_may_stay_unread", "_timer", "local")

    def __init__(self, clock: Clock, grace: float | None, cancel: Callable[[CancelReason], None]) -> None:
        self.local = 0
        """Readers of this process."""
        self._clock = clock
        self._grace = grace
        self._cancel = cancel
        self._timer: Timer | None = None
        """Timer that cancels the run; set while the run has no reader in this process."""
        self._may_stay_unread = False
        self._is_read_elsewhere = False

    def enter(self) -> None:
        self.local += 1
        self._may_stay_unread = False
        self._stop_grace()

    def leave(self, *, may_stay_unread: bool = False) -> None:
        """Remove a reader of this process. With ``may_stay_unread`` the run need not have readers until the next."""
        self.local -= 1
        self._may_stay_unread = self._may_stay_unread or may_stay_unread
        if not self.local:
            self._start_grace()

    def report_elsewhere(self, *, is_read: bool) -> None:
        """Record if another replica has readers. A grace begins anew if it has."""
        self._is_read_elsewhere = is_read
        if is_read and self._timer is not None:
            self._stop_grace()
            self._start_grace()

    def end(self) -> None:
        """Stop the grace for good, because the run has ended."""
        self._grace = None
        self._stop_grace()
        del self._cancel  # it refers to the run, which refers to this object

    def count(self) -> int:
        return self.local + self._is_read_elsewhere

    def is_abandoned(self) -> bool:
        """Return True if the run had a reader in this process and has none on any replica now."""
        return self._timer is not None and not self.count()

    def _start_grace(self) -> None:
        if self._grace is None or self._may_stay_unread:
            return
        if self._grace == 0:
            self._cancel(CancelReason.DISCONNECT)
        else:
            self._timer = self._clock.call_later(self._grace, partial(self._cancel, CancelReason.DISCONNECT))

    def _stop_grace(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
