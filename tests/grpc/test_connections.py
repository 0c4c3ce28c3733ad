"""HTTP/2 connections: the hand-over, the repairs of grpclib, the limits, and the end."""

import contextlib
import gzip
import inspect
import json
import socket
import urllib.request
from pathlib import Path

import grpc
import grpclib
import grpclib.events
import grpclib.protocol
import grpclib.server
import grpclib.utils
import h2.events
import pytest
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from tests.grpc.client import GrpcCall
from tests.grpc.conftest import ASSISTANT, Dial
from tests.grpc.h2 import PREFACE, WAIT, Raw, message, text
from tests.grpc.http_requests import run_over_sse
from tests.requirements import requirement
from tests.sockets.process import ServerProcess, Servers

STATUS = "/kontekst.DaemonService/GetStatus"
RUN = "/kontekst.AgentService/Run"
SESSION = "/roz.v1.AgentService/StreamSession"
INVALID, EXHAUSTED, UNIMPLEMENTED, DENIED = "3", "8", "12", "7"


def start(prompt: str) -> bytes:
    return kontekst.RunCommand(start=kontekst.StartRunCommand(prompt=prompt)).SerializeToString()


def events_of(body: bytes) -> list[kontekst.RunEvent]:
    """The events in the data of a run's call."""
    events = []
    while body:
        size = int.from_bytes(body[1:5], "big")
        events.append(kontekst.RunEvent.FromString(body[5 : 5 + size]))
        body = body[5 + size :]
    return events


def pong(server: ServerProcess) -> None:
    """The server answers somebody else."""
    with Raw(server.port) as client:
        stream = client.call(STATUS)
        client.data(stream, message(b""), end=True)
        assert client.status(stream)[0] == "0"


# --- the hand-over ----------------------------------------------------------------------------------------------------


@requirement("grpc.port")
def test_a_preface_that_comes_byte_by_byte_is_one(server: ServerProcess) -> None:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=WAIT)
    with connection:
        for byte in PREFACE:
            connection.sendall(bytes([byte]))
        connection.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        assert connection.recv(100)[3] == 4, "a SETTINGS frame"


@requirement("grpc.port")
def test_a_request_that_begins_like_the_preface_is_http_1(server: ServerProcess) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT) as connection:
        connection.sendall(b"P")
        connection.sendall(b"RI /ping HTTP/1.1\r\nhost: here\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 4")


@requirement("grpc.port")
def test_http_1_and_sockets_stay_as_they_are(server: ServerProcess) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/ping", timeout=WAIT) as answer:
        assert json.load(answer)["status"].startswith("Healthy")


@requirement("grpc.port")
def test_grpc_can_be_switched_off(servers: Servers) -> None:
    server = servers(**ASSISTANT, AGUI_GRPC="off")
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT) as connection:
        connection.sendall(PREFACE)
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")


@requirement("grpc.lazy")
def test_nothing_of_grpc_is_imported_before_the_first_connection(dial: Dial, tmp_path: Path) -> None:
    """A tool tells what is imported: once over HTTP/1.1, then over gRPC."""
    names = ("grpclib", "h2", "hpack", "hyperframe", "google")
    (tmp_path / "telling.py").write_text(
        "import sys\n\nfrom agui_container.tools.function_tool import tool\n\n\n@tool\ndef modules() -> str:\n"
        "    '''Tell what is imported.'''\n"
        f"    return ' '.join(sorted({{name.split('.')[0] for name in sys.modules}} & {set(names)}))\n"
    )
    settings = {**ASSISTANT, "AGUI_TOOLS": "telling:modules", "PYTHONPATH": f"{tmp_path}:{Path.cwd() / 'app'}"}
    with ServerProcess(**settings) as server:

        def imported(run_id: str) -> str:
            message = {"id": "m", "role": "user", "content": "call modules {}"}
            body = {"threadId": run_id, "runId": run_id, "messages": [message]}
            events = run_over_sse(server, body)
            return str(next(event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT"))

        assert imported("before") == ""
        pong(server)
        assert imported("after") == " ".join(sorted(names))


@requirement("grpc.library")
def test_the_names_of_grpclib_that_are_used_are_there() -> None:
    """The hand-over uses names that grpclib does not promise: a new release is looked at before it is taken."""
    assert grpclib.__version__.startswith("0.4.")
    assert list(inspect.signature(grpclib.server.Handler.__init__).parameters) == [
        *("self", "mapping", "codec", "status_details_codec", "dispatch")
    ]
    assert {"feed", "flush", "initialize", "create_stream", "is_closing"} <= set(vars(grpclib.protocol.Connection))
    assert {"process", "register", "close"} <= set(vars(grpclib.protocol.EventsProcessor))
    assert {"send_data", "recv_data", "send_headers", "reset_nowait"} <= set(vars(grpclib.protocol.Stream))
    assert "self.data_sent += " in inspect.getsource(grpclib.protocol.Stream.send_data)
    source = inspect.getsource(grpclib.server.Stream)
    for name in ("self._stream ", "_recv_type", "_method_name", "_send_initial_metadata_done", "_send_message_done"):
        assert name in source
    assert hasattr(grpclib.events, "_DispatchServerEvents")
    assert "self._tasks[stream]" in inspect.getsource(grpclib.server.Handler.accept)
    assert hasattr(grpclib.utils.Wrapper, "_error")
    assert {"incoming_buffer", "decoder"} <= set(vars(H2Connection()))


# --- the repairs ------------------------------------------------------------------------------------------------------


@requirement("grpc.frames")
def test_a_frame_of_an_unknown_type_is_ignored(server: ServerProcess) -> None:
    with Raw(server.port) as client:
        client.send(bytes([0, 0, 4, 0xFA, 0, 0, 0, 0, 0]) + b"what")
        stream = client.call(STATUS)
        client.data(stream, message(b""), end=True)
        assert client.status(stream)[0] == "0"


@requirement("grpc.frames")
def test_an_empty_frame_inside_a_message_is_ignored(server: ServerProcess) -> None:
    with Raw(server.port) as client:
        stream, sent = client.call(RUN), message(start("hello"))
        client.data(stream, sent[:7])
        client.data(stream, b"")
        client.data(stream, sent[7:], end=True)
        assert client.status(stream)[0] == "0"
        assert [event.WhichOneof("event") for event in events_of(client.body(stream))][-1] == "completed"


@requirement("grpc.messages")
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


@requirement("grpc.messages")
def test_a_compressed_message_is_inflated_within_the_limit(servers: Servers, dial: Dial) -> None:
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
        first = next(text(e.headers) for e in client.events if isinstance(e, h2.events.ResponseReceived))
        assert first["grpc-accept-encoding"] == "identity,gzip"
    talk: GrpcCall[kontekst.RunCommand, kontekst.RunEvent] = GrpcCall(
        *(dial(server), RUN, kontekst.RunCommand, kontekst.RunEvent, "event"), compression=grpc.Compression.Gzip
    )
    with talk:
        talk.send(start=kontekst.StartRunCommand(prompt="hello " * 100))
        assert list(talk.rest())[-1] == "completed"


@requirement("grpc.drain")
def test_open_calls_have_their_last_messages_and_a_goaway_before_the_end(dial: Dial) -> None:
    with ServerProcess(**ASSISTANT) as server:
        channel = dial(server)
        run: GrpcCall[kontekst.RunCommand, kontekst.RunEvent] = GrpcCall(
            channel, RUN, kontekst.RunCommand, kontekst.RunEvent, "event"
        )
        session: GrpcCall[roz.SessionRequest, roz.SessionResponse] = GrpcCall(
            channel, SESSION, roz.SessionRequest, roz.SessionResponse, "response"
        )
        with Raw(server.port) as raw, run, session:
            session.send(start=roz.StartSession())
            session.until("session_started")
            run.send(start=kontekst.StartRunCommand(prompt="wait 30"))
            run.until("token")
            raw.until(h2.events.SettingsAcknowledged)
            server.term()
            assert isinstance(raw.until(h2.events.ConnectionTerminated), h2.events.ConnectionTerminated)
            assert list(run.rest())[-1] in {"failed", "cancelled"}
            assert session.until("error").code == "SHUTTING_DOWN"
            with pytest.raises(grpc.RpcError) as ended:
                list(session.rest())
            assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        assert server.wait() == 0
        assert server.faults == []


# --- hostile clients --------------------------------------------------------------------------------------------------


@requirement("grpc.frames")
def test_garbage_behind_the_preface_ends_that_connection_with_a_reason(server: ServerProcess) -> None:
    with Raw(server.port) as client:
        with contextlib.suppress(ConnectionError):
            client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 50_000)
        assert client.goodbye() is ErrorCodes.FRAME_SIZE_ERROR
    pong(server)


@requirement("grpc.frames")
def test_headers_that_are_none_end_that_connection(server: ServerProcess) -> None:
    with Raw(server.port) as client:
        client.h2.send_headers(1, [(b":method", b"\xff\xfe"), (b":path", b"/")], end_stream=True)
        client.flush()
        assert client.goodbye() is ErrorCodes.PROTOCOL_ERROR
    pong(server)


@requirement("grpc.floods")
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


@requirement("grpc.calls")
def test_a_cancelled_call_leaves_the_connection_and_the_others(server: ServerProcess) -> None:
    with Raw(server.port) as client:
        one, two = client.call(RUN), client.call(RUN)
        client.data(one, message(start("wait 20")))
        client.data(two, message(start("hello")))
        client.h2.reset_stream(one)
        client.flush()
        assert client.status(two)[0] == "0"


@requirement("grpc.calls")
def test_a_stream_that_ends_inside_a_message_is_refused(server: ServerProcess) -> None:
    with Raw(server.port) as client:
        stream = client.call(RUN)
        client.data(stream, message(start("hello"))[:-2], end=True)
        assert client.status(stream)[0] == INVALID


@requirement("grpc.calls")
def test_bytes_that_are_no_message_are_refused(server: ServerProcess) -> None:
    with Raw(server.port) as client:
        stream = client.call(RUN)
        client.data(stream, message(b"\xff\xff\xff"), end=True)
        assert client.status(stream)[0] == INVALID


@requirement("grpc.calls")
def test_a_method_that_is_not_here_is_unimplemented(server: ServerProcess) -> None:
    with Raw(server.port) as client:
        assert client.status(client.call("/roz.v1.AgentService/AnalyzeMedia", end=True))[0] == UNIMPLEMENTED


@requirement("grpc.callers")
def test_a_web_page_and_two_sessions_are_refused(server: ServerProcess) -> None:
    header = "x-amzn-bedrock-agentcore-runtime-session-id"
    with Raw(server.port) as client:
        stream = client.call(RUN, ("origin", "https://evil.example"))
        assert client.status(stream)[0] == DENIED
        assert server.wait_for(lambda line: "web page refused origin=https://evil.example host=" in line)
        stream = client.call(RUN, (header, "a" * 33), (header, "b" * 33))
        assert client.status(stream)[0] == INVALID


@requirement("grpc.floods")
def test_ten_thousand_registrations_grow_nothing(servers: Servers, dial: Dial) -> None:
    server = servers(**ASSISTANT, AGUI_CALLER_LIMITS='{"messagesPerSecond": 20000}')
    session: GrpcCall[roz.SessionRequest, roz.SessionResponse] = GrpcCall(
        dial(server), SESSION, roz.SessionRequest, roz.SessionResponse, "response"
    )
    with session:
        session.send(start=roz.StartSession())
        session.until("session_started")
        before = server.memory
        for number in range(10_000):
            tool = roz.ToolSchema(name=f"s{number}__tool", description="x" * 1_000)
            session.send(register_tools=roz.RegisterTools(source=f"s{number}", tools=[tool]))
        assert session.until("error").code == "VALIDATION_ERROR"
        session.send(ping=roz.Ping())
        session.until("pong")
        assert server.memory < before + 60_000_000
