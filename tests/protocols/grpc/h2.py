"""An HTTP/2 client that a test drives frame by frame, for frames that no gRPC library sends.

Its functions block, so a test runs them ``beside`` a server in its event loop.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

import h2.config
import h2.connection
import h2.events
from h2.settings import SettingCodes

from agui_container.protocols.gen import kontekst_pb2 as kontekst
from tests.engine.doubles import WAIT
from tests.protocols.grpc.client import RUN
from tests.sse import http_client

STATUS = "/kontekst.DaemonService/GetStatus"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

T = TypeVar("T")


class Raw:
    """One connection. ``events`` are all that h2 has understood so far."""

    def __init__(self, port: int, *, window: int | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), WAIT)
        config = h2.config.H2Configuration(client_side=True, header_encoding="ascii", validate_outbound_headers=False)
        self.h2 = h2.connection.H2Connection(config)
        if window is not None:
            self.h2.local_settings[SettingCodes.INITIAL_WINDOW_SIZE] = window
            self.h2.local_settings.acknowledge()
        self.events: list[h2.events.Event] = []
        self.is_open = True

    def __enter__(self) -> Self:
        self.h2.initiate_connection()
        self.flush()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def flush(self) -> None:
        self.send(self.h2.data_to_send())

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def call(self, path: str, *headers: tuple[str, str], end: bool = False) -> int:
        grpc = ("content-type", "application/grpc+proto"), ("te", "trailers")
        return self.request("POST", path, *grpc, *headers, end=end)

    def request(self, method: str, path: str, *headers: tuple[str, str], end: bool = False) -> int:
        stream = self.h2.get_next_available_stream_id()
        pseudo = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "here")]
        self.h2.send_headers(stream, [*pseudo, *headers], end_stream=end)
        self.flush()
        return stream

    def data(self, stream: int, data: bytes, *, end: bool = False) -> None:
        """Send data of a call, within the frame size."""
        size = self.h2.max_outbound_frame_size
        for at in range(0, max(len(data), 1), size):
            self.h2.send_data(stream, data[at : at + size], end_stream=end and at + size >= len(data))
        self.flush()

    def read(self, *, acknowledge: bool = True) -> bool:
        """Take what comes next; whether there was something."""
        try:
            data = self.socket.recv(65_536)
        except ConnectionError:
            data = b""
        if not data:
            self.is_open = False
            return False
        events = self.h2.receive_data(data)
        self.events += events
        if acknowledge:
            for event in events:
                if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        with contextlib.suppress(ConnectionError):
            self.flush()
        return True

    def until(self, kind: type[h2.events.Event]) -> h2.events.Event:
        while True:
            for event in self.events:
                if isinstance(event, kind):
                    return event
            if not self.read():
                raise ConnectionError(f"closed without {kind.__name__}: {self.events}")

    def ping(self) -> None:
        """Wait until the server has handled what was sent."""
        self.h2.ping(bytes(8))
        self.flush()
        self.events.clear()
        self.until(h2.events.PingAckReceived)

    def status(self, stream: int) -> tuple[str, str]:
        while True:
            for event in self.events:
                if isinstance(event, (h2.events.TrailersReceived, h2.events.ResponseReceived)):
                    headers = text(event.headers)
                    if event.stream_id == stream and "grpc-status" in headers:
                        return headers["grpc-status"], headers.get("grpc-message", "")
            if not self.read():
                raise ConnectionError(f"closed without a status: {self.events}")

    def goodbye(self) -> int | None:
        """The reason for which the connection ends; read to its close."""
        while self.read():
            pass
        return next(it.error_code for it in self.events if isinstance(it, h2.events.ConnectionTerminated))

    def body(self, stream: int) -> bytes:
        return b"".join(e.data for e in self.events if isinstance(e, h2.events.DataReceived) and e.stream_id == stream)


def text(headers: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    """Headers by name; h2 decodes them, although its types say bytes."""
    return dict(headers)


def message(body: bytes, *, compressed: bool = False) -> bytes:
    return bytes([compressed]) + len(body).to_bytes(4, "big") + body


async def beside(function: Callable[..., T], *arguments: object) -> T:
    """Run a blocking client function in a thread."""
    return await asyncio.to_thread(function, *arguments)


@contextlib.asynccontextmanager
async def raw(port: int, window: int | None = None) -> AsyncIterator[Raw]:
    with Raw(port, window=window) as client:
        await beside(client.until, h2.events.SettingsAcknowledged)
        yield client


async def begin_run(client: Raw, thread: str = "") -> int:
    """Start a run and wait for its first data."""
    stream = client.call(RUN)
    start = kontekst.StartRunCommand(prompt="hi", session_id=thread)
    client.data(stream, message(kontekst.RunCommand(start=start).SerializeToString()))
    await beside(client.until, h2.events.DataReceived)
    return stream


async def answers(port: int) -> bool:
    """Return True if the server answers another client over gRPC and over HTTP."""
    async with raw(port) as client, http_client(f"http://127.0.0.1:{port}") as http:
        stream = client.call(STATUS)
        client.data(stream, message(b""), end=True)
        return (await beside(client.status, stream))[0] == "0" and (await http.get("/ping")).is_success
