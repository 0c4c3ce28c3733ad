"""Start, refused start, and the content of the log."""

import asyncio
import base64
import json
import re
import socket
from collections.abc import Iterator

import grpc
import pytest

from tests.secret_search import planted, search
from tests.sockets.client import HttpExchange, ask, get, is_last, is_text, post, request, run_input, text_of
from tests.sockets.process import COMMAND, ROOT, START_SECONDS, ServerProcess, environment
from tests.websocket import receive_until, socket_to

TOKEN = planted("token")
TOKEN_BASE64 = base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("=")
"""The same as browsers send it."""

BAD_SETTINGS = {
    "AGUI_PORT=eighty": "AGUI_PORT",
    "AGUI_PORT=70000": "AGUI_PORT",
    "AGUI_KEEPALIVE=0": "AGUI_KEEPALIVE",
    "AGUI_ON_DISCONNECT=sometimes": "AGUI_ON_DISCONNECT",
    "AGUI_ON_BUSY=panic": "AGUI_ON_BUSY",
    "AGUI_MAX_BODY_BYTES=-1": "AGUI_MAX_BODY_BYTES",
    "AGUI_LOG_FORMAT=xml": "AGUI_LOG_FORMAT",
    "AGUI_LOG_LEVEL=loud": "AGUI_LOG_LEVEL",
    "AGUI_PROT=8080": "AGUI_PROT",
    "AGUI_AGENT=nowhere:agent": "nowhere",
    "AGUI_AGENT=tests.sockets.agents:nothing": "nothing",
    "AGUI_AGENT=tests.sockets.agents": "module:attribute",
    "AGUI_AGENT=tests.sockets.agents:LONGEST": "LONGEST",
}
"""A setting, and what the one line must name."""


async def start_and_fail(*before: str, **settings: str) -> tuple[int | None, str, str]:
    """Start a server that cannot start. Return its status, standard output and standard error.

    Args:
        before: a program with arguments that starts the server.
        settings: of its environment.
    """
    process = await asyncio.create_subprocess_exec(
        *before,
        *COMMAND,
        cwd=ROOT,
        env=environment(settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), START_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    search(out + err, "what a start that fails says")
    return process.returncode, out.decode(), err.decode()


async def test_a_bad_setting_stops_the_start_with_one_line_and_status_2() -> None:
    starts = await asyncio.gather(*(start_and_fail(**dict([setting.split("=")])) for setting in BAD_SETTINGS))
    for setting, (status, out, err) in zip(BAD_SETTINGS, starts, strict=True):
        assert (setting, status, out, err.count("\n")) == (setting, 2, "", 1)
        assert BAD_SETTINGS[setting] in err


async def test_a_port_that_is_taken_stops_the_start_with_the_setting_to_change() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, out, err = await start_and_fail(AGUI_PORT=str(port))
    said = f"127.0.0.1:{port}: Address already in use; set AGUI_PORT to a free port, or to 0 for any."
    assert (status, out, err) == (2, "", f"cannot start: cannot listen on {said}\n")


async def test_a_limit_of_open_files_that_leaves_no_connections_stops_the_start_with_one_line() -> None:
    status, out, err = await start_and_fail("sh", "-c", 'ulimit -n 40; exec "$@"', "sh")
    assert (status, out) == (2, "")
    assert err == "cannot start: the process may open 40 files and needs 64 (see ulimit -n)\n"


UNREACHABLE = {
    f"AGUI_STORE=postgresql://agui:{TOKEN}@127.0.0.1:1/agui": (
        "AGUI_STORE: the database at 127.0.0.1:1 failed: OperationalError: connection failed: "
        'connection to server at "127.0.0.1", port 1 failed: Connection refused'
    ),
    f"AGUI_STORE=postgresql://agui@127.0.0.1:1/agui?password={TOKEN}": (
        "AGUI_STORE: the database at 127.0.0.1:1 failed: OperationalError: connection failed: "
        'connection to server at "127.0.0.1", port 1 failed: Connection refused'
    ),
    "AGUI_STORE=sqlite:////nowhere/agui.db": "AGUI_STORE: there is no folder /nowhere",
    "AGUI_STORE=sqlite:////tmp": (
        "AGUI_STORE: the database file /tmp failed: OperationalError: unable to open database file"
    ),
    f"AGUI_BUS=redis://:{TOKEN}@127.0.0.1:1/0": (
        "AGUI_BUS: the bus at 127.0.0.1:1 failed: ConnectionError: Error 111 connecting to 127.0.0.1:1."
    ),
}
"""Unreachable stores and buses, with the error that stops the start."""


async def test_a_store_or_a_bus_that_cannot_be_reached_stops_the_start_with_one_line() -> None:
    starts = await asyncio.gather(*(start_and_fail(**dict([setting.split("=", 1)])) for setting in UNREACHABLE))
    for why, (status, out, err) in zip(UNREACHABLE.values(), starts, strict=True):
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"cannot start: {why}")
        assert TOKEN not in err


@pytest.fixture(scope="module")
def json_server() -> Iterator[ServerProcess]:
    """Return a server with the log format of the image."""
    with ServerProcess(AGUI_LOG_FORMAT="json") as server:
        yield server


async def test_every_log_line_is_one_json_object_and_says_nothing_secret(json_server: ServerProcess) -> None:
    port = json_server.port
    body = json.dumps(document := run_input("fail")).encode()
    authorized = [f"Content-Length: {len(body)}", f"Authorization: Bearer {TOKEN}", "X-Request-Id: request-1"]
    await ask(port, request("POST", "/invocations", body, authorized))
    await ask(port, request("POST", "/invocations", b"{}", ["Content-Length: 2", authorized[1], "X-Request-Id: two"]))
    await ask(port, request("POST", "/invocations", b"{}", ["Content-Length: x", authorized[1]]))
    await ask(port, post(run_input('call calculate {"expression": "1/0"}')))
    for _ in range(5):
        assert (await get(port, "/ping"))["status"] in ("Healthy", "HealthyBusy")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    protocols = ["base64UrlBearerAuthorization", f"base64UrlBearerAuthorization.{TOKEN_BASE64}"]
    for options in ({"additional_headers": headers}, {"subprotocols": protocols}):
        async with socket_to(port, f"/ws?token={TOKEN}", **options) as connection:
            await connection.send(b"\xff", text=True)
            await connection.wait_closed()
    assert json_server.stop() == 0

    lines = [json.loads(line) for line in json_server.log]
    assert all({"timestamp", "level", "logger", "message"} <= line.keys() for line in lines)
    assert {line["level"] for line in lines} <= {"INFO", "WARNING", "ERROR"}
    written = "\n".join(json_server.log)
    assert TOKEN not in written
    assert TOKEN_BASE64 not in written
    assert "/ping" not in written
    failed = [line for line in lines if line.get("runId") == document["runId"]]
    assert {line["requestId"] for line in failed} == {"request-1"}
    assert any("VALIDATION_ERROR" in line["message"] for line in lines if line.get("requestId") == "two")


@pytest.mark.parametrize("log_format", ["console", "json"])
async def test_no_level_and_no_agent_makes_libraries_log_tokens(log_format: str) -> None:
    with ServerProcess(
        AGUI_LOG_LEVEL="debug", AGUI_LOG_FORMAT=log_format, AGUI_AGENT="tests.sockets.verbose_agents:agent"
    ) as server:
        body = json.dumps(run_input(f"my password is {TOKEN}")).encode()
        headers = [f"Content-Length: {len(body)}", f"Authorization: Bearer {TOKEN}", f"Cookie: session={TOKEN}"]
        assert (await ask(server.port, request("POST", "/invocations", body, headers))).status == 200
        protocols = ["base64UrlBearerAuthorization", f"base64UrlBearerAuthorization.{TOKEN_BASE64}"]
        for options in ({"additional_headers": {"Authorization": f"Bearer {TOKEN}"}}, {"subprotocols": protocols}):
            async with socket_to(server.port, f"/ws?token={TOKEN}", **options) as connection:
                await connection.send(json.dumps(run_input(f"my password is {TOKEN}")))
                while json.loads(await connection.recv())["type"] != "RUN_FINISHED":
                    pass
        await asyncio.to_thread(call_daemon, server.port)
        server.stop()
        written = "\n".join(server.log)
    assert written.count("run finished") == 3
    assert "a debug line" in written
    assert TOKEN not in written
    assert TOKEN_BASE64 not in written


def call_daemon(port: int) -> None:
    """Make a call over gRPC with a token. An empty request is valid."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        status = channel.unary_unary("/kontekst.DaemonService/GetStatus")
        status(b"", timeout=START_SECONDS, metadata=[("authorization", f"Bearer {TOKEN}")])


async def test_an_agent_that_blocks_the_event_loop_is_named_in_the_log() -> None:
    with ServerProcess() as server:
        blocking = run_input("stall 1.5")
        assert (await ask(server.port, post(blocking))).events[-1]["type"] == "RUN_FINISHED"
        line = await asyncio.to_thread(server.wait_for, lambda line: "event loop blocked" in line)
        assert server.stop() == 0
    named = rf"open_runs=0 runs={blocking['runId']}\b"  # it ended in the step that blocked
    assert re.search(rf"WARNING .*: event loop blocked seconds=[1-9]\d*\.\d {named}", line)


async def test_all_events_of_all_runs_come_late_where_an_agent_blocks_the_event_loop() -> None:
    with ServerProcess() as server:
        other = await (await HttpExchange.open(server.port, post(run_input("tick 50")))).until(is_text)
        async with socket_to(server.port) as connection:
            await connection.send(json.dumps(run_input("stall 5")))
            blocked = await receive_until(connection, is_last)
        await other.rest()
        await other.close()
        await asyncio.to_thread(server.wait_for, lambda line: "event loop blocked" in line)
        assert server.faults == []
    assert (text_of(blocked), other.text) == ("before ", "".join(f"{number} " for number in range(50)))
    assert blocked[-1]["type"] == other.events[-1]["type"] == "RUN_FINISHED"


def test_the_start_names_the_page_and_everybody_who_can_call() -> None:
    for host, warned in (("127.0.0.1", False), ("0.0.0.0", True)):  # noqa: S104 - the address of a container
        with ServerProcess(AGUI_HOST=host) as server:
            server.wait_for(lambda line: "try: curl" in line)
            assert any(line.endswith(f"chat page: http://localhost:{server.port}/") for line in server.log)
            phrase = f"everybody who reaches port {server.port} of this machine. AGUI_HOST=127.0.0.1 keeps it to this"
            assert any(phrase in line for line in server.log) == warned
