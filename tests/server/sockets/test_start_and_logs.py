"""Start, refused start, and the content of the log."""

import asyncio
import base64
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator

import pytest

from agui_container.engine.health import BLOCKED_SECONDS
from tests.secret_search import planted, search
from tests.server.sockets.client import HttpExchange, ask, get, is_text, post, request, run_input
from tests.server.sockets.process import COMMAND, ROOT, START_SECONDS, WARNINGS, ServerProcess, environment
from tests.websocket import socket_to

pytestmark = pytest.mark.wire

TOKEN = planted("token")
TOKEN_BASE64 = base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("=")


STARTS = """
import contextlib, io, json, os, sys
from agui_container.cli.command_line import main

for setting in sys.argv[1:]:
    name, value = setting.split("=", 1)
    before = dict(os.environ)
    os.environ[name] = value
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = main(["serve"])
    os.environ.clear()
    os.environ.update(before)
    print(json.dumps([status, out.getvalue(), err.getvalue()]))
"""
"""A program that starts a server with each setting in turn. A process for each would import the server each time."""


def run_to_the_end(*command: str, **settings: str) -> tuple[int, str, str]:
    """Run a program that ends by itself. Return its status, standard output and standard error."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment(settings),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    search(done.stdout + done.stderr, "what a start that fails says")
    return done.returncode, done.stdout, done.stderr


def start_with_each(settings: Iterable[str]) -> list[tuple[int, str, str]]:
    status, out, err = run_to_the_end(sys.executable, *WARNINGS, "-c", STARTS, *settings)
    assert (status, err) == (0, "")
    return [tuple(json.loads(line)) for line in out.splitlines()]


def test_a_port_that_is_taken_stops_the_start_with_the_setting_to_change() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, out, err = run_to_the_end(*COMMAND, AGUI_PORT=str(port))
    said = f"127.0.0.1:{port}: Address already in use; set AGUI_PORT to a free port, or to 0 for any."
    assert (status, out, err) == (2, "", f"cannot start: cannot listen on {said}\n")


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


def test_a_store_or_a_bus_that_cannot_be_reached_stops_the_start_with_one_line() -> None:
    starts = start_with_each(UNREACHABLE)
    for why, (status, out, err) in zip(UNREACHABLE.values(), starts, strict=True):
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"cannot start: {why}")
        assert TOKEN not in err


@pytest.fixture(scope="module")
def json_server() -> Iterator[ServerProcess]:
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


async def test_an_agent_that_blocks_the_event_loop_is_named_in_the_log_and_a_stopped_process_is_not() -> None:
    with ServerProcess() as server:
        held = await (await HttpExchange.open(server.port, post(run_input("hold", runId="held")))).until(is_text)
        with server.stopped():
            await asyncio.sleep(2 * BLOCKED_SECONDS)
        await ask(server.port, post(run_input("release held")))
        await held.rest()
        blocking = run_input("stall 1.5")
        assert (await ask(server.port, post(blocking))).events[-1]["type"] == "RUN_FINISHED"
        await asyncio.to_thread(server.wait_for, lambda line: "event loop blocked" in line)
        assert server.stop() == 0
    [line] = [line for line in server.log if "event loop blocked" in line]
    named = rf"open_runs=0 runs={blocking['runId']}\b"  # it ended in the step that blocked
    assert re.search(rf"WARNING .*: event loop blocked seconds=[1-9]\d*\.\d {named}", line)


def test_the_start_names_the_page_and_everybody_who_can_call() -> None:
    for host, warned in (("127.0.0.1", False), ("0.0.0.0", True)):  # noqa: S104 - the address of a container
        with ServerProcess(AGUI_HOST=host) as server:
            server.wait_for(lambda line: "try: curl" in line)
            assert any(line.endswith(f"chat page: http://localhost:{server.port}/") for line in server.log)
            phrase = f"everybody who reaches port {server.port} of this machine. AGUI_HOST=127.0.0.1 keeps it to this"
            assert any(phrase in line for line in server.log) == warned
