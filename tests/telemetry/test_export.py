"""Telemetry is exported before the process reports that it is idle."""

import threading
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput

from agui_container.ports import Item
from agui_container.telemetry import export
from tests.behaviour.client import outcome
from tests.conftest import Connect
from tests.engine.doubles import WAIT, ask, eventually


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


async def test_the_process_is_busy_until_everything_is_sent(connect: Connect, provider: Provider) -> None:
    provider.gate.clear()
    client = await connect(agent)
    assert outcome(await client.run(ask())) == "success"  # nobody's answer waits for it
    health = client.service.health
    assert (health.report()["status"], provider.sent) == ("HealthyBusy", 0)
    provider.gate.set()
    await eventually(lambda: health.report()["status"] == "Healthy")
    assert provider.sent == 2  # spans, measurements; the logger's provider here cannot send


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
