"""What tells replicas of each other's runs while they go on: events as they come, and commands to whoever runs.

Rule: a bus is quick and forgets; the store knows. An event is stored before it is published, and whoever follows a run
notices what it has missed and reads the store. Nothing here decides who runs what.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from agui_container.ports.records import RunKey
from agui_container.protocol.wire.envelope import Envelope

SILENCE = 5.0
"""Seconds without an event after which a follower is told that there was none."""


class BusUnavailable(Exception):
    """The bus is gone or too slow. The text is for the log; the same call may succeed later."""


class Missed(Exception):
    """Events that a follower has not seen are no longer on the bus: read the store, and follow from there."""


class Bus(Protocol):
    """Every method raises ``BusUnavailable``; nothing of a client's own errors leaves it."""

    async def publish(self, run: RunKey, envelopes: Sequence[Envelope]) -> None:
        """Tell followers of what comes next in a run. What was published already is not published again."""

    def follow(self, run: RunKey, after: int, silence: float = SILENCE) -> AsyncIterator[Sequence[Envelope]]:
        """What comes after ``seq`` ``after``, in order, without gaps, batch by batch, until the iterator is closed.

        An empty batch says that nothing came for ``silence`` seconds: time to ask the store whether the run still goes
        on, because a replica that died says nothing.

        Raises:
            Missed: there is a gap before what comes next.
        """

    async def send(self, replica: str, command: bytes) -> None:
        """Send a command to a replica. Whether it is there is not known; the effect shows in the run's events."""

    def commands(self, replica: str) -> AsyncIterator[bytes]:
        """The commands that were sent to a replica, from its beginning on, until the iterator is closed."""

    async def open(self) -> None:
        """Connect."""

    async def aclose(self) -> None:
        """Let go of connections. Nothing is asked any more."""
