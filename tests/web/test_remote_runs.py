"""Readers of other replicas' runs: a store that does not come back, runs that are evicted, and runs that have ended."""

import pytest

from agui_container.main import build_app
from agui_container.ports import store as store_port
from agui_container.ports.store import StoreUnavailable
from agui_container.settings import Settings
from tests.behaviour.over_ws import OverWs
from tests.behaviour.server import serving
from tests.engine.doubles import ask, asking, caller, eventually
from tests.engine.replicas import Replicas
from tests.run.test_recorder import RUN, wait_until_stored
from tests.waiting_agent import WaitingAgent, run_id_event
from tests.web.sockets import brief, frame_names, whole
from tests.websocket import receive, send

ATTACH = {"type": "attach", "threadId": "t1", "runId": "r1"}


async def raise_unavailable(*_: object) -> None:
    raise StoreUnavailable("gone")


async def test_a_socket_is_told_that_a_run_cannot_be_read_on_and_stays_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_port, "GIVE_UP_SECONDS", 0.05)
    replicas, agent = Replicas(), WaitingAgent(run_id_event)
    here, there = await replicas.start(agent), await replicas.start(brief)
    await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 2)
    async with serving(build_app(Settings(), there)) as url:
        client = OverWs(there, replicas.clock, url)
        socket = await client.connect()
        await send(socket, {"command": ATTACH})
        assert sorted(frame_names(await receive(socket, 3))) == ["CUSTOM r1", "RUN_STARTED r1", "result r1"]
        with monkeypatch.context() as broken:
            broken.setattr(replicas.store, "run", raise_unavailable)
            [told] = await receive(socket, 1)
        assert (told["control"], told["code"], told["retryable"]) == ("error", "STORE_UNAVAILABLE", True)
        assert (told["threadId"], told["runId"]) == ("t1", "r1")
        await send(socket, ask("t2", "r2"))
        assert frame_names(await receive(socket, 3)) == whole("r2")
        agent.may_end.set()
        await send(socket, {"command": {**ATTACH, "after": 2}})
        assert sorted(frame_names(await receive(socket, 2))) == ["RUN_FINISHED r1", "result r1"]
        await client.close()
    await wait_until_stored(here)
