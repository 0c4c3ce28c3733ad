"""The conformance checks of docs/websocket-binding.md: one function for each row of its table."""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest
from ag_ui.core import RunAgentInput
from websockets.asyncio.client import ClientConnection
from websockets.typing import Subprotocol

from agui_container.ports import Item
from tests.behaviour.over_ws import OverWs
from tests.conftest import Serve
from tests.docs.documents import GUIDES
from tests.engine.doubles import Json, ask
from tests.websocket import receive, receive_until, send

CURSOR = "?cursor=1"
CANCEL = {"id": 1, "command": {"type": "cancel"}}
LONG = "x" * 40_000
Check = Callable[[OverWs, list[str]], Awaitable[None]]


def is_end(frame: Json) -> bool:
    """True for the last event of a run."""
    return frame.get("type") in {"RUN_FINISHED", "RUN_ERROR"}


async def read_run(socket: ClientConnection) -> list[Json]:
    """Return the frames of a whole run."""
    return await receive_until(socket, is_end)


async def run(socket: ClientConnection, *bodies: Json | str | bytes) -> list[Json]:
    """Send the frames, and return what comes up to the end of the next run."""
    await send(socket, *bodies)
    return await read_run(socket)


async def held(client: OverWs, query: str = "") -> ClientConnection:
    """Return a connection whose run r1 is open and has said something."""
    socket = await client.connect(query)
    await send(socket, ask(text="hold"))
    await receive(socket, 3)
    return socket


def refusal(frame: Json) -> tuple[str, str]:
    """Return the kind and the code of a control frame."""
    return frame["control"], frame["code"]


# --- the rows of the table --------------------------------------------------------------------------------------------


async def c1(client: OverWs, _: list[str]) -> None:
    events = await run(await client.connect(), ask())
    assert [event["type"] for event in events if is_end(event) or event["type"] == "RUN_STARTED"] == [
        "RUN_STARTED",
        "RUN_FINISHED",
    ]
    assert not [event for event in events if "control" in event or "seq" in event.get("metadata", {})]


async def c2(client: OverWs, _: list[str]) -> None:
    numbers = [event["metadata"]["seq"] for event in await run(await client.connect(CURSOR), ask())]
    assert numbers[0] == 1
    assert numbers == sorted(set(numbers))


async def c3(client: OverWs, _: list[str]) -> None:
    socket = await client.connect()
    assert {event["type"] for event in await run(socket, ask())} == {
        event["type"] for event in await run(socket, ask(run="r2"))
    }


async def c4(client: OverWs, _: list[str]) -> None:
    error, *events = await run(await client.connect(), "[1]", ask())
    assert refusal(error) == ("error", "VALIDATION_ERROR")
    assert events[0]["type"] == "RUN_STARTED"


async def c5(client: OverWs, _: list[str]) -> None:
    error, *events = await run(await client.connect(), json.dumps(ask()).encode(), ask(run="r2"))
    assert refusal(error) == ("error", "VALIDATION_ERROR")
    assert events[0]["runId"] == "r2"


async def c6(client: OverWs, _: list[str]) -> None:
    socket = await client.connect()
    await send(socket, {"type": "ping", "id": 7})
    assert await receive(socket, 1) == [{"control": "pong", "id": 7}]


async def c7(client: OverWs, _: list[str]) -> None:
    socket = await client.connect()
    await send(socket, {"command": {"type": "fly"}, "id": "x"})
    (error,) = await receive(socket, 1)
    assert (*refusal(error), error["id"]) == ("error", "VALIDATION_ERROR", "x")


async def c8(client: OverWs, _: list[str]) -> None:
    socket = await held(client)
    await send(socket, ask("t2", "r2"))
    (error,) = await receive(socket, 1)
    assert (*refusal(error), error["threadId"], error["runId"]) == ("error", "THREAD_BUSY", "t2", "r2")
    assert (await run(socket, CANCEL))[-1]["runId"] == "r1"


async def c9(client: OverWs, _: list[str]) -> None:
    socket = await held(client)
    await send(socket, ask("t2", "r2", forwardedProps={"onBusy": "enqueue"}))
    first = await run(socket, {"command": {"type": "cancel", "threadId": "t1", "runId": "r1"}})
    second = await read_run(socket)
    assert [first[-1]["runId"], second[-1]["runId"]] == ["r1", "r2"]


async def c10(client: OverWs, _: list[str]) -> None:
    socket = await held(client)
    first = await run(socket, ask("t2", "r2", forwardedProps={"onBusy": "interrupt"}))
    second = await read_run(socket)
    assert (first[-1]["runId"], first[-1]["outcome"]["type"]) == ("r1", "cancelled")
    assert (second[0]["runId"], second[-1]["outcome"]["type"]) == ("r2", "success")


async def c11(client: OverWs, _: list[str]) -> None:
    socket = await held(client)
    frames = await run(socket, ask(text="hold"), CANCEL)
    assert [frame.get("control", frame.get("type")) for frame in frames if "control" in frame] in ([], ["result"])
    assert frames[-1]["outcome"]["type"] == "cancelled"


async def c12(client: OverWs, _: list[str]) -> None:
    socket = await held(client)
    await send(socket, CANCEL)
    frames = await receive_until(socket, is_end)
    if not any("control" in frame for frame in frames):
        frames += await receive(socket, 1)
    (result,) = (frame for frame in frames if "control" in frame)
    assert (result["control"], result["command"], result["id"]) == ("result", "cancel", 1)
    assert [frame["outcome"]["type"] for frame in frames if is_end(frame)] == ["cancelled"]


async def c13(client: OverWs, _: list[str]) -> None:
    socket = await client.connect()
    await send(socket, CANCEL)
    assert refusal((await receive(socket, 1))[0]) == ("error", "RUN_NOT_FOUND")


async def c14(client: OverWs, _: list[str]) -> None:
    whole = await run(await client.connect(CURSOR), ask())
    result, *rest = await run(
        await client.connect(CURSOR),
        {"id": 2, "command": {"type": "attach", "threadId": "t1", "runId": "r1", "after": 1}},
    )
    assert (result["control"], result["command"], result["id"]) == ("result", "attach", 2)
    assert rest == whole[1:]


async def c15(client: OverWs, started: list[str]) -> None:
    whole = await run(await client.connect(CURSOR), ask())
    again = await run(await client.connect(CURSOR), ask())
    assert again == whole
    assert started == ["r1"]


async def c16(client: OverWs, started: list[str]) -> None:
    await run(await client.connect(), ask())
    socket = await client.connect()
    await send(socket, ask(text="something else"))
    assert refusal((await receive(socket, 1))[0]) == ("error", "VALIDATION_ERROR")
    assert started == ["r1"]


async def c17(client: OverWs, _: list[str]) -> None:
    socket = await client.connect()
    await run(socket, ask())
    await send(socket, {"command": {"type": "attach", "threadId": "t1", "runId": "r1", "after": 1_000}})
    frames = await receive_until(socket, lambda frame: frame.get("control") == "error")
    assert refusal(frames[-1]) == ("error", "VALIDATION_ERROR")


async def c18(client: OverWs, _: list[str]) -> None:
    socket = await client.connect()
    await send(socket, {"command": {"type": "attach", "threadId": "t1", "runId": "nothing"}})
    assert refusal((await receive(socket, 1))[0]) == ("error", "RUN_NOT_FOUND")


async def c19(client: OverWs, _: list[str]) -> None:
    socket = await client.connect()
    failed = (await run(socket, ask(text="fail")))[-1]
    assert failed["type"] == "RUN_ERROR"
    assert failed["metadata"]["requestId"]
    assert (await run(socket, ask(run="r2")))[-1]["type"] == "RUN_FINISHED"


async def c20(client: OverWs, _: list[str]) -> None:
    socket = await client.connect()
    await send(socket, ask(text="long"))
    frames: list[str] = []
    while not frames or not is_end(json.loads(frames[-1])):
        frames.append(await socket.recv(decode=True))
    assert max(len(frame.encode()) for frame in frames) < 32_000
    assert "".join(json.loads(frame).get("delta", "") for frame in frames) == LONG


async def c21(client: OverWs, _: list[str]) -> None:
    async with httpx.AsyncClient() as http:
        assert (await http.get(f"{client.url}/ws")).status_code == 426


async def c22(client: OverWs, _: list[str]) -> None:
    offered = [Subprotocol("base64UrlBearerAuthorization.dG9rZW4"), Subprotocol("base64UrlBearerAuthorization")]
    socket = await client.connect(subprotocols=offered)
    assert socket.subprotocol == "base64UrlBearerAuthorization"


CHECKS: dict[str, Check] = {
    name.upper(): check
    for name, check in list(globals().items())
    if name[:1] == "c" and name[1:].isdigit() and inspect.iscoroutinefunction(check)
}


@pytest.mark.parametrize("name", CHECKS)
async def test_a_server_passes_the_check_of_the_binding(name: str, serve: Serve) -> None:
    started: list[str] = []

    async def agent(run_input: RunAgentInput) -> AsyncIterator[Item]:
        started.append(run_input.run_id)
        text = run_input.messages[-1].content
        yield LONG if text == "long" else "hi"
        if text == "hold":
            await asyncio.Event().wait()
        if text == "fail":
            raise RuntimeError("a fault of the agent")

    _, client = await serve(agent)
    await CHECKS[name](client, started)


def test_every_check_of_the_guide_is_run() -> None:
    assert [name for name, *_ in GUIDES["websocket-binding"].table("check")] == list(CHECKS)
