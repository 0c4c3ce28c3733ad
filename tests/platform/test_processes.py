"""Containers as processes: their port, their signals, their ends, forks of one process, and docker."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from agui_container.platform.application import build_platform
from agui_container.platform.authorizer import NoAuthorizer
from agui_container.platform.check import run_input
from agui_container.platform.containers import (
    ContainerFactory,
    ContainerFailure,
    DockerContainer,
    ProcessContainer,
    docker,
)
from agui_container.platform.data_plane import DataPlane, PlatformOptions
from agui_container.platform.limits import PlatformLimits
from agui_container.platform.listeners import members
from agui_container.platform.serving import serving
from agui_container.platform.session import SessionState
from agui_container.platform.snapshot import ForkedContainer, WarmedProcess
from tests.engine.doubles import Json, eventually
from tests.platform.doubles import CONTAINER, HEADER, INVOCATIONS, RUNTIME, SESSION, events
from tests.sse import http_client
from tests.websocket import socket_to

OWN_SERVER = [sys.executable, "-W", "error", "-m", "agui_container", "serve"]
IMAGE = {"AGUI_ERROR_STATUS": "stream"}
LIMITS = PlatformLimits()


@asynccontextmanager
async def platform(
    make_container: ContainerFactory, limits: PlatformLimits = LIMITS, *, is_strict: bool = False
) -> AsyncIterator[tuple[httpx.AsyncClient, DataPlane]]:
    """A platform around processes, and a client of it."""
    app = build_platform(PlatformOptions(make_container, NoAuthorizer(), limits, is_strict=is_strict))
    async with serving(app, limits) as url, http_client(url) as http:
        yield http, app.state.plane


async def run(http: httpx.AsyncClient, prompt: str, session: str = SESSION) -> list[Json]:
    """The events of one run."""
    return events(await http.post(INVOCATIONS, content=run_input(prompt), headers={HEADER: session}))


def process(*faults: str) -> Callable[[], ProcessContainer]:
    """Make containers with these faults."""
    return lambda: ProcessContainer([sys.executable, str(CONTAINER), *faults], {})


async def collect(pieces: AsyncIterator[bytes]) -> bytes:
    """All further pieces."""
    return b"".join([piece async for piece in pieces])


def is_there(pid: int) -> bool:
    """True if there is such a process."""
    return Path(f"/proc/{pid}").exists()


def state_of(pid: int) -> str:
    """The state of a process as Linux has it: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def parent_of(pid: int) -> int:
    """The process that started this one."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def connections(pid: int) -> set[str]:
    """Kinds of what a process has open beside its standard streams."""
    opened = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            opened += [str(file.readlink())] if int(file.name) > 2 else []
    kinds = {"a socket": "socket:", "the store": "/store.db"}
    return {kind for kind, part in kinds.items() if any(part in target for target in opened)}


def pid_of(plane: DataPlane) -> int:
    """The process of the only session."""
    [session] = plane.sessions.all().values()
    return int(session.container.name.rpartition(" ")[2])


async def test_this_server_runs_in_a_process_per_session_is_frozen_and_is_there_again() -> None:
    async with platform(lambda: ProcessContainer(OWN_SERVER, IMAGE), replace(LIMITS, ping_seconds=0.05)) as (
        http,
        plane,
    ):
        first = await run(http, "hello")
        assert (first[0]["type"], first[-1]["type"]) == ("RUN_STARTED", "RUN_FINISHED")
        session, pid = plane.sessions.all()[SESSION], pid_of(plane)
        await eventually(lambda: session.state is SessionState.FROZEN and state_of(pid) == "T")
        again = await run(http, "wait 0.3")
        assert again[-1]["type"] == "RUN_FINISHED"
        assert pid_of(plane) == pid
        refused = events(await http.post(INVOCATIONS, content=b"{}", headers={HEADER: SESSION}))
        assert refused[0]["code"] == "VALIDATION_ERROR", "an error in a stream reaches the caller"
        await http.post(f"{RUNTIME}/stopruntimesession", headers={HEADER: SESSION})
        await plane.sessions.wait_until_gone(SESSION)
        assert not is_there(pid)
        assert not {"session.stop", "ping.busy", "listen.host", "listen.port"} & {*plane.findings.broken()}


async def test_a_process_that_ignores_sigterm_is_killed_with_all_that_it_started() -> None:
    script = "trap '' TERM; sleep 600 & exec " + f"{sys.executable} {CONTAINER} ignores-sigterm"
    async with platform(lambda: ProcessContainer(["sh", "-c", script], {}), replace(LIMITS, stop_seconds=0.2)) as (
        http,
        plane,
    ):
        assert (await run(http, "hello"))[-1]["type"] == "RUN_FINISHED"
        group = pid_of(plane)
        await http.post(f"{RUNTIME}/stopruntimesession", headers={HEADER: SESSION})
        await plane.sessions.wait_until_gone(SESSION)
        await eventually(lambda: {state_of(pid) for pid in members(group)} <= {"Z"})  # somebody else reaps them


async def test_all_processes_end_with_the_platform() -> None:
    async with platform(process()) as (http, plane):
        await asyncio.gather(run(http, "hello"), run(http, "hello", f"another-{SESSION}"))
        pids = [int(session.container.name.rpartition(" ")[2]) for session in plane.sessions.all().values()]
        assert len(set(pids)) == 2
    assert not any(map(is_there, pids))


async def test_a_program_that_is_not_there_is_told_to_the_caller_as_a_start_that_failed() -> None:
    async with platform(lambda: ProcessContainer(["/no/such/program"], {})) as (http, plane):
        [event] = await run(http, "hello")
        assert (event["code"], "initialization" in event["message"]) == ("AGENT_ERROR", True)
        await eventually(lambda: not plane.sessions.all())


async def test_a_process_that_is_killed_breaks_its_stream_off_and_the_session_begins_anew() -> None:
    async with platform(process()) as (http, plane):
        body, headers = run_input("hello"), {HEADER: SESSION}
        async with http.stream("POST", INVOCATIONS, content=body, headers=headers) as response:
            pieces = response.aiter_raw()
            await anext(pieces)
            os.kill(pid_of(plane), signal.SIGKILL)
            with pytest.raises(httpx.RemoteProtocolError):
                await collect(pieces)
        await plane.sessions.wait_until_gone(SESSION)
        assert (await run(http, "hello"))[-1]["type"] == "RUN_FINISHED"


# --- strictness -------------------------------------------------------------------------------------------------------


async def strict_refusal(http: httpx.AsyncClient) -> str:
    """Invoke the runtime, which must be refused. Gives the message."""
    response = await http.post(INVOCATIONS, content=run_input("hello"), headers={HEADER: SESSION})
    [event] = events(response)
    assert (response.status_code, event["code"]) == (500, "INTERNAL_ERROR")
    return str(event["message"])


@pytest.mark.parametrize(
    ("fault", "seconds", "rule"),
    [("slow", 0.0, "listen.port"), ("exits", 120.0, "start.in-time"), ("wrong-port", 1.0, "listen.port")],
)
async def test_a_strict_platform_tells_the_first_caller_why_the_container_does_not_start(
    fault: str, seconds: float, rule: str
) -> None:
    async with platform(process(fault), replace(LIMITS, start_seconds=seconds), is_strict=True) as (http, _):
        assert rule in await strict_refusal(http)


@pytest.mark.parametrize(
    ("fault", "rule"), [("moves", "ping.still"), ("late-start", "run.start"), ("large-frames", "socket.frame-size")]
)
async def test_a_strict_platform_answers_no_request_after_a_fault(fault: str, rule: str) -> None:
    limits = replace(LIMITS, ping_seconds=0.05)
    async with platform(process(fault), limits, is_strict=True) as (http, plane):
        path = f"{RUNTIME}/ws?{HEADER}={SESSION}"
        async with socket_to(str(http.base_url).rstrip("/"), path) as connection:
            await connection.send(run_input("hello").decode())
            await connection.wait_closed()
        if not plane.findings.broken():
            await http.post(INVOCATIONS, content=run_input("hello"), headers={HEADER: SESSION})
        await eventually(lambda: rule in plane.findings.broken())
        assert rule in await strict_refusal(http)


# --- forks of one process ---------------------------------------------------------------------------------------------


async def test_sessions_of_one_warmed_process_share_no_id_no_time_and_no_connection(tmp_path: Path) -> None:
    warmed = WarmedProcess("tests.platform.guesser:agent", {**IMAGE, "AGUI_STORE": f"sqlite:///{tmp_path}/store.db"})
    async with platform(lambda: ForkedContainer(warmed)) as (http, plane):
        first, second_from = await run(http, "hello"), time.time()
        fork = pid_of(plane)
        second = await run(http, "hello", f"another-{SESSION}")
        opened = [connections(pid) for pid in (parent_of(fork), fork)]
    await warmed.aclose()
    (guess, number, _), (other_guess, other_number, said_at) = (
        "".join(event.get("delta", "") for event in each).split() for each in (first, second)
    )
    assert guess == other_guess, "the snapshot's random numbers are the same, as on AgentCore"
    assert number != other_number, "numbers of the operating system are not"
    ids = [{event["messageId"] for event in each if "messageId" in event} for each in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    times = [event["timestamp"] for event in second if "timestamp" in event]
    assert times
    assert int(second_from * 1000) <= min(float(said_at) * 1000, *times)
    assert opened == [set(), {"a socket", "the store"}], "the warmed process has none that a fork could share"


async def test_a_warmed_process_that_cannot_start_fails_the_session(capfd: pytest.CaptureFixture[str]) -> None:
    warmed = WarmedProcess("no_such_module:agent", IMAGE)
    async with platform(lambda: ForkedContainer(warmed)) as (http, _):
        [event] = await run(http, "hello")
        assert event["code"] == "AGENT_ERROR"
    await warmed.aclose()
    assert "cannot start: " in capfd.readouterr().err


# --- docker -----------------------------------------------------------------------------------------------------------

STAND_IN = f"""#!/bin/sh
echo "$@" >>"$DOCKER_CALLS"
case "$1" in
  run) for argument in "$@"; do case "$argument" in 127.0.0.1:*:8080) port=${{argument#127.0.0.1:}}; esac; done
       PORT=${{port%:8080}} exec {sys.executable} {CONTAINER} & echo $! >"$DOCKER_CALLS.pid"; wait $! ;;
  kill) signal=KILL; [ "$2" = --signal ] && signal=$3; kill -$signal $(cat "$DOCKER_CALLS.pid") ;;
  image) echo linux/amd64 ;;
  pause|unpause) ;;
  *) echo "unknown command $1"; exit 1 ;;
esac
"""


@pytest.fixture
def docker_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for docker on the PATH, which writes down how it is called."""
    program, calls = tmp_path / "docker", tmp_path / "calls"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    calls.touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_CALLS", str(calls))
    return calls


async def test_an_image_is_run_paused_and_stopped_by_docker(docker_calls: Path) -> None:
    limits = replace(LIMITS, ping_seconds=0.05)
    async with platform(lambda: DockerContainer("my-image:1", {"AGUI_MODEL": "offline"}), limits) as (http, plane):
        assert (await run(http, "hello"))[-1]["type"] == "RUN_FINISHED"
        session = plane.sessions.all()[SESSION]
        name, port = session.container.name, session.container.port
        await eventually(lambda: session.state is SessionState.FROZEN)
        assert (await run(http, "hello"))[-1]["type"] == "RUN_FINISHED"
        await http.post(f"{RUNTIME}/stopruntimesession", headers={HEADER: SESSION})
        await plane.sessions.wait_until_gone(SESSION)
    calls = docker_calls.read_text().splitlines()  # noqa: ASYNC240 - a small local file
    assert calls[0] == f"run --rm --name {name} --publish 127.0.0.1:{port}:8080 --env AGUI_MODEL=offline my-image:1"
    assert {f"pause {name}", f"unpause {name}", f"kill --signal TERM {name}", f"kill {name}"} <= {*calls}


async def test_a_command_of_docker_that_fails_tells_its_output(docker_calls: Path) -> None:
    assert await docker("image", "inspect", "x") == "linux/amd64"
    with pytest.raises(ContainerFailure, match="docker nonsense failed: unknown command nonsense"):
        await docker("nonsense")
