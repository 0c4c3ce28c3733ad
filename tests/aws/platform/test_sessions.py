"""Sessions: cold start, stickiness, idle time, lifetime, freezing, and their end."""

import asyncio

import pytest

from agui_container.aws.platform.sessions import SessionState
from tests.aws.platform.conftest import AttachPlatform
from tests.aws.platform.doubles import HEADER, RUNTIME, SESSION, HeldRun, ScriptedContainer, ServedPlatform, events
from tests.engine.doubles import eventually, wait_for_event

pytestmark = pytest.mark.wire

BUSY = {"status": "HealthyBusy", "time_of_last_update": 1_700_000_000}


async def ping_again(site: ServedPlatform, container: ScriptedContainer, pings: int = 3) -> None:
    """Wait until the platform has read some more pings and has decided."""
    before = container.pings
    await eventually(lambda: container.pings >= before + pings)


@pytest.mark.parametrize("session", ["x" * 32, "x" * 257, "x" * 20 + " " + "x" * 20])
async def test_a_session_id_has_33_to_256_characters(attach: AttachPlatform, session: str) -> None:
    site = await attach()
    answered = await site.invoke(session=session)
    assert (answered.status_code, events(answered)[0]["code"]) == (400, "VALIDATION_ERROR")
    assert "33 to 256" in events(answered)[0]["message"]
    assert not site.containers


async def test_a_session_that_is_starting_is_busy_for_other_requests(attach: AttachPlatform) -> None:
    container = ScriptedContainer(is_starting=True)
    site = await attach(container)
    first = asyncio.create_task(site.invoke())
    await eventually(lambda: SESSION in site.plane.sessions.all())
    second = await site.invoke()
    assert (second.status_code, events(second)[0]["code"]) == (409, "SESSION_BUSY")
    container.is_starting = False
    assert events(await first)[-1]["type"] == "RUN_FINISHED"


async def test_an_idle_session_is_reaped(attach: AttachPlatform, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "agui_container.aws.platform")
    container = ScriptedContainer()
    site = await attach(container)
    await site.invoke()
    site.clock.seconds += 899
    await ping_again(site, container)
    assert SESSION in site.plane.sessions.all()
    site.clock.seconds += 1
    await eventually(lambda: not site.plane.sessions.all())
    assert site.containers[0].orders[-2:] == ["terminate", "kill"]
    assert f"session {SESSION} reaped: idle 900 s" in caplog.messages


async def test_a_busy_container_is_kept_past_its_idle_time(attach: AttachPlatform) -> None:
    container = ScriptedContainer()
    site = await attach(container)
    await site.invoke()
    container.ping = BUSY
    await ping_again(site, container)
    site.clock.seconds += 5000
    await ping_again(site, container)
    assert SESSION in site.plane.sessions.all()
    container.ping = {"status": "Healthy", "time_of_last_update": 1_700_005_000}
    await ping_again(site, container)
    assert SESSION in site.plane.sessions.all(), "the change of the status begins the idle time"
    site.clock.seconds += 900
    await eventually(lambda: not site.plane.sessions.all())


async def test_an_open_run_does_not_keep_a_session_whose_ping_says_healthy(attach: AttachPlatform) -> None:
    run = HeldRun()
    site = await attach(ScriptedContainer(answer=run.answer))
    answering = asyncio.create_task(site.invoke())
    await wait_for_event(run.has_begun)
    site.clock.seconds += 900
    await eventually(lambda: not site.plane.sessions.all())
    run.ends.set()
    await answering


async def test_a_session_ends_with_its_lifetime_however_busy_it_is(attach: AttachPlatform) -> None:
    container = ScriptedContainer(ping=BUSY)
    site = await attach(container)
    await site.invoke()
    site.clock.seconds += 28_799
    await ping_again(site, container)
    assert SESSION in site.plane.sessions.all()
    site.clock.seconds += 1
    await eventually(lambda: not site.plane.sessions.all())


async def test_a_quiet_container_is_frozen_and_runs_for_pings_and_requests(attach: AttachPlatform) -> None:
    container = ScriptedContainer()
    site = await attach(container)
    await site.invoke()
    await eventually(lambda: site.session.state is SessionState.FROZEN)
    orders = site.containers[0].orders
    assert orders[:2] == ["start", "freeze"]
    await ping_again(site, container)
    assert orders[2:4] == ["thaw", "freeze"]
    assert site.session.state is SessionState.FROZEN
    answered = await site.invoke()
    assert events(answered)[-1]["type"] == "RUN_FINISHED"


async def test_a_container_that_ends_by_itself_ends_its_session(attach: AttachPlatform) -> None:
    site = await attach()
    await site.invoke()
    site.containers[0].exit("exited with status 3")
    await eventually(lambda: not site.plane.sessions.all())
    await site.invoke()
    assert len(site.containers) == 2


async def test_a_container_whose_pings_fail_is_unhealthy(attach: AttachPlatform) -> None:
    container = ScriptedContainer()
    site = await attach(container)
    await site.invoke()
    container.is_starting = True
    await eventually(lambda: not site.plane.sessions.all())


async def test_a_stopped_session_begins_anew_with_its_next_request(attach: AttachPlatform) -> None:
    site = await attach()
    await site.invoke()
    stopped = await site.http.post(f"{RUNTIME}/stopruntimesession", headers={HEADER: SESSION})
    assert (stopped.status_code, stopped.headers[HEADER]) == (200, SESSION)
    await eventually(lambda: not site.plane.sessions.all())
    await site.invoke()
    assert len(site.containers) == 2


async def test_a_session_that_is_ending_is_busy(attach: AttachPlatform) -> None:
    site = await attach(limits={"stop_seconds": 600.0})
    await site.invoke()
    site.containers[0].obeys = False
    await site.http.post(f"{RUNTIME}/stopruntimesession", headers={HEADER: SESSION})
    await eventually(lambda: site.session.state is SessionState.STOPPING)
    refused = await site.invoke()
    assert (refused.status_code, events(refused)[0]["code"]) == (409, "SESSION_BUSY")
    again = await site.http.post(f"{RUNTIME}/stopruntimesession", headers={HEADER: SESSION})
    assert (again.status_code, again.headers["x-amzn-errortype"]) == (409, "RetryableConflictException")
    site.containers[0].exit("exited with status 0")
