"""The frames of a WebSocket: cursor, merged deltas, sizes, and credentials of browsers."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator

from ag_ui.core import CustomEvent, RunAgentInput, TextMessageContentEvent, TextMessageEndEvent, TextMessageStartEvent

from agui_container.ports import Item, RunContext
from agui_container.transports.caller_middleware import BEARER_PROTOCOL
from tests.conftest import Serve
from tests.engine.doubles import WAIT, agent_of, ask, eventually
from tests.requirements import requirement
from tests.secret_search import planted
from tests.waiting_agent import WaitingAgent, run_id_event
from tests.websocket import receive, send


@requirement("ws.cursor")
async def test_the_cursor_is_in_the_metadata(serve: Serve) -> None:
    _, client = await serve(agent_of(CustomEvent(name="n", value=1, metadata={"k": 1})))
    socket = await client.connect("?cursor=1")
    await send(socket, ask())
    assert [frame["metadata"] for frame in await receive(socket, 3)] == [{"seq": 1}, {"k": 1, "seq": 2}, {"seq": 3}]


@requirement("ws.merge")
async def test_deltas_merge_without_loss_when_the_reader_is_behind(serve: Serve) -> None:
    words = [f"{number} \N{GRINNING FACE}\n" for number in range(3_000)]

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for word in words:
            yield word

    _, client = await serve(agent)
    socket = await client.connect("?cursor=1")
    await send(socket, ask())
    text, frames, seqs = "", 0, []
    while True:
        [frame] = await receive(socket, 1)
        frames += 1
        seqs.append(frame["metadata"]["seq"])
        text += frame.get("delta", "")
        if frame["type"] == "RUN_FINISHED":
            break
    assert text == "".join(words)
    assert frames < 1_000
    assert seqs == sorted(set(seqs))
    assert seqs[-1] == len(words) + 4


@requirement("ws.size")
async def test_no_frame_of_text_is_above_32_kb(serve: Serve) -> None:
    nasty = "\x00" * 20_000 + "\N{GRINNING FACE}" * 20_000

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield TextMessageStartEvent(message_id="m", role="assistant")
        for text in (nasty, nasty, nasty):
            yield TextMessageContentEvent(message_id="m", delta=text)
        yield TextMessageEndEvent(message_id="m")

    _, client = await serve(agent)
    socket = await client.connect("?cursor=1")
    await send(socket, ask())
    text, event = "", ""
    async with asyncio.timeout(WAIT):
        while event != "RUN_FINISHED":
            raw = await socket.recv(decode=False)
            assert len(raw) < 32_000
            frame = json.loads(raw)
            event, text = frame["type"], text + frame.get("delta", "")
    assert text == nasty * 3


# --- callers ---


@requirement("ws.bearer", "ws.query")
async def test_a_browsers_token_and_query_reach_the_agent(serve: Serve) -> None:
    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield CustomEvent(name="n", value=dict(ctx.caller.headers))

    _, client = await serve(agent)
    token = base64.urlsafe_b64encode(planted("browser-token").encode()).decode().rstrip("=")
    offered = [BEARER_PROTOCOL, f"{BEARER_PROTOCOL}.{token}"]
    socket = await client.connect("?X-Amzn-Bedrock-AgentCore-Runtime-Session-Id=s1", subprotocols=offered)
    assert socket.subprotocol == BEARER_PROTOCOL
    await send(socket, ask())
    assert (await receive(socket, 3))[1]["value"] == {
        "x-amzn-bedrock-agentcore-runtime-session-id": "s1",
        "authorization": f"Bearer {planted('browser-token')}",
    }


@requirement("drop.cancel")
async def test_a_run_that_waits_its_turn_is_left_too_when_the_socket_closes(serve: Serve) -> None:
    agent = WaitingAgent(run_id_event)
    _, client = await serve(agent, on_busy="enqueue", on_disconnect="cancel")
    socket = await client.connect()
    await send(socket, ask(), ask("t2", "r2"), {"type": "ping"})
    await receive(socket, 3)
    await socket.close()
    runs = client.service.registry.by_key.values()
    await eventually(lambda: [run.status for run in runs] == ["cancelled", "cancelled"])


async def test_a_client_that_closes_in_order_gets_its_own_code_back(serve: Serve) -> None:
    _, client = await serve(WaitingAgent(run_id_event))
    socket = await client.connect()
    await send(socket, ask())
    await receive(socket, 2)
    await socket.close(4000, "enough")
    assert socket.close_code == 4000
