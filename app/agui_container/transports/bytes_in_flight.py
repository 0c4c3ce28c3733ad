"""Budget of the bytes in flight: requests that are arriving, and responses that their clients have not taken yet.

Rule: a reservation lasts as long as the bytes that it counts. One caller has at most half of the budget of the process,
so that a second caller is served while the first one uses up its own half. Small bodies need no reservation: they are
served even if the budget is used up, and cost nothing to count.
"""

import asyncio
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary

from starlette.requests import HTTPConnection

from agui_container.ports import Caller
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.telemetry import RefusalLog, count_refusal

SMALL_BYTES = 16_000
"""Size of a body, frame or response, in bytes, up to which it is not counted."""

WAIT_SECONDS = 60.0
"""Seconds that an event may wait until the budget has room for it."""

RETRY_SECONDS = 1.0
"""Seconds after which a client that has exceeded the budget may try again."""

SHARE = "agui.share"
"""Key in the scope's state for the ``CallerBytes`` of the caller."""

RESPONSE_BYTES = "agui.response_bytes"
"""Key in the scope's state for the ``Reservation`` of the response."""

LIMIT_NAME = "bytesInFlight"
"""Name of the budget in metrics and in the log."""


class ByteBudget:
    """The budget of one process.

    Args:
        limit: bytes that may be in flight at the same time.

    Attributes:
        used: bytes in flight.
        refusal_log: log of the callers that the budget has no room for.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.refusal_log = RefusalLog()
        self._shares: WeakValueDictionary[str, CallerBytes] = WeakValueDictionary()
        self._waiting: set[asyncio.Future[None]] = set()

    def share_of(self, caller: Caller) -> "CallerBytes":
        """Return the share of a caller's account."""
        share = self._shares.get(caller.account)
        if share is None:
            share = self._shares[caller.account] = CallerBytes(self, caller.account)
        return share

    async def wait_for_release(self, deadline: float) -> None:
        """Wait until bytes are released, or until the event loop's time is ``deadline``."""
        loop = asyncio.get_running_loop()
        released: asyncio.Future[None] = loop.create_future()
        self._waiting.add(released)
        try:
            await asyncio.wait([released], timeout=deadline - loop.time())
        finally:
            self._waiting.discard(released)

    def notify(self) -> None:
        """Wake all that wait for room."""
        for released in self._waiting:
            if not released.done():
                released.set_result(None)


class CallerBytes:
    """The bytes in flight of one caller: at most half of the budget.

    Attributes:
        account: name of the caller.
        used: bytes in flight.
    """

    def __init__(self, budget: ByteBudget, account: str) -> None:
        self._budget = budget
        self.account = account
        self.used = 0

    def reserve(self, size: int = 0) -> "Reservation":
        """Return a reservation of ``size`` bytes.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED if the budget has no room for it.
        """
        reservation = Reservation(self)
        reservation.resize(size)
        return reservation

    async def reserve_later(self, size: int) -> "Reservation":
        """Return a reservation of ``size`` bytes as soon as the budget has room for it.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED if it has none for ``WAIT_SECONDS``.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WAIT_SECONDS
        while not self._has_room(counted_bytes(size)) and loop.time() < deadline:
            await self._budget.wait_for_release(deadline)
        return self.reserve(size)

    def change(self, difference: int) -> None:
        """Add to the bytes in flight, or release some if ``difference`` is negative.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED if the budget has no room for them.
        """
        if not self._has_room(difference):
            raise self._refusal(difference)
        self.used += difference
        self._budget.used += difference
        if difference < 0:
            self._budget.notify()

    def _has_room(self, difference: int) -> bool:
        is_within_budget = self._budget.used + difference <= self._budget.limit
        return difference <= 0 or (self._is_within_share(difference) and is_within_budget)

    def _is_within_share(self, difference: int) -> bool:
        return self.used + difference <= self._budget.limit // 2

    def _refusal(self, difference: int) -> AppError:
        """Return the error for bytes that the budget has no room for, count it, and log it now and then."""
        count_refusal(LIMIT_NAME, "process" if self._is_within_share(difference) else "caller")
        self._budget.refusal_log.report(LIMIT_NAME, self.account)
        message = "Too many bytes are being sent or are unread; see AGUI_MAX_BYTES_IN_FLIGHT."
        return AppError(ErrorCode.RATE_LIMIT_EXCEEDED, message, wait_seconds=RETRY_SECONDS)


class Reservation:
    """Bytes of one body, frame or response. A context manager, which releases them at its end."""

    __slots__ = ("_counted", "_share")

    def __init__(self, share: CallerBytes) -> None:
        self._share = share
        self._counted = 0

    @property
    def size(self) -> int:
        """Bytes that count."""
        return self._counted

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.resize(0)

    def resize(self, size: int) -> None:
        """Count ``size`` bytes from now on.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED if the budget has no room for them. Then nothing changes.
        """
        counted = counted_bytes(size)
        if counted != self._counted:
            self._share.change(counted - self._counted)
            self._counted = counted


def share_of(connection: HTTPConnection) -> CallerBytes:
    """Return the share that ``CallerMiddleware`` has put into the scope."""
    share: CallerBytes = connection.scope["state"][SHARE]
    return share


def response_bytes(connection: HTTPConnection) -> Reservation:
    """Return the reservation for the response of a request.

    The bytes count from the time at which the data of the response are read. ``CallerMiddleware``, which has put the
    reservation into the scope, releases it at the end of the request.
    """
    reservation: Reservation = connection.scope["state"][RESPONSE_BYTES]
    return reservation


def counted_bytes(size: int) -> int:
    """Return the bytes that count of a body, frame or response of this size."""
    return size if size > SMALL_BYTES else 0
