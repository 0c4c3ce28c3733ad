"""Telemetry is exported before the process reports that it is idle."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine.registry import registry
from agui_container.ports import Item
from agui_container.telemetry import export
from tests.behaviour.client import outcome
from tests.conftest import Connect
from tests.docs.documents import GUIDES
from tests.engine.doubles import WAIT, ask, eventually
from tests.requirements import requirement


class Provider:
    """Counts how often it was told to send, and has sent; ``gate`` holds it up."""

    def __init__(self) -> None:
        self.asked = self.sent = 0
        self.gate = threading.Event()
        self.gate.set()

    def force_flush(self) -> bool:
        self.asked += 1
        self.gate.wait(WAIT)
        self.sent += 1
        return True


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    provider = Provider()
    monkeypatch.setattr("agui_container.telemetry.export.get_tracer_provider", lambda: provider)
    monkeypatch.setattr("agui_container.telemetry.export.get_meter_provider", lambda: provider)
    monkeypatch.setattr("agui_container.telemetry.export.get_logger_provider", object)
    return provider


async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hi"


@requirement("trace.exported")
async def test_the_process_is_busy_until_everything_is_sent(connect: Connect, provider: Provider) -> None:
    provider.gate.clear()
    client = await connect(agent)
    assert outcome(await client.run(ask())) == "success"  # nobody's answer waits for it
    health = client.service.health
    assert (health.report()["status"], provider.sent) == ("HealthyBusy", 0)
    provider.gate.set()
    await eventually(lambda: health.report()["status"] == "Healthy")
    assert provider.sent == 2  # spans, measurements; the logger's provider here cannot send


@requirement("trace.exported")
async def test_sending_that_hangs_does_not_keep_the_process_busy(
    connect: Connect, provider: Provider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(export, "TIMEOUT_SECONDS", 0.0)
    provider.gate.clear()
    client = await connect(agent)
    await client.run(ask())
    await eventually(lambda: client.service.health.report()["status"] == "Healthy")
    assert "telemetry export timed out" in caplog.text
    provider.gate.set()
    await eventually(lambda: provider.sent == 2)  # or its thread would be one of those of the next test


@requirement("trace.exported")
def test_the_guide_says_how_long_the_process_is_busy_for_an_export() -> None:
    assert f"for {export.TIMEOUT_SECONDS * 1000:.0f} ms at most" in GUIDES["observability"].text


@requirement("trace.exported")
@pytest.mark.not_behind_platform("the tasks of the platform are counted, too")
async def test_while_two_are_at_it_another_run_adds_none(
    connect: Connect, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "REQUEST_SECONDS", 0.0)
    provider.gate.clear()
    client = await connect(agent)
    for run in ("r1", "r2"):
        await client.run(ask(run=run))
    await eventually(lambda: provider.asked == 2)
    tasks = len(asyncio.all_tasks())
    for run in ("r3", "r4"):
        await client.run(ask(run=run))
    await eventually(lambda: len(asyncio.all_tasks()) == tasks)
    provider.gate.set()
    await eventually(lambda: client.service.health.report()["status"] == "Healthy")
    assert provider.sent == 4  # two times spans and measurements


@requirement("trace.harmless")
def test_without_an_sdk_there_is_nothing_to_send() -> None:
    assert export.make_exporter() is None
