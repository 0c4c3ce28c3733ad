"""Clients for tests, with one interface over all transports: event streams, command responses and refusals."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from agui_container.engine.service import Service
from tests.engine.doubles import WAIT, FakeClock, Json, ask, eventually
from tests.secret_search import search

TERMINAL = ("RUN_FINISHED", "RUN_ERROR")
DELTAS = ("TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT")


class Refused(Exception):
    """A request was answered with an error instead of a run. ``retry_after`` are the seconds to wait, if it says so."""

    def __init__(self, code: str, message: str, request_id: str, retry_after: int | None = None) -> None:
        super().__init__(code, message)
        search(message, "an error")
        self.code = code
        self.message = message
        self.request_id = request_id
        self.retry_after = retry_after


class RunStream(ABC):
    """One reader of one run. ``seqs`` are the numbers of the events that were taken so far."""

    def __init__(self, service: Service) -> None:
        self.seqs: list[int] = []
        self._service = service
        self._over = False

    async def next(self) -> Json | None:
        """The next event; None at the end of the stream."""
        if self._over:
            return None
        async with asyncio.timeout(WAIT):
            received = await self._receive()
        if received is None:
            self._over = True
            return None
        self.seqs.append(received[0])
        return received[1]

    async def until(self, event_type: str) -> Json:
        """Take events until one of this type, and give that one."""
        while (event := await self.next()) is not None:
            if event["type"] == event_type:
                return event
        raise AssertionError(f"the stream ended without {event_type}")

    async def rest(self) -> list[Json]:
        """All that is still to come."""
        events: list[Json] = []
        while (event := await self.next()) is not None:
            events.append(event)
        return events

    async def leave(self) -> None:
        """Stop watching, as a client that goes away does; done when the server has noticed."""
        before = self._readers()
        await self.close()
        if not self._over:
            self._over = True
            await eventually(lambda: self._readers() < before)

    def _readers(self) -> int:
        return sum(run.presence.local for run in self._service.registry.by_key.values())

    @abstractmethod
    async def _receive(self) -> tuple[int, Json] | None:
        """One event and its number; None at the end."""

    @abstractmethod
    async def close(self) -> None:
        """Drop the connection."""


class Client(ABC):
    """A client of one server.

    Args:
        service: the server's engine, for tests of what no client can see.
        clock: the server's time.
        headers: what every request carries.
    """

    transport: str

    def __init__(self, service: Service, clock: FakeClock, headers: dict[str, str] | None = None) -> None:
        self.service = service
        self.clock = clock
        self.headers = headers or {}
        self.streams: list[RunStream] = []

    @abstractmethod
    def having(self, **headers: str) -> Self:
        """The same client with other headers; underscores stand for dashes."""

    @abstractmethod
    async def start(self, body: Json | str) -> RunStream:
        """Ask for a run or for ``attach``, and read. Raises ``Refused``."""

    @abstractmethod
    async def command(self, body: Json) -> Json:
        """Ask something that has one answer. Raises ``Refused``."""

    async def run(self, body: Json | str) -> list[Json]:
        """A whole run."""
        return await (await self.start(body)).rest()

    async def attach(self, thread: str | None, run: str | None, after: int | None = None) -> RunStream:
        """Read a run that exists."""
        fields = {"threadId": thread, "runId": run, "after": after}
        given = {name: value for name, value in fields.items() if value is not None}
        return await self.start({"command": {"type": "attach", **given}})

    async def cancel(self, thread: str | None, run: str | None = None) -> Json:
        """End a run, or the active one of a thread."""
        given = {name: value for name, value in {"threadId": thread, "runId": run}.items() if value is not None}
        return await self.command({"command": {"type": "cancel", **given}})

    async def close(self) -> None:
        """Drop all connections."""
        for stream in self.streams:
            await stream.close()


async def begin_run(client: Client, run: str = "r1", thread: str = "t1", **fields: Any) -> RunStream:  # noqa: ANN401 - as in JSON
    """A run that has said something."""
    stream = await client.start(ask(thread, run, **fields))
    await stream.until("TEXT_MESSAGE_CONTENT")
    return stream


def types(events: Sequence[Json]) -> list[str]:
    """The events' types; neighbouring deltas count once, because a transport may merge them."""
    names = [event["type"] for event in events]
    return [name for at, name in enumerate(names) if name not in DELTAS or names[at - 1 : at] != [name]]


def text(events: Sequence[Json]) -> str:
    """All text of the messages."""
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


def join_deltas(events: Sequence[Json]) -> list[Json]:
    """Return the events with neighbouring deltas joined."""
    whole: list[Json] = []
    for event in events:
        same = whole and {**whole[-1], "delta": None} == {**event, "delta": None}
        if same and event["type"] in DELTAS:
            whole[-1] = {**event, "delta": whole[-1]["delta"] + event["delta"]}
        else:
            whole.append(event)
    return whole


def outcome(events: Sequence[Json]) -> str:
    """Return the end of a run: the type of its outcome, or the code of its error."""
    last = events[-1]
    return str(last["outcome"]["type"] if last["type"] == "RUN_FINISHED" else last["code"])
