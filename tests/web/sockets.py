"""Sockets of a server, their frames in short, and an agent whose runs have three of them."""

from collections.abc import AsyncIterator
from typing import Any

from ag_ui.core import CustomEvent, RunAgentInput
from websockets.asyncio.client import ClientConnection

from agui_container.ports import Item
from tests.behaviour.over_ws import OverWs
from tests.conftest import Serve
from tests.engine.doubles import Json, ask
from tests.waiting_agent import WaitingAgent, run_id_event
from tests.websocket import receive, send


async def brief(asked: RunAgentInput) -> AsyncIterator[Item]:
    yield CustomEvent(name="n", value=asked.run_id)


async def open_socket(
    serve: Serve,
    agent: object,
    **settings: Any,  # noqa: ANN401 - the fields of Settings
) -> tuple[OverWs, ClientConnection]:
    _, client = await serve(agent, **settings)
    return client, await client.connect()


async def begin_run(
    serve: Serve,
    **settings: Any,  # noqa: ANN401 - the fields of Settings
) -> tuple[WaitingAgent, OverWs, ClientConnection]:
    """Serve an agent that waits, and begin the run r1 on a socket."""
    agent = WaitingAgent(run_id_event)
    client, socket = await open_socket(serve, agent, **settings)
    await send(socket, ask())
    assert frame_names(await receive(socket, 2)) == ["RUN_STARTED r1", "CUSTOM r1"]
    return agent, client, socket


def frame_names(frames: list[Json]) -> list[str]:
    """Return a short name for each frame: a type with its run, a custom value, or a control with its code."""
    names = []
    for frame in frames:
        about = frame.get("runId") or frame.get("value") or frame.get("code") or frame.get("id") or ""
        names.append(f"{frame.get('type') or frame['control']} {about}".strip())
    return names


def whole(run: str) -> list[str]:
    return [f"RUN_STARTED {run}", f"CUSTOM {run}", f"RUN_FINISHED {run}"]
