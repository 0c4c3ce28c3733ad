"""Limits on the resources of one WebSocket."""

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode

from agui_container.engine.admission.quota import Limit
from agui_container.server import uvicorn_protocols
from agui_container.server.uvicorn_protocols import MAX_FRAMES, MAX_MESSAGES, MAX_UNPARSED, WebSocketProtocol
from agui_container.transports.caller_middleware import QUOTA
from tests.engine.doubles import bytes_in_flight
from tests.server.doubles import UPGRADE, RecordingApp, RecordingTransport, configuration, connect_socket, until


def masked(opcode: Opcode, data: bytes = b"", *, fin: bool = True) -> bytes:
    """A client's frame."""
    return Frame(opcode, data, fin).serialize(mask=True)


async def test_a_handshake_that_cannot_be_read_is_refused() -> None:
    transport = RecordingTransport()
    connection = WebSocketProtocol(uvicorn.Config(RecordingApp(), log_config=None), ServerState(), {})
    connection.connection_made(transport)
    connection.data_received(UPGRADE + b"a: " + b"x" * MAX_UNPARSED + b"\r\n\r\n")
    assert transport.written.startswith(b"HTTP/1.1 400 ")
    assert transport.is_closing()


async def test_a_handshake_that_the_application_refuses_is_no_fault_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.http.response.start", "status": 401, "headers": [(b"a", b"b")]})
        await send({"type": "websocket.http.response.body", "body": b"no"})

    transport, state = RecordingTransport(), ServerState()
    connection = WebSocketProtocol(configuration(refuse), state, {})
    connection.connection_made(transport)
    connection.data_received(UPGRADE + b"\r\n")
    await until(lambda: not state.tasks)
    assert transport.written.startswith(b"HTTP/1.1 401 ")
    assert transport.written.endswith(b"\r\n\r\nno")
    assert transport.is_closing()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_message_in_too_many_pieces_ends_its_connection() -> None:
    transport = RecordingTransport()
    connection = await connect_socket(transport)
    connection.data_received(masked(Opcode.TEXT, b"x", fin=False))
    connection.data_received(masked(Opcode.CONT, fin=False) * MAX_FRAMES)
    assert transport.written.endswith(close_frame(1009))
    assert transport.is_closing()
    assert connection.frames == []


@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.PONG])
async def test_a_flood_of_control_frames_ends_its_connection(opcode: Opcode) -> None:
    transport = RecordingTransport()
    connection = await connect_socket(transport)
    connection.data_received(masked(opcode) * MAX_FRAMES)
    assert not transport.is_closing()
    connection.data_received(masked(opcode) * (MAX_FRAMES + 1))
    assert close_frame(1008) in transport.written
    assert transport.is_closing()


async def test_a_flood_of_messages_ends_its_connection_before_all_of_it_is_parsed() -> None:
    transport = RecordingTransport()
    connection = await connect_socket(transport)
    waiting = connection.queue.qsize()
    connection.data_received(masked(Opcode.TEXT, b"{}") * (MAX_MESSAGES - waiting))
    assert not transport.is_closing()
    connection.data_received(masked(Opcode.TEXT, b"{}") * 20 * MAX_MESSAGES)
    assert close_frame(1008) in transport.written
    assert transport.is_closing()
    assert connection.queue.qsize() < 2 * MAX_MESSAGES


async def test_a_message_of_many_pieces_arrives_as_it_is() -> None:
    connection = await connect_socket(RecordingTransport())
    while not connection.queue.empty():
        connection.queue.get_nowait()
    text = "".join(map(str, range(100_000)))
    connection.data_received(masked(Opcode.TEXT, text.encode()) + masked(Opcode.TEXT, b"next"))
    assert [connection.queue.get_nowait().get("text") for _ in range(2)] == [text, "next"]


def close_frame(code: int) -> bytes:
    return Frame(Opcode.CLOSE, code.to_bytes(2)).serialize(mask=False)


async def test_after_each_read_the_others_have_their_turn() -> None:
    transport = RecordingTransport()
    connection = await connect_socket(transport)
    connection.data_received(masked(Opcode.PING))
    assert not transport.is_reading_on
    await until(lambda: transport.is_reading_on)


async def test_a_message_that_does_not_arrive_in_time_ends_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_protocols, "MESSAGE_SECONDS", -1.0)
    transport = RecordingTransport()
    connection = await connect_socket(transport)
    connection.data_received(masked(Opcode.TEXT, b"x" * 10)[:-1])
    connection.send_keepalive_ping()
    assert transport.written.endswith(close_frame(1008))
    assert transport.is_closing()


async def test_frames_that_arrive_count_until_they_are_received() -> None:
    transport, quota = RecordingTransport(), bytes_in_flight(500_000)
    connection = await connect_socket(transport)
    connection.scope["state"][QUOTA] = quota
    connection.data_received(masked(Opcode.TEXT, b"x" * 100_000)[:-1])
    assert quota.amounts(Limit.BYTES_IN_FLIGHT)[0].used == 99_999
    connection.connection_lost(None)
    assert quota.amounts(Limit.BYTES_IN_FLIGHT)[0].used == 0


async def test_a_frame_for_which_there_is_no_room_ends_its_connection() -> None:
    transport = RecordingTransport()
    connection = await connect_socket(transport)
    connection.scope["state"][QUOTA] = bytes_in_flight(50_000)
    connection.data_received(masked(Opcode.TEXT, b"x" * 100_000)[:-1])
    reason = Frame(Opcode.CLOSE, (1013).to_bytes(2) + b"RATE_LIMIT_EXCEEDED").serialize(mask=False)
    assert transport.written.endswith(reason)
    assert transport.is_closing()


async def test_a_peer_that_takes_nothing_gets_no_pongs() -> None:
    transport = RecordingTransport()
    connection = await connect_socket(transport)
    connection.pause_writing()
    before = transport.written
    connection.data_received(masked(Opcode.PING, b"one"))
    assert transport.written == before
    connection.resume_writing()
    connection.data_received(masked(Opcode.PING, b"two"))
    assert transport.written == before + Frame(Opcode.PONG, b"two").serialize(mask=False)


async def test_a_server_stops_well_just_when_a_peer_says_goodbye() -> None:
    """The answer is written, and the connection stands until it has gone out."""
    transport = RecordingTransport()
    connection = await connect_socket(transport)
    connection.data_received(masked(Opcode.CLOSE, (1000).to_bytes(2)))
    said = transport.written
    assert said.endswith(close_frame(1000))
    connection.shutdown()
    assert transport.written == said


async def test_a_server_that_stops_says_goodbye() -> None:
    transport = RecordingTransport()
    connection = await connect_socket(transport)
    connection.shutdown()
    assert transport.written.endswith(close_frame(1012))
    assert not transport.is_closing()
    connection.data_received(masked(Opcode.CLOSE, (1012).to_bytes(2)))
    assert transport.is_closing()


async def test_a_peer_that_does_not_answer_the_goodbye_of_a_server_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(uvicorn_protocols, "LINGER_SECONDS", 0.0)
    transport = RecordingTransport()
    connection = await connect_socket(transport)
    connection.shutdown()
    await until(transport.is_closing)


async def test_a_frame_that_is_no_text_with_a_goodbye_behind_it_ends_its_connection() -> None:
    transport = RecordingTransport()
    connection = await connect_socket(transport)
    connection.data_received(masked(Opcode.TEXT, b"\xff") + masked(Opcode.CLOSE, (1000).to_bytes(2)))
    assert transport.written.endswith(close_frame(1000))
    assert transport.is_closing()
