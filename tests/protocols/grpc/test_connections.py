"""HTTP/2 connections: the hand-over, the repairs of grpclib, the limits, and the end."""

import gzip
import socket
from queue import SimpleQueue
from typing import Any

import grpc
import h2.events
import pytest
from google.protobuf.message import Message
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from tests.engine.doubles import WAIT
from tests.protocols.conftest import ASSISTANT
from tests.protocols.grpc.client import RUN, SESSION
from tests.protocols.grpc.h2 import PREFACE, STATUS, Raw, message
from tests.server.sockets.process import ServerProcess, Servers

pytestmark = pytest.mark.wire

INVALID, EXHAUSTED, UNIMPLEMENTED, DENIED = "3", "8", "12", "7"


def start(prompt: str) -> bytes:
    return kontekst.RunCommand(start=kontekst.StartRunCommand(prompt=prompt)).SerializeToString()


def pong(server: ServerProcess) -> None:
    """The server answers somebody else."""
    with Raw(server.port) as client:
        stream = client.call(STATUS)
        client.data(stream, message(b""), end=True)
        assert client.status(stream)[0] == "0"


def test_a_preface_that_comes_byte_by_byte_is_one(server: ServerProcess) -> None:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=WAIT)
    with connection:
        for byte in PREFACE:
            connection.sendall(bytes([byte]))
        connection.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        assert connection.recv(100)[3] == 4, "a SETTINGS frame"


def test_a_request_that_begins_like_the_preface_is_http_1(server: ServerProcess) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT) as connection:
        connection.sendall(b"P")
        connection.sendall(b"RI /ping HTTP/1.1\r\nhost: here\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 4")


def test_grpc_can_be_switched_off(servers: Servers) -> None:
    server = servers(**ASSISTANT, AGUI_GRPC="off")
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT) as connection:
        connection.sendall(PREFACE)
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")


def test_a_message_above_the_limit_is_refused_before_it_is_read(servers: Servers) -> None:
    server = servers(**ASSISTANT, AGUI_MAX_BODY_BYTES="20000")
    with Raw(server.port) as client:
        stream = client.call(RUN)
        client.data(stream, b"\0" + (20_001).to_bytes(4, "big"))
        status, words = client.status(stream)
        assert (status, "20000" in words) == (EXHAUSTED, True)
        stream = client.call(RUN)
        client.data(stream, message(start("hello " * 3_000)), end=True)
        assert client.status(stream)[0] == "0"


def test_a_compressed_message_is_inflated_within_the_limit(servers: Servers) -> None:
    server = servers(**ASSISTANT, AGUI_MAX_BODY_BYTES="20000")
    with Raw(server.port) as client:
        stream = client.call(RUN, ("grpc-encoding", "gzip"))
        client.data(stream, message(gzip.compress(start("x" * 1_000_000)), compressed=True))
        assert client.status(stream)[0] == EXHAUSTED
        stream = client.call(RUN, ("grpc-encoding", "gzip"))
        client.data(stream, message(gzip.compress(start("hello"))[:-4], compressed=True))
        assert client.status(stream)[0] == INVALID
        stream = client.call(RUN, ("grpc-encoding", "gzip"))
        client.data(stream, message(b"not gzip", compressed=True))
        assert client.status(stream)[0] == INVALID
        stream = client.call(RUN, ("grpc-encoding", "snappy"))
        client.data(stream, message(b"?", compressed=True))
        assert client.status(stream)[0] == UNIMPLEMENTED
        stream = client.call(RUN, ("grpc-encoding", "gzip"))
        client.data(stream, message(gzip.compress(start("hello " * 100)), compressed=True), end=True)
        assert client.status(stream)[0] == "0"


def open_call(channel: grpc.Channel, path: str, request: Message) -> Any:
    """Open a call of grpcio with its first request. The client of the other tests closes its connection at a GOAWAY."""
    requests: SimpleQueue[bytes] = SimpleQueue()
    requests.put(request.SerializeToString())
    return channel.stream_stream(path)(iter(requests.get, None), timeout=WAIT)


def test_open_calls_have_their_last_messages_and_a_goaway_before_the_end() -> None:
    with (
        ServerProcess(**ASSISTANT) as server,
        grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel,
        Raw(server.port) as raw,
    ):
        session = open_call(channel, SESSION, roz.SessionRequest(start=roz.StartSession()))
        run = open_call(channel, RUN, kontekst.RunCommand(start=kontekst.StartRunCommand(prompt="wait 30")))
        while not kontekst.RunEvent.FromString(next(run)).HasField("token"):
            pass
        assert roz.SessionResponse.FromString(next(session)).HasField("session_started")
        raw.until(h2.events.SettingsAcknowledged)
        server.term()
        raw.until(h2.events.ConnectionTerminated)
        assert kontekst.RunEvent.FromString([*run][-1]).WhichOneof("event") in {"failed", "cancelled"}
        responses: list[roz.SessionResponse] = []
        with pytest.raises(grpc.RpcError) as ended:
            responses += map(roz.SessionResponse.FromString, session)
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        assert responses[-2].error.code == responses[-1].session_event.session_failed.failure == "SHUTTING_DOWN"
        assert server.wait() == 0
        assert server.faults == []


def test_a_frame_that_is_too_large_ends_that_connection_with_a_reason(server: ServerProcess) -> None:
    with Raw(server.port) as client:
        client.send((20_000).to_bytes(3, "big") + bytes(5) + b"\x01" + bytes(20_000))
        assert client.goodbye() is ErrorCodes.FRAME_SIZE_ERROR
    pong(server)


def test_more_calls_than_allowed_end_that_connection(server: ServerProcess) -> None:
    with Raw(server.port) as client:
        client.until(h2.events.RemoteSettingsChanged)
        assert client.h2.remote_settings.max_concurrent_streams == 100
        client.h2.remote_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = 1_000
        client.h2.remote_settings.acknowledge()
        for _ in range(101):
            client.call(SESSION)
        assert client.goodbye() is ErrorCodes.PROTOCOL_ERROR
    pong(server)


def test_a_cancelled_call_leaves_the_connection_and_the_others(server: ServerProcess) -> None:
    with Raw(server.port) as client:
        one, two = client.call(RUN), client.call(RUN)
        client.data(one, message(start("wait 20")))
        client.data(two, message(start("hello")))
        client.h2.reset_stream(one)
        client.flush()
        assert client.status(two)[0] == "0"


def test_a_stream_that_ends_inside_a_message_is_refused(server: ServerProcess) -> None:
    with Raw(server.port) as client:
        stream = client.call(RUN)
        client.data(stream, message(start("hello"))[:-2], end=True)
        assert client.status(stream)[0] == INVALID


def test_a_web_page_and_two_sessions_are_refused(server: ServerProcess) -> None:
    header = "x-amzn-bedrock-agentcore-runtime-session-id"
    with Raw(server.port) as client:
        stream = client.call(RUN, ("origin", "https://evil.example"))
        assert client.status(stream)[0] == DENIED
        assert server.wait_for(lambda line: "web page refused origin=https://evil.example host=" in line)
        stream = client.call(RUN, (header, "a" * 33), (header, "b" * 33))
        assert client.status(stream)[0] == INVALID
