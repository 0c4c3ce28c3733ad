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
from agui_container.protocol.wire.envelope import Envelope
from agui_container.telemetry.instruments import BUS_DURATION, CallTimer

TIMEOUT_SECONDS = 5.0
"""Limit of one answer of the server."""

DEFAULT_PORT = 6379

MAX_REASON = 300
"""Characters of the client library's reason."""

KEPT_ENTRIES = 1_000
"""Length at which a stream is trimmed: batches of a run, or commands of a replica."""

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
        # Separate pools: waiting followers must not take the connections for publishing and for commands.
        self._writers, self._command_readers, self._followers = (
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
            for connections in (WRITERS, 1, FOLLOWERS)
        )
        self._timeout = timeout
        server = urlsplit(url)
        self._name = f"the bus at {server.hostname}:{server.port or DEFAULT_PORT}" if server.hostname else "the bus"

    async def publish(self, run: RunKey, envelopes: Sequence[Envelope]) -> None:
        if envelopes:
            fields: dict[FieldT, EncodableT] = {
                f"{envelope.seq}:{envelope.type.value}": envelope.data for envelope in envelopes
            }
            await self._add("publish", _run(run), f"{envelopes[-1].seq}-0", fields, anew=envelopes[0].seq == 1)

    async def follow(self, run: RunKey, after: int, silence: float = SILENCE) -> AsyncIterator[Sequence[Envelope]]:
        """Yield the envelopes after ``seq`` ``after`` in batches. Raises ``EventGap`` if there is a gap."""
        while True:
            entries = await self._after(self._followers, _run(run), f"{after}-0", silence)
            batch = skip_seen(after, [envelope for entry in entries for envelope in _envelopes(run.run_id, entry)])
            after += len(batch)
            yield batch

    async def send(self, replica: str, command: bytes) -> None:
        await self._add("send", _replica(replica), "*", {"command": command})

    async def commands(self, replica: str) -> AsyncIterator[bytes]:
        last = "0-0"
        while True:
            for name, fields in await self._after(self._command_readers, _replica(replica), last, SILENCE):
                last = name.decode()
                yield fields[b"command"]

    async def open(self) -> None:
        """Connect. Raises ``BusUnavailable``."""
        async with self._bus_errors(self._timeout):
            await self._writers.ping()

    async def aclose(self) -> None:
        for redis in (self._writers, self._command_readers, self._followers):
            await redis.aclose()

    async def _add(
        self, operation: str, stream: str, name: str, fields: Mapping[FieldT, EncodableT], *, anew: bool = False
    ) -> None:
        """Add an entry unless it is a duplicate, and renew the expiry of the stream, in one round trip.

        ``anew`` deletes the stream first. The first entry of a run needs it, because the stream may be that of a
        deleted run with the same id.
        """
        pipeline = self._writers.pipeline(transaction=False)
        if anew:
            pipeline.delete(stream)
        pipeline.xadd(stream, dict(fields), name, maxlen=KEPT_ENTRIES)
        pipeline.expire(stream, KEPT_SECONDS)
        with CallTimer(BUS_DURATION, "redis", operation):
            async with self._bus_errors(self._timeout):
                for answer in await pipeline.execute(raise_on_error=False):
                    if isinstance(answer, RedisError) and DUPLICATE_ID not in str(answer):
                        raise answer

    async def _after(self, redis: Redis, stream: str, name: str, seconds: float) -> Sequence[Entry]:
        """Wait for entries after the entry ``name`` and return them. Return nothing after ``seconds``."""
        async with self._bus_errors(seconds + self._timeout):
            block = max(1, round(seconds * 1000))
            read = ("XREAD", "COUNT", READ_ENTRIES, "BLOCK", block, "STREAMS", stream, name)
            streams: list[tuple[bytes, list[Entry]]] | None = await redis.execute_command(*read)  # type: ignore[no-untyped-call]
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


def _run(run: RunKey) -> str:
    return f"agui:run:{json.dumps(run)}"


def _replica(replica: str) -> str:
    return f"agui:replica:{replica}"


def _envelopes(run_id: str, entry: Entry) -> Iterator[Envelope]:
    """Yield the envelopes of an entry. Its field names are ``SEQ:TYPE``."""
    for field, data in entry[1].items():
        seq, _, kind = field.decode().partition(":")
        yield Envelope(run_id, int(seq), EventType(kind), data)
