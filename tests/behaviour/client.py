"""Clients for tests, with one interface over all transports: event streams, command responses and refusals."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

from agui_container.engine.engine import Engine
from tests.engine.doubles import WAIT, FakeClock, Json, ask, eventually
from tests.secret_search import search

TERMINAL = ("RUN_FINISHED", "RUN_ERROR")
DELTAS = ("TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT")


class Refused(Exception):
    """Error of a request that was answered without a run. ``retry_after`` is the wait in seconds, or None."""

    def __init__(self, code: str, message: str, request_id: str, retry_after: int | None = None) -> None:
        super().__init__(code, message)
        search(message, "an error")
        self.code = code
        self.message = message
        self.request_id = request_id
        self.retry_after = retry_after


class RunStream(ABC):
    """One reader of one run. ``seqs`` are the numbers of the events read so far."""

    def __init__(self, service: Engine) -> None:
        self.seqs: list[int] = []
        self._service = service
        self._over = False

    async def next(self) -> Json | None:
        """Return the next event, or None at the end of the stream."""
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
        """Read events up to one of this type, and return that one."""
        while (event := await self.next()) is not None:
            if event["type"] == event_type:
                return event
        raise AssertionError(f"the stream ended without {event_type}")

    async def rest(self) -> list[Json]:
        events: list[Json] = []
        while (event := await self.next()) is not None:
            events.append(event)
        return events

    async def leave(self) -> None:
        """Disconnect, and wait until the server has noticed."""
        before = self._readers()
        await self.close()
        if not self._over:
            self._over = True
            await eventually(lambda: self._readers() < before)

    def _readers(self) -> int:
        return sum(run.readers.local for run in self._service.registry.by_key.values())

    @abstractmethod
    async def _receive(self) -> tuple[int, Json] | None:
        """Return one event and its number, or None at the end."""

    @abstractmethod
    async def close(self) -> None:
        """Drop the connection."""


class Client(ABC):
    transport: str

    def __init__(self, service: Engine, clock: FakeClock, headers: dict[str, str] | None = None) -> None:
        self.service = service
        self.clock = clock
        self.headers = headers or {}
        self.streams: list[RunStream] = []

    def with_headers(self, **headers: str) -> Self:
        """Return the same client with more headers. Underscores stand for dashes."""
        client = copy(self)
        client.headers = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        return client

    def session(self, name: str) -> Self:
        """Return the same client in a session."""
        return self.with_headers(x_amzn_bedrock_agentcore_runtime_session_id=name)

    @abstractmethod
    async def start(self, body: Json | str) -> RunStream:
        """Start a run or an ``attach``, and return its stream. Raises ``Refused``."""

    @abstractmethod
    async def command(self, body: Json) -> Json:
        """Send a command and return its answer. Raises ``Refused``."""

    async def run(self, body: Json | str) -> list[Json]:
        return await (await self.start(body)).rest()

    async def attach(self, thread: str | None, run: str | None, after: int | None = None) -> RunStream:
        fields = {"threadId": thread, "runId": run, "after": after}
        given = {name: value for name, value in fields.items() if value is not None}
        return await self.start({"command": {"type": "attach", **given}})

    async def cancel(self, thread: str | None, run: str | None = None) -> Json:
        """End a run, or the active one of a thread."""
        given = {name: value for name, value in {"threadId": thread, "runId": run}.items() if value is not None}
        return await self.command({"command": {"type": "cancel", **given}})

    async def close(self) -> None:
        for stream in self.streams:
            await stream.close()


async def begin_run(client: Client, run: str = "r1", thread: str = "t1", **fields: Any) -> RunStream:  # noqa: ANN401 - as in JSON
    """Start a run and read it up to its first text."""
    stream = await client.start(ask(thread, run, **fields))
    await stream.until("TEXT_MESSAGE_CONTENT")
    return stream


def types(events: Sequence[Json]) -> list[str]:
    """Return the types of the events. Consecutive deltas count once, because a transport may merge them."""
    names = [event["type"] for event in events]
    return [name for at, name in enumerate(names) if name not in DELTAS or names[at - 1 : at] != [name]]


def text(events: Sequence[Json]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


def outcome(events: Sequence[Json]) -> str:
    """Return the end of a run: the type of its outcome, or the code of its error."""
    last = events[-1]
    return str(last["outcome"]["type"] if last["type"] == "RUN_FINISHED" else last["code"])


def custom_values(events: Sequence[Json], name: str) -> list[Json]:
    return [event["value"] for event in events if event["type"] == "CUSTOM" and event["name"] == name]
