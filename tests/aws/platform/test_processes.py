"""Containers as processes: their port, their signals and their ends."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from agui_container.aws.platform.authorizer import NoAuthorizer
from agui_container.aws.platform.check import run_input
from agui_container.aws.platform.containers import ContainerFactory, ProcessContainer
from agui_container.aws.platform.data_plane import DataPlane, build_platform, server_config
from agui_container.aws.platform.options import PlatformLimits, PlatformOptions
from agui_container.aws.platform.sessions import SessionState
from tests.aws.platform.doubles import CONTAINER, HEADER, IMAGE, INVOCATIONS, OWN_SERVER, RUNTIME, SESSION, events
from tests.behaviour.server import listening
from tests.engine.doubles import Json, eventually
from tests.sse import http_client

pytestmark = [pytest.mark.wire, pytest.mark.processes]

LIMITS = PlatformLimits()


@asynccontextmanager
async def platform(
    make_container: ContainerFactory,
    limits: PlatformLimits = LIMITS,
) -> AsyncIterator[tuple[httpx.AsyncClient, DataPlane]]:
    app = build_platform(PlatformOptions(make_container, NoAuthorizer(), limits))
    async with listening(app, server_config(app)) as url, http_client(url) as http:
        yield http, app.state.plane


async def run(http: httpx.AsyncClient, prompt: str, session: str = SESSION) -> list[Json]:
    return events(await http.post(INVOCATIONS, content=run_input(prompt), headers={HEADER: session}))


def process(*faults: str) -> Callable[[], ProcessContainer]:
    return lambda: ProcessContainer([sys.executable, str(CONTAINER), *faults], {})


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def members(group: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError):
            if os.getpgid(int(entry.name)) == group:
                found.append(int(entry.name))
    return found


def state_of(pid: int) -> str:
    """The state of a process as Linux has it: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def pid_of(plane: DataPlane) -> int:
    [session] = plane.sessions.all().values()
    assert session.container.pid is not None
    return session.container.pid


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
        await session.task
        assert not is_there(pid)


async def test_a_process_that_ignores_sigterm_is_killed_with_all_that_it_started() -> None:
    script = "trap '' TERM; sleep 600 & exec " + f"{sys.executable} {CONTAINER} ignores-sigterm"
    async with platform(lambda: ProcessContainer(["sh", "-c", script], {}), replace(LIMITS, stop_seconds=0.2)) as (
        http,
        plane,
    ):
        assert (await run(http, "hello"))[-1]["type"] == "RUN_FINISHED"
        group, session = pid_of(plane), plane.sessions.all()[SESSION]
        await http.post(f"{RUNTIME}/stopruntimesession", headers={HEADER: SESSION})
        await session.task
        await eventually(lambda: {state_of(pid) for pid in members(group)} <= {"Z"})  # somebody else reaps them


async def test_all_processes_end_with_the_platform() -> None:
    async with platform(process()) as (http, plane):
        await asyncio.gather(run(http, "hello"), run(http, "hello", f"another-{SESSION}"))
        pids = {session.container.pid for session in plane.sessions.all().values()}
        assert len(pids - {None}) == 2
    assert not any(pid is not None and is_there(pid) for pid in pids)


async def test_a_program_that_is_not_there_is_told_to_the_caller_as_a_start_that_failed() -> None:
    async with platform(lambda: ProcessContainer(["/no/such/program"], {})) as (http, plane):
        [event] = await run(http, "hello")
        assert (event["code"], "initialization" in event["message"]) == ("AGENT_ERROR", True)
        await eventually(lambda: not plane.sessions.all())
