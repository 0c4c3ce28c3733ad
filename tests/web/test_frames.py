"""The frames of a WebSocket: cursor, merged deltas, sizes, and credentials of browsers."""

import base64
from collections.abc import AsyncIterator

from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.ports import Item, RunContext
from agui_container.web.caller_middleware import BEARER_PROTOCOL
from tests.conftest import Serve
from tests.engine.doubles import agent_of, ask
from tests.secret_search import planted
from tests.waiting_agent import WaitingAgent, run_id_event
from tests.websocket import receive, send


async def test_the_cursor_is_in_the_metadata(serve: Serve) -> None:
    _, client = await serve(agent_of(CustomEvent(name="n", value=1, metadata={"k": 1})))
    socket = await client.connect("?cursor=1")
    await send(socket, ask())
    assert [frame["metadata"] for frame in await receive(socket, 3)] == [{"seq": 1}, {"k": 1, "seq": 2}, {"seq": 3}]


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


async def test_a_client_that_closes_in_order_gets_its_own_code_back(serve: Serve) -> None:
    _, client = await serve(WaitingAgent(run_id_event))
    socket = await client.connect()
    await send(socket, ask())
    await receive(socket, 2)
    await socket.close(4000, "enough")
    assert socket.close_code == 4000
