"""The bus over streams of Redis or Valkey.

Rule: a batch is one stream entry whose id is the batch's last ``seq``. The server therefore rejects batches that it
already has, and a reader's position in the stream is its position in the run. Streams are trimmed and expire. Every
wait has a timeout.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from ag_ui.core import EventType
from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import RedisError
from redis.typing import EncodableT, FieldT

from agui_container.ports.bus import SILENCE, BusUnavailable, skip_seen
from agui_container.ports.records import RunKey
from agui_container.protocol.envelope import Envelope
from agui_container.telemetry.instruments import BUS_DURATION, CallTimer

TIMEOUT_SECONDS = 5.0
"""Limit of one answer of the server."""

DEFAULT_PORT = 6379

MAX_REASON = 300
"""Characters of the client library's reason."""

KEPT_ENTRIES = 1_000
"""Batches of a run at which its stream is trimmed."""

KEPT_SECONDS = 120
"""Seconds after which a stream without new entries expires. Later followers read the store."""

READ_ENTRIES = 16
"""Maximum number of batches per read. Each may be as large as one flush of a run's log."""

FOLLOWERS = 5_000
"""Maximum number of connections of one process that wait for events. A server accepts 10,000 clients by default."""

WRITERS = 50
"""Maximum number of connections for publishing, which are in use only briefly. Further calls wait for one."""

DUPLICATE_ID = "equal or smaller"
"""Part of the server's error message for an id that is not greater than the stream's last id."""

Entry = tuple[bytes, Mapping[bytes, bytes]]


class RedisBus:
    """A ``Bus`` on Redis or Valkey. Each follower waits on a connection of its own.

    Args:
        url: URL of the server.
        timeout: limit of one answer of the server, in seconds.

    Raises:
        ValueError: ``url`` is not a URL of Redis.
    """

    def __init__(self, url: str, timeout: float = TIMEOUT_SECONDS) -> None:
        # Separate pools: waiting followers must not take the connections for publishing.
        self._writers, self._followers = (
            Redis.from_pool(
                BlockingConnectionPool.from_url(
                    url,
                    protocol=2,
                    socket_connect_timeout=timeout,
                    socket_timeout=None,
                    max_connections=connections,
                    timeout=timeout,
                )
            )
            for connections in (WRITERS, FOLLOWERS)
        )
        self._timeout = timeout
        server = urlsplit(url)
        self._name = f"the bus at {server.hostname}:{server.port or DEFAULT_PORT}" if server.hostname else "the bus"

    async def publish(self, run: RunKey, envelopes: Sequence[Envelope]) -> None:
        """Add an entry unless it is a duplicate, and renew the expiry of the stream, in one round trip.

        The first entry of a run deletes the stream first, because it may be that of a deleted run with the same id.
        """
        if not envelopes:
            return
        fields: dict[FieldT, EncodableT] = {f"{each.seq}:{each.type.value}": each.data for each in envelopes}
        stream, pipeline = _stream(run), self._writers.pipeline(transaction=False)
        if envelopes[0].seq == 1:
            pipeline.delete(stream)
        pipeline.xadd(stream, fields, f"{envelopes[-1].seq}-0", maxlen=KEPT_ENTRIES)
        pipeline.expire(stream, KEPT_SECONDS)
        with CallTimer(BUS_DURATION, "redis", "publish"):
            async with self._bus_errors(self._timeout):
                for answer in await pipeline.execute(raise_on_error=False):
                    if isinstance(answer, RedisError) and DUPLICATE_ID not in str(answer):
                        raise answer

    async def follow(self, run: RunKey, after: int, silence: float = SILENCE) -> AsyncIterator[Sequence[Envelope]]:
        """Yield the envelopes after ``seq`` ``after`` in batches. Raises ``EventGap`` if there is a gap."""
        while True:
            entries = await self._after(_stream(run), f"{after}-0", silence)
            batch = skip_seen(after, [envelope for entry in entries for envelope in _envelopes(run.run_id, entry)])
            after += len(batch)
            yield batch

    async def open(self) -> None:
        """Connect. Raises ``BusUnavailable``."""
        async with self._bus_errors(self._timeout):
            await self._writers.ping()

    async def aclose(self) -> None:
        for redis in (self._writers, self._followers):
            await redis.aclose()

    async def _after(self, stream: str, name: str, seconds: float) -> Sequence[Entry]:
        """Wait for entries after the entry ``name`` and return them. Return nothing after ``seconds``."""
        async with self._bus_errors(seconds + self._timeout):
            block = max(1, round(seconds * 1000))
            read = ("XREAD", "COUNT", READ_ENTRIES, "BLOCK", block, "STREAMS", stream, name)
            streams: list[tuple[bytes, list[Entry]]] | None = await self._followers.execute_command(*read)  # type: ignore[no-untyped-call]
        return streams[0][1] if streams else []

    @asynccontextmanager
    async def _bus_errors(self, seconds: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise BusUnavailable(f"{self._name} did not answer within {seconds:g} seconds") from error
        except (RedisError, OSError) as error:
            reason = next(iter(str(error).splitlines()), "")[:MAX_REASON]
            raise BusUnavailable(f"{self._name} failed: {type(error).__name__}: {reason}") from error


def _stream(run: RunKey) -> str:
    return f"agui:run:{json.dumps(run)}"


def _envelopes(run_id: str, entry: Entry) -> Iterator[Envelope]:
    """Yield the envelopes of an entry. Its field names are ``SEQ:TYPE``."""
    for field, data in entry[1].items():
        seq, _, kind = field.decode().partition(":")
        yield Envelope(run_id, int(seq), EventType(kind), data)
