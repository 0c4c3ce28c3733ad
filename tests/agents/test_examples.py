"""The examples load as a user would load them, and behave as their texts say."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from ag_ui.core import RunAgentInput, StateSnapshotEvent, TextMessageContentEvent, ToolCallResultEvent
from websockets.asyncio.server import ServerConnection, serve

from agui_container.agents.as_agent import capabilities_of
from agui_container.agents.loader import load_agent
from agui_container.ports import Item
from examples.chat_ws import chat
from tests.contexts import collect_items, expanded, of_type, run_context, run_input, types


async def items(name: str, *said: str) -> list[Item]:
    return await collect_items(load_agent(f"examples.{name}:agent").run(run_input(*said), run_context()))


async def test_hello_agent_streams_text_and_a_state() -> None:
    assert await items("hello_agent", "hi") == [
        "Hello ",
        "from your own agent.",
        StateSnapshotEvent(snapshot={"messages": 1}),
    ]


async def test_plain_agent_counts_messages() -> None:
    assert await items("plain_agent", "a", "b") == ["Message 1 is from user. ", "Message 2 is from user. "]


async def test_class_agent_repeats() -> None:
    yielded = await items("class_agent", "hi")
    assert types(yielded) == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    assert of_type(expanded(yielded), TextMessageContentEvent)[0].delta == "You said: hi"


@pytest.mark.parametrize(
    ("said", "results"),
    [
        ('call add {"a": 1, "b": 2}', ["3"]),
        ('call lookup {"city": "Berlin"}', ['{"city":"Berlin","population":3700000}']),
        (
            'call lookup {"city": "Atlantis"}\ncall add {}',
            ["Error: There is no city named Atlantis.", "Error: add: 'a' is missing; 'b' is missing."],
        ),
        ("calculate 2*(3+4)", ["14"]),
    ],
)
async def test_tools_agent_uses_its_tools(said: str, results: list[str]) -> None:
    assert [event.content for event in of_type(await items("tools_agent", said), ToolCallResultEvent)] == results


def test_tools_agent_describes_itself() -> None:
    described = capabilities_of(load_agent("examples.tools_agent:agent"))
    assert described
    assert described.tools
    assert [tool.name for tool in described.tools.items or ()] == ["add", "lookup", "calculate", "current_time"]


# --- the WebSocket client, against a socket that answers from a list ------------------------------------------------


Frame = Mapping[str, object]


@asynccontextmanager
async def serve_frames(*frames: Frame) -> AsyncIterator[tuple[str, list[RunAgentInput]]]:
    received: list[RunAgentInput] = []

    async def answer(socket: ServerConnection) -> None:
        received.append(RunAgentInput.model_validate_json(await socket.recv()))
        for frame in frames:
            await socket.send(json.dumps(frame))
        await socket.wait_closed()

    async with serve(answer, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/ws", received


async def test_chat_ws_prints_the_streamed_text(capsys: pytest.CaptureFixture[str]) -> None:
    deltas: list[Frame] = [{"type": "TEXT_MESSAGE_CONTENT", "delta": delta} for delta in ("Hello ", "world")]
    async with serve_frames({"type": "RUN_STARTED"}, *deltas, {"type": "RUN_FINISHED"}) as (url, received):
        await chat("hi", url)
    assert capsys.readouterr().out == "Hello world\n"
    assert [message.content for message in received[0].messages] == ["hi"]


@pytest.mark.parametrize("frame", [{"type": "RUN_ERROR", "message": "No."}, {"control": "error", "message": "No."}])
async def test_chat_ws_shows_errors_and_ends(frame: Frame, capsys: pytest.CaptureFixture[str]) -> None:
    async with serve_frames(frame) as (url, _):
        await chat("hi", url)
    assert "No." in capsys.readouterr().err
