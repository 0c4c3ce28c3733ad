"""The examples load as a user would load them, and behave as their texts say."""

import json

import pytest
from ag_ui.core import ActivitySnapshotEvent, StateSnapshotEvent, TextMessageContentEvent, ToolCallResultEvent

from agui_container.agents.loader import load_agent
from agui_container.ports import Item
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


async def test_a2ui_agent_returns_a_surface_and_sends_one() -> None:
    sent: list[Item] = []
    agent = load_agent("examples.a2ui_agent:agent")
    said = run_input('call price {"item": "tea", "euros": 3}\ncall render_a2ui {"operations": [{"version": "v0.9"}]}')
    yielded = await collect_items(agent.run(said, run_context(emit=sent.append)))
    price, shown = (event.content for event in of_type(yielded, ToolCallResultEvent))
    operations = json.loads(str(price))["a2ui_operations"]
    assert [list(each)[1] for each in operations] == ["createSurface", "updateComponents"]
    assert shown == "The surface is shown."
    assert [event.content for event in of_type(sent, ActivitySnapshotEvent)] == [
        {"a2ui_operations": [{"version": "v0.9"}]}
    ]
