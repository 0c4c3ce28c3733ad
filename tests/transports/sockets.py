"""A plain WebSocket client, frame by frame."""

import asyncio
import json
from collections.abc import AsyncIterator

from ag_ui.core import CustomEvent, RunAgentInput
from websockets.asyncio.client import ClientConnection, connect

from agui_container.ports import Item
from tests.behaviour.over_ws import OverWs
from tests.engine.doubles import WAIT, Json


async def brief(asked: RunAgentInput) -> AsyncIterator[Item]:
    """Say one thing."""
    yield CustomEvent(name="n", value=asked.run_id)


async def open_socket(client: OverWs, query: str = "", **options: object) -> ClientConnection:
    """Open a connection, and close it after the block."""
    connection = await connect(client.url.replace("http", "ws") + "/ws" + query, proxy=None, **options)  # type: ignore[arg-type]
    client.connections.append(connection)
    return connection


async def send(socket: ClientConnection, *bodies: Json | str | bytes) -> None:
    for body in bodies:
        await socket.send(json.dumps(body) if isinstance(body, dict) else body)


async def receive(socket: ClientConnection, count: int) -> list[Json]:
    """Return the next frames."""
    async with asyncio.timeout(WAIT):
        return [json.loads(await socket.recv(decode=True)) for _ in range(count)]


def frame_names(frames: list[Json]) -> list[str]:
    """Return a short name for each frame: a type with its run, a custom value, or a control with its code."""
    names = []
    for frame in frames:
        about = frame.get("runId") or frame.get("value") or frame.get("code") or frame.get("id") or ""
        names.append(f"{frame.get('type') or frame['control']} {about}".strip())
    return names


def whole(run: str) -> list[str]:
    return [f"RUN_STARTED {run}", f"CUSTOM {run}", f"RUN_FINISHED {run}"]
