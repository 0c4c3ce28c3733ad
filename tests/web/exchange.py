"""One HTTP exchange without a socket: a request, and the response of an application."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Message, Scope, Send

from agui_container.web.direct_writes import CONNECTION_EXTENSION, OUTER_SEND
from tests.engine.doubles import WAIT, ask

OnSend = Callable[[bytes], Awaitable[None]]


async def send_at_once(_: bytes) -> None:
    """Accept every chunk, as an empty socket does."""


class AsgiExchange:
    """A request and the server's side of its response.

    Each message waits for ``on_send`` before it counts as written. ``takes`` decides whether the connection takes a
    chunk at once; None stands for a server without a direct way.
    """

    def __init__(
        self, on_send: OnSend = send_at_once, takes: Callable[[bytes], bool] | None = None, thread: str = "t1"
    ) -> None:
        self.messages, self.bodies = list[Message](), list[bytes]()
        self.pushed = 0
        self._on_send, self._takes, self._thread = on_send, takes, thread
        self._faults = list[str]()
        self._is_sending = self._is_over = self._is_received = False
        self._left = asyncio.Event()
        self.state: dict[str, object] = {OUTER_SEND: self.send}

    def leave(self) -> None:
        self._left.set()

    async def answer(self, app: ASGIApp, method: str = "POST", path: str = "/invocations") -> None:
        """Give the request to an application, or to a response, until it returns. Raises what it raises."""
        try:
            async with asyncio.timeout(WAIT):
                await app(self._scope(method, path), self.receive, self.send)
        finally:
            assert self._faults == []

    def _scope(self, method: str, path: str) -> Scope:
        extensions = {CONNECTION_EXTENSION: self} if self._takes is not None else {}
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [],
            "state": self.state,
            "extensions": extensions,
        }

    async def receive(self) -> Message:
        """ASGI's ``receive``: the body, and then that the client has left or has all of the response."""
        if not self._is_received:
            self._is_received = True
            return {"type": "http.request", "body": json.dumps(ask(self._thread)).encode(), "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """ASGI's ``send``. Raises ``RuntimeError`` for a second beginning, as servers do."""
        if self.messages and message["type"] == "http.response.start":
            raise RuntimeError("the response has begun")
        self._check_order()
        self._is_sending = self._is_over = True  # over if it fails
        try:
            await self._on_send(message.get("body", b""))
        finally:
            self._is_sending = False
        self.messages.append(message)
        self._record(message.get("body", b""))
        self._is_over = message["type"] == "http.response.body" and not message.get("more_body", False)
        if self._is_over:
            self.leave()

    def write_directly(self, send: Send, data: bytes) -> bool:
        """Write directly, as ``agui_container.server.uvicorn_protocols.HttpProtocol`` does."""
        self._check_order()
        if self._takes is None or send != self.send or not self._takes(data):
            return False
        self.pushed += 1
        self._record(data)
        return True

    def _check_order(self) -> None:
        if self._is_sending:
            self._faults.append("two writes at a time")
        elif self._is_over:
            self._faults.append("a write behind the end")

    def _record(self, body: bytes) -> None:
        if body:
            self.bodies.append(body)


def sequence_numbers(bodies: list[bytes]) -> list[int]:
    return [int(line[4:]) for line in b"".join(bodies).split(b"\n") if line.startswith(b"id: ")]
