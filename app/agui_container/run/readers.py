"""Readers of one run: those of this process, those that other replicas report, and the grace of a run without any.

Rule: a run without readers may be cancelled (``OnDisconnect``). A reader on another replica prevents that, and so does
a call that ended at its deadline: the run continues without readers until another one subscribes. A reader on another
replica is reported regularly; when the reports stop, the reader no longer counts.
"""

from collections.abc import Callable
from functools import partial

from agui_container.ports import Clock, Timer
from agui_container.run.endings import CancelReason

WATCH_SECONDS = 2.0
"""Shortest pause between two reports of a reader to the run's replica; twice as long while the run is silent. A grace
that is shorter than the pause ends before a report can stop it."""

REPORT_VALID_SECONDS = 6.0
"""Time that a reader on another replica counts after a report. It exceeds the pause, because reports may be late."""


class Readers:
    """Readers of one run. ``cancel`` is called ``grace`` seconds after the last one has left: None is never."""

    __slots__ = ("_cancel", "_clock", "_grace", "_may_stay_unread", "_remote", "_timer", "local")

    def __init__(self, clock: Clock, grace: float | None, cancel: Callable[[CancelReason], None]) -> None:
        self.local = 0
        """Readers of this process."""
        self._clock = clock
        self._grace = grace
        self._cancel = cancel
        self._timer: Timer | None = None
        """Timer that cancels the run; set while the run has no reader in this process."""
        self._may_stay_unread = False
        self._remote: dict[str, float] | None = None

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

    def report(self, reader: str) -> None:
        """Record a report of a reader on another replica. A grace begins anew."""
        self._remote = self._reported() | {reader: self._clock.time()}
        if self._timer is not None:
            self._stop_grace()
            self._start_grace()

    def end(self) -> None:
        """Stop the grace for good, because the run has ended."""
        self._grace = None
        self._stop_grace()
        del self._cancel  # it refers to the run, which refers to this object

    def count(self) -> int:
        return self.local + len(self._reported())

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

    def _reported(self) -> dict[str, float]:
        if not self._remote:
            return {}
        now = self._clock.time()
        return {reader: at for reader, at in self._remote.items() if abs(now - at) < REPORT_VALID_SECONDS}
