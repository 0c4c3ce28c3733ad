"""Buses that carry the events of runs between replicas, and the one of a process on its own.

Rule: buses import the ports, never the engine. The client of a server is imported only if the URL names one.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence

from agui_container.ports.bus import SILENCE, Bus
from agui_container.ports.records import RunKey
from agui_container.protocol.envelope import Envelope

KINDS = "memory, redis://HOST:PORT/NUMBER, rediss://USER:PASSWORD@HOST:PORT/NUMBER"


def open_bus(url: str) -> Bus:
    """Return the bus that a URL names. The caller opens it before the first use. Valkey uses the URLs of Redis.

    Raises:
        ValueError: The URL names no bus. The message lists the valid forms. It does not repeat the URL, because the URL
            may contain a password.
    """
    if url == "memory":
        return NoBus()
    kind, _, rest = url.partition("://")
    if kind not in {"redis", "rediss"} or not rest.strip("/"):
        raise ValueError(f"must be one of {KINDS}")
    from agui_container.replicas.buses.redis import RedisBus  # noqa: PLC0415 - imported only if it is used

    try:
        return RedisBus(url)
    except ValueError:
        raise ValueError(f"must be one of {KINDS}") from None


class NoBus:
    """The ``Bus`` of a process that has no other replica to talk to. It carries nothing.

    A process reads its own runs without a bus. Runs that an earlier process has left are read from the store.
    """

    async def publish(self, run: RunKey, envelopes: Sequence[Envelope]) -> None:
        """Do nothing."""

    async def follow(self, _run: RunKey, _after: int, silence: float = SILENCE) -> AsyncIterator[Sequence[Envelope]]:
        """Yield an empty batch every ``silence`` seconds."""
        while True:
            await asyncio.sleep(silence)
            yield ()

    async def open(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""
