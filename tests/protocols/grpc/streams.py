"""Calls of gRPC without a connection, whose clients send a part of a message, or take replies when a test says so."""

import asyncio
from types import SimpleNamespace
from typing import Any

from agui_container.protocols.gen import kontekst_pb2 as kontekst
from agui_container.protocols.grpc.call import PIECE_BYTES, PREFIX, Call, CallAdmission
from agui_container.protocols.grpc.options import GrpcOptions
from agui_container.web.authentication import NO_AUTHENTICATION
from tests.engine.doubles import caller

SIZE = 3 * PIECE_BYTES
MAX_BYTES = 100 * SIZE


def start(size: int = SIZE) -> bytes:
    return kontekst.RunCommand(start=kontekst.StartRunCommand(prompt="x" * size)).SerializeToString()


class Sender:
    """The stream of a client that sends so many bytes of a message, and then nothing."""

    def __init__(self, body: bytes, sent: int | None = None, encoding: str = "") -> None:
        data = PREFIX.pack(bool(encoding), len(body)) + body
        self._data = data if sent is None else data[: PREFIX.size + sent]
        self.headers = [("grpc-encoding", encoding)]

    async def recv_data(self, size: int) -> bytes:
        if len(self._data) < size:
            await asyncio.Event().wait()
        data, self._data = self._data[:size], self._data[size:]
        return data


class Reader:
    """The stream of a client that takes replies once it ``is_reading``, and ``window`` bytes of each piece before.

    ``offered`` counts the pieces so far, and ``data_sent`` the bytes that the client has taken.
    """

    closable = True

    def __init__(self, window: int = 0) -> None:
        self.headers: list[tuple[str, str]] = []
        self.is_reading = asyncio.Event()
        self.offered = self.data_sent = 0
        self._window = window

    async def send_data(self, data: bytes) -> None:
        self.offered += 1
        self.data_sent += self._window
        await self.is_reading.wait()
        self.data_sent += len(data) - self._window


def call_of(client: Sender | Reader) -> Call[Any, Any]:
    stream: Any = SimpleNamespace(
        _stream=client,
        _recv_type=kontekst.RunCommand,
        _send_initial_metadata_done=True,
        _send_message_done=False,
        deadline=None,
    )
    options = GrpcOptions(
        MAX_BYTES, by_session=False, origins=(), authentication=NO_AUTHENTICATION, limits_by_session=False
    )
    return Call(stream, caller(), CallAdmission(options))
