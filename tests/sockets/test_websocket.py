"""The WebSocket on a real socket: frames merged for a reader that is behind, pings, commands, close codes."""

import json

import pytest
from websockets.exceptions import InvalidStatus

from tests.sockets.client import (
    Json,
    is_last,
    is_text,
    receive_frame,
    receive_until,
    run_input,
    say,
    socket_to,
    text_of,
)
from tests.sockets.process import ServerProcess

DELTAS = 3000
FRAMES_AT_MOST = 500
"""3000 deltas would be twelve seconds of AgentCore's 250 frames; merged they are a burst and few more."""

MAX_FRAME = 32_000
SEEN = 8
"""Frames, of some sixteen."""


async def test_deltas_merge_under_the_frame_limit_and_no_text_is_lost(server: ServerProcess) -> None:
    async with socket_to(server.port) as connection:
        await connection.send(json.dumps(run_input(f"stream {DELTAS}")))
        raw: list[str] = []
        while not raw or not is_last(json.loads(raw[-1])):
            raw.append(str(await connection.recv()))
    frames: list[Json] = [json.loads(frame) for frame in raw]
    assert text_of(frames) == "hello world, " * DELTAS
    assert len(frames) < FRAMES_AT_MOST
    assert max(map(len, raw)) < MAX_FRAME
    assert [frame["type"] for frame in frames[:2]] == ["RUN_STARTED", "TEXT_MESSAGE_START"]


async def test_merged_frames_carry_the_cursor_from_which_a_reader_goes_on(server: ServerProcess) -> None:
    document = run_input(f"stream {DELTAS}")
    async with socket_to(server.port, "/ws?cursor=1") as connection:
        await connection.send(json.dumps(document))
        first = [await receive_frame(connection) for _ in range(SEEN)]
    cursor = first[-1]["metadata"]["seq"]
    async with socket_to(server.port, "/ws?cursor=1") as connection:
        command = {"type": "attach", "runId": document["runId"], "after": cursor}
        await connection.send(json.dumps({"command": command}))
        assert (await receive_frame(connection))["control"] == "result"
        rest = await receive_until(connection, is_last)
    assert text_of([*first, *rest]) == "hello world, " * DELTAS


async def test_an_open_run_does_not_hold_up_pings_and_commands(server: ServerProcess) -> None:
    document = run_input("hold")
    async with socket_to(server.port) as connection:
        await connection.send(json.dumps(document))
        await receive_until(connection, is_text)
        await (await connection.ping(b"are you there"))
        await connection.send('{"command": {"type": "ping"}, "id": "p"}')
        assert await receive_frame(connection) == {"control": "pong", "id": "p"}
        await connection.send(json.dumps({"command": {"type": "cancel", "runId": document["runId"]}, "id": 2}))
        frames = [await receive_frame(connection) for _ in range(3)]
    told = [frame for frame in frames if "control" in frame]
    assert [(frame["control"], frame["id"], frame["status"]) for frame in told] == [("result", 2, "cancelled")]
    assert [frame["type"] for frame in frames if "type" in frame] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]


async def test_one_connection_serves_many_runs_one_after_another(server: ServerProcess) -> None:
    async with socket_to(server.port) as connection:
        for number in range(20):
            await connection.send(json.dumps(run_input(f"count 5 n{number}")))
            frames = await receive_until(connection, is_last)
            assert text_of(frames) == "".join(f"n{number}.{n} " for n in range(5))
            assert {frame["runId"] for frame in frames if "runId" in frame} == {frames[0]["runId"]}


async def test_a_run_during_a_run_is_refused_and_the_first_goes_on(server: ServerProcess) -> None:
    document = run_input("hold")
    async with socket_to(server.port) as connection:
        await connection.send(json.dumps(document))
        await receive_until(connection, is_text)
        await connection.send(json.dumps(run_input("count 1 second")))
        told = await receive_frame(connection)
        await say(server.port, f"release {document['runId']}")
        frames = await receive_until(connection, is_last)
    assert (told["control"], told["code"]) == ("error", "THREAD_BUSY")
    assert text_of(frames) == "after"


async def test_a_client_that_closes_in_order_gets_its_own_code_back(server: ServerProcess) -> None:
    connection, document = await socket_to(server.port), run_input("hold")
    await connection.send(json.dumps(document))
    await receive_until(connection, is_text)
    await connection.close(4000, "enough")
    assert connection.close_code == 4000
    await say(server.port, f"release {document['runId']}")  # nothing goes on: others ask whether the server is idle


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [("/ws", {"Origin": "https://evil.example"}, 403), ("/other", {}, 403)],
)
async def test_a_handshake_that_is_not_welcome_is_refused(
    server: ServerProcess, path: str, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await socket_to(server.port, path, additional_headers=headers)
    assert refused.value.response.status_code == status
