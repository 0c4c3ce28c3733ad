"""Subscriptions: positions in a run's events, from any ``seq`` on.

Rule: every transport reads runs by a subscription, whether the run is in this process, in the store or on another
replica. A subscription stores only its position, so a slow reader costs nothing.
"""

from collections.abc import Callable
from typing import Protocol, Self

from agui_container.ports.records import RunKey
from agui_container.protocol.envelope import Batch

PushBatch = Callable[[Batch], bool]
"""Writes a batch at once, or returns False if that is impossible now. Raises nothing."""

OnClose = Callable[["Subscription"], None]
"""Called once, when a subscription is closed."""


class ReadableLog(Protocol):
    @property
    def has_ended(self) -> bool:
        """True if the run has ended, so that no more events will come."""

    def __len__(self) -> int:
        """Number of events."""


class Readable(Protocol):
    @property
    def key(self) -> RunKey:
        """Owner, thread and run."""

    @property
    def log(self) -> ReadableLog:
        """The events of the run."""

    def subscribe(self, after: int = 0, on_close: OnClose | None = None) -> "Subscription":
        """Read the events after ``seq`` ``after`` until the run ends."""


class Subscription(Protocol):
    """A position in a run's events; its owner is a reader.

    The iteration yields batches of all events that are ready, up to the size of a batch. It ends when the run has ended
    and all events were handed out, or when the subscription is closed. It raises ``AppError`` STORE_UNAVAILABLE if the
    events are read from a store and the store is unavailable.
    """

    @property
    def run(self) -> Readable:
        """The run of the events."""

    @property
    def is_exhausted(self) -> bool:
        """True if the run has ended and all its events were handed out."""

    @property
    def lag(self) -> int:
        """Number of events that are ready and were not handed out. Any thread may ask."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Batch: ...

    def push_to(self, push: PushBatch) -> None:
        """Push new events while the iteration waits. A batch that ``push`` has written is not handed out again."""

    def interrupt(self) -> None:
        """Hand out an empty batch soon if the iteration waits."""

    def close(self) -> None:
        """Stop reading; the iteration ends. Harmless when called again."""
