"""A stretch of network between a store and its database, that a test can cut and stop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import URL


class Relay:
    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._tasks: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def restore(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stall(self) -> None:
        self._flows.clear()

    def flow(self) -> None:
        self._flows.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there: asyncio.StreamWriter | None = None
        try:
            from_there, there = await asyncio.open_connection(*self._target)
            await asyncio.gather(self._pass(reader, there), self._pass(from_there, writer))
        except (OSError, asyncio.CancelledError):
            pass  # cut, or hung up
        finally:
            for each in filter(None, (writer, there)):
                each.close()
            self._tasks.discard(task)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            await self._flows.wait()
            sink.write(data)
            await sink.drain()
        sink.close()


@asynccontextmanager
async def open_relay(url: URL) -> AsyncIterator[tuple[Relay, URL]]:
    relay = Relay(url.host or "", url.port or 0)
    await relay.restore()
    try:
        yield relay, url.set(port=relay.port)
    finally:
        await relay.cut()
