"""A clock that jumps by hours under a running server: the time of day changes, and the time that passes does not."""

import asyncio
import json
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from pydantic import SecretStr

from agui_container.engine import admission
from agui_container.engine.engine import Engine
from agui_container.main import build_service
from agui_container.ports.agent import SystemClock
from agui_container.ports.records import RunKey, RunStatus
from agui_container.replicas import leases
from agui_container.settings import Scope, Settings
from tests.behaviour.client import begin_run, outcome, text
from tests.behaviour.conftest import ServeOver
from tests.behaviour.dialogues import SUCCESS
from tests.behaviour.inprocess import InProcess
from tests.engine.doubles import WAIT, FakeClock
from tests.sse import http_client
from tests.waiting_agent import WaitingAgent

PAUSE = 0.02
"""Seconds between two rounds of the leases, in place of two seconds."""

JUMP = 3 * 3_600.0
TIMEOUT = 3_600.0
LEASE_SECONDS = 600.0


def jump(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the time of day of this process, and so of the servers in it."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + seconds)


async def open_replica(stack: AsyncExitStack, agent: object, url: str) -> InProcess:
    """Return a client of another replica on the same database."""
    service = build_service(Settings(store=SecretStr(url), scope=Scope.NONE), agent)
    await service.open()
    stack.push_async_callback(service.aclose)
    stack.push_async_callback(service.drain, 0)
    return InProcess(service, FakeClock(), by_session=False)


async def lease_seconds(service: Engine, key: RunKey) -> float:
    record = await service.cluster.store.run(key)
    assert record is not None
    return record.lease_until - time.time()


async def wait_for_renewal(*services: Engine) -> None:
    """Wait until the lease of each open run is one by the new time of day."""
    async with asyncio.timeout(WAIT):
        for service in services:
            for key in service.registry.by_key:
                while not 0 < await lease_seconds(service, key) <= LEASE_SECONDS:  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0)


@pytest.mark.parametrize("serve_over", ["sse"], indirect=True)
@pytest.mark.parametrize("seconds", [JUMP, -JUMP], ids=["forward", "back"])
async def test_a_clock_that_jumps_by_hours_ends_no_run_and_is_seen_by_no_reader(
    serve_over: ServeOver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(leases, "RENEW_SECONDS", PAUSE)
    for module in (admission, leases):  # a slow machine must not let one replica take over the runs of the other
        monkeypatch.setattr(module, "LEASE_SECONDS", LEASE_SECONDS)
    agent, url = WaitingAgent(rest=" there"), f"sqlite:///{tmp_path}/store.db"
    site = await serve_over(agent, SystemClock(), store=url, run_timeout=TIMEOUT)
    async with AsyncExitStack() as stack:
        replica = await open_replica(stack, agent, url)
        dialogues = [await site.begun(), await site.begun("t2")]
        elsewhere = await begin_run(replica, thread="t-elsewhere")
        jump(monkeypatch, seconds)
        await wait_for_renewal(site.service, replica.service)
        dialogues.append(await site.begun("t3"))
        keys = list(site.service.registry.by_key)
        async with http_client(site.url) as http:
            runs, ping = (await http.get("/runs")).json()["runs"], (await http.get("/ping")).json()
        assert [run["status"] for run in runs].count("running") == 4
        assert min(run["seconds"] for run in runs) >= 0
        assert ping["status"] == "HealthyBusy"
        assert ping["time_of_last_update"] <= time.time()
        agent.may_end.set()
        for dialogue in dialogues:
            reply = await dialogue.reply()
            assert (reply.end, reply.text) == (SUCCESS, "hi there")
        rest = await elsewhere.rest()
        assert (outcome(rest), text(rest)) == ("success", " there")
        for key in keys:
            assert await stored(replica.service, key) == (RunStatus.FINISHED, ["hi", "hi there"])


async def stored(service: Engine, key: RunKey) -> tuple[RunStatus, list[str]]:
    store = service.cluster.store
    record, thread = await store.run(key), await store.thread(key.thread)
    assert record is not None
    assert thread is not None
    return record.status, [json.loads(message.data)["content"] for message in thread.messages]
