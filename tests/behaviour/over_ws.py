"""A client over WebSocket, one connection per stream. It asks for ``?cursor=1`` and takes the numbers out again."""

from collections import deque
from typing import Any

from websockets.asyncio.client import ClientConnection

from agui_container.engine.engine import Engine
from tests.behaviour.client import TERMINAL, Client, Refused, RunStream
from tests.engine.doubles import FakeClock, Json
from tests.websocket import receive_frame, send, socket_to


class Socket:
    """A connection that tells control frames from events."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.events: deque[Json] = deque()

    async def send(self, body: Json | str) -> None:
        await send(self.connection, body)

    async def event(self) -> Json:
        return self.events.popleft() if self.events else await receive_frame(self.connection)

    async def control(self) -> Json:
        """Return the next control frame, and store the events before it. Raises ``Refused`` for an error."""
        while "control" not in (frame := await receive_frame(self.connection)):
            self.events.append(frame)
        if frame["control"] == "error":
            raise Refused(frame["code"], frame["message"], frame["requestId"], frame.get("retryAfter"))
        return frame

    async def wait_until_handled(self) -> None:
        """Wait until the server has executed all earlier requests. Raise ``Refused`` if it refused one."""
        await self.send({"command": {"type": "threads.list", "limit": 1}})
        while (frame := await self.control())["command"] != "threads.list":
            assert frame["command"] == "attach"


class WsStream(RunStream):
    """The frames of one run up to its terminal event, which must be the last."""

    def __init__(self, service: Engine, socket: Socket) -> None:
        super().__init__(service)
        self.socket = socket
        self._ended = False

    async def _receive(self) -> tuple[int, Json] | None:
        if self._ended:
            await self.socket.wait_until_handled()
            assert not self.socket.events
            await self.close()
            return None
        event = await self.socket.event()
        assert "type" in event
        seq = self._take_number(event)
        self._ended = event["type"] in TERMINAL
        return seq, event

    def _take_number(self, event: Json) -> int:
        seq: int = event["metadata"].pop("seq")
        if not event["metadata"]:
            del event["metadata"]
        return seq

    async def close(self) -> None:
        await self.socket.connection.close()


class OverWs(Client):
    transport = "ws"

    def __init__(self, service: Engine, clock: FakeClock, url: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(service, clock, headers)
        self.url = url
        self.connections: list[ClientConnection] = []

    async def connect(self, query: str = "", **options: Any) -> ClientConnection:  # noqa: ANN401 - of ``socket_to``
        connection = await socket_to(self.url, f"/ws{query}", **{"additional_headers": self.headers, **options})
        self.connections.append(connection)
        return connection

    async def socket(self) -> Socket:
        return Socket(await self.connect("?cursor=1", compression=None))

    async def start(self, body: Json | str) -> WsStream:
        socket = await self.socket()
        await socket.send(body)
        await socket.wait_until_handled()
        return WsStream(self.service, socket)

    async def command(self, body: Json) -> Json:
        socket = await self.socket()
        await socket.send(body)
        answer = await socket.control()
        await socket.connection.close()
        if answer.pop("control") == "pong":
            return {"command": "ping", "pong": True}
        return answer

    async def close(self) -> None:
        for connection in self.connections:
            await connection.close()
