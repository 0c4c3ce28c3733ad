"""The bus of Redis or Valkey, by their streams.

Rule: a batch is one entry whose id is its last ``seq``, so the server itself refuses what it has already, and a reader
names a place in the run and no other thing. Streams are trimmed and expire. Every wait has an end.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager

from ag_ui.core import EventType
from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import RedisError
from redis.typing import EncodableT, FieldT

from agui_container.buses.dedupe import skip_seen
from agui_container.ports.bus import SILENCE, BusUnavailable
from agui_container.ports.records import RunKey
from agui_container.protocol.wire.envelope import Envelope

PATIENCE = 5.0
"""Seconds that the server may take to answer."""

KEPT_ENTRIES = 1_000
"""About as many batches of a run, or commands of a replica, are kept."""

KEPT_SECONDS = 120
"""For how long a stream is kept that nothing is added to. Who comes later reads the store."""

READ_ENTRIES = 16
"""Batches that a follower is given at once: each may be as much as a log hands out."""

FOLLOWERS = 5_000
"""Connections of one process that wait for events; a server takes 10,000 unless it is told otherwise."""

SPEAKERS = 50
"""Connections that are free again at once; who finds none waits for one."""

IS_THERE = "equal or smaller"
"""What the server says to an id that is not beyond its last."""

Entry = tuple[bytes, Mapping[bytes, bytes]]


class RedisBus:
    """A ``Bus`` on Redis. A follower waits on a connection of its own.

    Args:
        url: of the server. Raises ``ValueError`` when it is none.
        patience: seconds.
    """

    def __init__(self, url: str, retry_policy: float = PATIENCE) -> None:
        # Apart: however many wait, there is a connection to speak on, and one to hear commands.
        self._speaking, self._hearing, self._following = (
            Redis.from_pool(
                BlockingConnectionPool.from_url(
                    url,
                    protocol=2,
                    socket_connect_timeout=retry_policy,
                    socket_timeout=None,
                    max_connections=connections,
                    timeout=retry_policy,
                )
            )
            for connections in (SPEAKERS, 1, FOLLOWERS)
        )
        self._retry_policy = retry_policy

    async def publish(self, run: RunKey, envelopes: Sequence[Envelope]) -> None:
        """Tell followers of what comes next in a run."""
        if envelopes:
            fields: dict[FieldT, EncodableT] = {
                f"{envelope.seq}:{envelope.type.value}": envelope.data for envelope in envelopes
            }
            await self._add(_run(run), f"{envelopes[-1].seq}-0", fields, anew=envelopes[0].seq == 1)

    async def follow(self, run: RunKey, after: int, silence: float = SILENCE) -> AsyncIterator[Sequence[Envelope]]:
        """What comes after ``seq`` ``after``."""
        while True:
            entries = await self._after(self._following, _run(run), f"{after}-0", silence)
            batch = skip_seen(after, [it for entry in entries for it in _envelopes(run.run_id, entry)])
            after += len(batch)
            yield batch

    async def send(self, replica: str, command: bytes) -> None:
        """Send a command to a replica."""
        await self._add(_replica(replica), "*", {"command": command})

    async def commands(self, replica: str) -> AsyncIterator[bytes]:
        """The commands that were sent to a replica."""
        last = "0-0"
        while True:
            for name, fields in await self._after(self._hearing, _replica(replica), last, SILENCE):
                last = name.decode()
                yield fields[b"command"]

    async def open(self) -> None:
        """Connect."""
        async with self._with_timeout(self._retry_policy):
            await self._speaking.ping()

    async def aclose(self) -> None:
        """Let go of connections."""
        for redis in (self._speaking, self._hearing, self._following):
            await redis.aclose()

    async def _add(self, stream: str, name: str, fields: Mapping[FieldT, EncodableT], *, anew: bool = False) -> None:
        """One entry, unless it is there already, and another while for the stream: in one round trip.

        ``anew`` is for the first entry of a run: what is there is of a run of this name that was deleted.
        """
        async with self._with_timeout(self._retry_policy):
            both = self._speaking.pipeline(transaction=False)
            if anew:
                both.delete(stream)
            both.xadd(stream, dict(fields), name, maxlen=KEPT_ENTRIES)
            both.expire(stream, KEPT_SECONDS)
            for answer in await both.execute(raise_on_error=False):
                if isinstance(answer, RedisError) and IS_THERE not in str(answer):
                    raise answer

    async def _after(self, redis: Redis, stream: str, name: str, seconds: float) -> Sequence[Entry]:
        """What comes after an entry, as soon as there is any; nothing once ``seconds`` are over."""
        async with self._with_timeout(seconds + self._retry_policy):
            block = max(1, round(seconds * 1000))
            read = ("XREAD", "COUNT", READ_ENTRIES, "BLOCK", block, "STREAMS", stream, name)
            found: list[tuple[bytes, list[Entry]]] | None = await redis.execute_command(*read)  # type: ignore[no-untyped-call]
        return found[0][1] if found else []

    @asynccontextmanager
    async def _with_timeout(self, seconds: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise BusUnavailable(f"the bus did not answer within {seconds:g} seconds") from error
        except (RedisError, OSError) as error:
            raise BusUnavailable(f"the bus failed: {type(error).__name__}") from error


def _run(run: RunKey) -> str:
    return f"agui:run:{json.dumps(run)}"


def _replica(replica: str) -> str:
    return f"agui:replica:{replica}"


def _envelopes(run_id: str, entry: Entry) -> Iterator[Envelope]:
    """The envelopes of an entry, whose fields are ``SEQ:TYPE``."""
    for field, data in entry[1].items():
        seq, _, kind = field.decode().partition(":")
        yield Envelope(run_id, int(seq), EventType(kind), data)
