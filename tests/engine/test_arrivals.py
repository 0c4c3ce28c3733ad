"""A cancel that arrives while its run is being admitted: the run is cancelled and its agent does not begin."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine import admission as admission_module
from agui_container.engine.inputs import fingerprint_of
from agui_container.main import create_app
from agui_container.ports import Item
from agui_container.protocol.errors import ErrorCode
from agui_container.settings import Settings
from agui_container.threads import LARGE_BYTES
from tests.behaviour.server import serving
from tests.engine.doubles import ask, asking, caller, envelopes, eventually, make_service, raises_code
from tests.websocket import receive_until, socket_to

LARGE = "x" * (LARGE_BYTES + 1)


class CountingAgent:
    """An agent that counts its runs."""

    def __init__(self) -> None:
        self.runs = 0

    async def __call__(self, _: RunAgentInput) -> AsyncIterator[Item]:
        self.runs += 1
        yield "hello"


class Gate:
    """Holds admissions of large inputs, which compute a fingerprint in a thread, until ``open``."""

    def __init__(self, compute: Callable[[RunAgentInput], bytes]) -> None:
        self._compute = compute
        self._is_open = threading.Event()
        self.open = self._is_open.set
        self.waiting = 0

    def fingerprint_of(self, run_input: RunAgentInput) -> bytes:
        self.waiting += 1
        self._is_open.wait()
        return self._compute(run_input)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(fingerprint_of)
    monkeypatch.setattr(admission_module, "fingerprint_of", gate.fingerprint_of)
    yield gate
    gate.open()


@pytest.mark.parametrize("ids", [("t1", "r1"), (None, "r1"), ("t1", None)])
async def test_a_cancel_during_the_admission_of_a_large_input_cancels_its_run(
    gate: Gate, ids: tuple[str | None, str | None]
) -> None:
    agent = CountingAgent()
    service = make_service(agent)
    admission = asyncio.create_task(service.admit(asking(), caller(), len(LARGE)))
    await eventually(lambda: gate.waiting)
    cancelling = asyncio.create_task(service.runs.cancel(caller(), *ids))
    await asyncio.sleep(0)
    gate.open()
    assert (await cancelling)["status"] == "cancelled"
    assert [it.type for it in await envelopes(await admission)] == ["RUN_STARTED", "RUN_FINISHED"]
    await service.drain(0)
    assert agent.runs == 0


async def test_a_cancel_of_an_input_that_is_refused_finds_no_run(gate: Gate) -> None:
    service = make_service(CountingAgent())
    admission = asyncio.create_task(service.admit(asking(), caller(), len(LARGE)))
    await eventually(lambda: gate.waiting)
    cancelling = asyncio.create_task(service.runs.cancel(caller(), "t1", "r1"))
    await service.drain(0)
    gate.open()
    with raises_code(ErrorCode.SHUTTING_DOWN):
        await admission
    with raises_code(ErrorCode.RUN_NOT_FOUND):
        await cancelling


async def test_somebody_else_cannot_cancel_a_run_during_its_admission(gate: Gate) -> None:
    service = make_service(CountingAgent())
    admission = asyncio.create_task(service.admit(asking(), caller(), len(LARGE)))
    await eventually(lambda: gate.waiting)
    with raises_code(ErrorCode.RUN_NOT_FOUND):
        await service.runs.cancel(caller("mallory"), None, "r1")
    gate.open()
    assert (await envelopes(await admission))[-1].type == "RUN_FINISHED"


# --- on the wire ------------------------------------------------------------------------------------------------------


@pytest.mark.wire
async def test_a_cancel_over_a_socket_during_the_admission_cancels_its_run(gate: Gate) -> None:
    agent = CountingAgent()
    async with serving(create_app(agent, Settings())) as url, socket_to(url) as socket:
        await socket.send(json.dumps(ask(text=LARGE)))
        await eventually(lambda: gate.waiting)
        await socket.send(json.dumps({"command": {"type": "cancel", "runId": "r1"}, "id": "c"}))
        await socket.send(json.dumps({"command": {"type": "ping"}}))
        frames = await receive_until(socket, lambda frame: frame.get("control") == "pong")
        gate.open()
        frames += await receive_until(socket, lambda frame: frame.get("type") == "RUN_FINISHED")
        if not any(frame.get("control") == "result" for frame in frames):
            frames += await receive_until(socket, lambda frame: frame.get("control") == "result")
    assert [frame["type"] for frame in frames if "type" in frame] == ["RUN_STARTED", "RUN_FINISHED"]
    assert [frame["id"] for frame in frames if frame.get("control") == "result"] == ["c"]
    assert agent.runs == 0
