"""Tools and agents read and change the state they share with the application, and send events of their own."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    CustomEvent,
    RunAgentInput,
    RunFinishedEvent,
    StateDeltaEvent,
    TextMessageContentEvent,
)

from agui_container.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, RunContext
from agui_container.tools.function_tool import tool
from tests.behaviour.client import Client, outcome, text, types
from tests.conftest import Connect
from tests.engine.doubles import Json, ask

LIST = {"items": ["tea"]}


@tool
def peek(ctx: RunContext) -> object:
    """Tell the state."""
    return ctx.state.value


@tool
def push(item: str, ctx: RunContext) -> str:
    """Add to the list, in a thread."""
    ctx.state.patch({"op": "add", "path": "/items/-", "value": item})
    return str(ctx.state.value)


@tool
async def spoil(ctx: RunContext) -> str:
    """Send a patch that does not apply, and then one that does."""
    with pytest.raises(ValueError, match="'/none'"):
        ctx.state.patch({"op": "remove", "path": "/items"}, {"op": "remove", "path": "/none"})
    return str(ctx.state.value)


@tool
async def progress(ctx: RunContext) -> str:
    """Show how far it is."""
    key = ctx.tool_call_id or ""
    ctx.emit(ActivitySnapshotEvent(message_id=key, activity_type="PROGRESS", content={"done": 0}))
    patch = [{"op": "replace", "path": "/done", "value": 1}]
    ctx.emit(ActivityDeltaEvent(message_id=key, activity_type="PROGRESS", patch=patch))
    return "done"


@tool
def rogue(ctx: RunContext) -> str:
    """Continue a message that nobody began."""
    ctx.emit(TextMessageContentEvent(message_id="none", delta="x"))
    return "never said"


@tool
def ender(ctx: RunContext) -> str:
    """End the run."""
    ctx.emit(RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id))
    return "never said"


def assistant() -> Assistant:
    return Assistant(OfflineModel(), (peek, push, spoil, progress, rogue, ender))


async def run_assistant(connect: Connect, message: str, state: object = None) -> list[Json]:
    client = await connect(assistant())
    fields: Json = {} if state is None else {"state": state}
    return await client.run(ask(text=message, **fields))


@pytest.mark.parametrize(("state", "seen"), [(LIST, '{"items":["tea"]}'), ([1], "[1]"), (None, "{}")])
async def test_a_tool_reads_the_inputs_state(connect: Connect, state: object, seen: str) -> None:
    assert text(await run_assistant(connect, "call peek", state)) == f"The result of peek is {seen}."


async def test_a_tool_changes_the_state_and_the_client_is_told(connect: Connect) -> None:
    events = await run_assistant(connect, 'call push {"item": "milk"}', LIST)
    delta = next(event for event in events if event["type"] == "STATE_DELTA")
    assert delta["delta"] == [{"op": "add", "path": "/items/-", "value": "milk"}]
    assert "['tea', 'milk']" in text(events)
    assert types(events).index("TOOL_CALL_END") < types(events).index("STATE_DELTA")
    assert types(events).index("STATE_DELTA") < types(events).index("TOOL_CALL_RESULT")


async def test_a_change_that_does_not_apply_raises_in_the_tool_and_is_not_sent(connect: Connect) -> None:
    events = await run_assistant(connect, "call spoil", LIST)
    assert "STATE_DELTA" not in types(events)
    assert "{'items': ['tea']}" in text(events)
    assert outcome(events) == "success"


async def test_an_agents_own_state_events_are_what_its_context_says(connect: Connect) -> None:
    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield StateDeltaEvent.model_validate({"delta": [{"op": "add", "path": "/items/-", "value": "milk"}]})
        yield StateDeltaEvent.model_validate({"delta": [{"op": "remove", "path": "/none"}]})
        yield CustomEvent(name="now", value=ctx.state.value)

    events = await (await connect(agent)).run(ask(state=LIST))
    assert types(events)[1:4] == ["STATE_DELTA", "STATE_DELTA", "CUSTOM"]
    assert events[3]["value"] == {"items": ["tea", "milk"]}
    assert outcome(events) == "success"


async def test_changes_to_an_agents_copy_of_the_state_have_no_effect(connect: Connect) -> None:
    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        assert input.state is not None
        input.state["items"].append("mine")
        taken = ctx.state.value
        assert isinstance(taken, dict)
        taken["items"].append("mine too")
        yield CustomEvent(name="now", value=ctx.state.value)

    events = await (await connect(agent)).run(ask(state=LIST))
    assert events[1]["value"] == LIST


async def test_a_tool_shows_its_progress(connect: Connect) -> None:
    events = await run_assistant(connect, "call progress")
    call = next(event for event in events if event["type"] == "TOOL_CALL_START")
    activity = [event for event in events if event["type"].startswith("ACTIVITY")]
    assert [event["type"] for event in activity] == ["ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA"]
    assert {event["messageId"] for event in activity} == {call["toolCallId"]}


async def test_an_activity_stays_as_it_was_at_the_end_of_its_run(connect: Connect) -> None:
    """A client sends the whole history, without the activities, and the agent reads none."""
    seen: list[list[str]] = []

    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        seen.append([message.role for message in input.messages])
        for key in ("a", "b"):
            content = {"of": input.run_id, "done": 0}
            yield ActivitySnapshotEvent(message_id=key, activity_type="PROGRESS", content=content)
        patch = [{"op": "replace", "path": "/done", "value": 1}]
        yield ActivityDeltaEvent(message_id="a", activity_type="PROGRESS", patch=patch)
        yield "Done."

    client = await connect(agent)
    events = await client.run(ask(text="go"))
    answer = next(event["messageId"] for event in events if event["type"] == "TEXT_MESSAGE_START")
    history = [{"id": "u1", "role": "user", "content": "go"}, {"id": answer, "role": "assistant", "content": "Done."}]
    for messages in ([*history, {"id": "m2", "role": "user", "content": "again"}], []):
        events = await client.run({**ask("t1", f"r{len(messages)}"), "messages": messages})
    roles = [message["role"] for message in events[1]["messages"]]
    assert roles == ["user", "activity", "activity", "assistant", "user", "assistant"]
    contents = [message["content"] for message in events[1]["messages"] if message["role"] == "activity"]
    assert contents == [{"of": "r3", "done": 1}, {"of": "r3", "done": 0}]
    assert seen == [["user"], ["user", "assistant", "user"]]


@pytest.mark.parametrize("name", ["rogue", "ender"])
async def test_an_illegal_event_of_a_tool_fails_its_call_only(connect: Connect, name: str) -> None:
    events = await run_assistant(connect, f"call {name}")
    result = next(event for event in events if event["type"] == "TOOL_CALL_RESULT")
    assert result["content"] == "Error: the tool failed."
    assert outcome(events) == "success"


async def test_events_emitted_after_the_end_are_dropped(connect: Connect) -> None:
    kept: list[RunContext] = []

    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        kept.append(ctx)
        yield "hi"

    client = await connect(agent)
    events = await client.run(ask())
    kept[0].emit("too late")
    await asyncio.to_thread(kept[0].emit, "much too late")
    again = await (await client.attach("t1", "r1")).rest()
    assert again == events


async def report_state(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    yield CustomEvent(name="now", value=ctx.state.value)
    if input.messages[-1].content == "change":
        yield StateDeltaEvent.model_validate({"delta": [{"op": "add", "path": "/more", "value": 1}]})


async def initial_state(client: Client, run: str, said: str = "hi", **fields: Any) -> object:  # noqa: ANN401 - as in JSON
    return next(event["value"] for event in await client.run(ask(run=run, text=said, **fields)) if "value" in event)


MORE = {**LIST, "more": 1}
RUNS: dict[str, list[tuple[str, Json, object]]] = {
    **{
        f"a run without a state has the one that is kept: {kept}": [
            ("hi", {}, {}),
            ("hi", {"state": kept}, kept),
            ("hi", {}, kept),
            ("hi", {"state": None}, kept),
        ]
        for kept in (LIST, [1, None], "text", 0)
    },
    "a thread keeps what its last run left": [("change", {"state": LIST}, LIST), ("hi", {}, MORE)],
    "a state that is sent replaces the kept one": [
        ("hi", {"state": LIST}, LIST),
        ("hi", {"state": {"other": True}}, {"other": True}),
        ("hi", {}, {"other": True}),
    ],
    "an empty state is the run's alone until the run changes it": [
        ("hi", {"state": LIST}, LIST),
        ("hi", {"state": {}}, {}),
        ("hi", {}, LIST),
        ("change", {"state": {}}, {}),
        ("hi", {}, {"more": 1}),
    ],
}
"""Runs of a thread, one after the other: what is said, the state that is sent, and the state that the agent sees."""


@pytest.mark.durable
@pytest.mark.parametrize("runs", RUNS.values(), ids=RUNS)
async def test_a_run_begins_with_the_state_that_is_sent_or_kept(
    connect: Connect, runs: list[tuple[str, Json, object]]
) -> None:
    client = await connect(report_state)
    seen = [await initial_state(client, f"r{at}", said, **sent) for at, (said, sent, _) in enumerate(runs)]
    assert seen == [expected for *_, expected in runs]


async def test_a_state_that_an_agent_sets_to_null_is_empty_for_clients_that_come_back(connect: Connect) -> None:
    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        ctx.state.replace(None)
        yield "reset"

    client = await connect(agent)
    await client.run(ask(run="r1", state=LIST))
    thread = await client.command({"command": {"type": "threads.get", "threadId": "t1"}})
    shown = await client.run({**ask("t1", "r2"), "messages": []})
    assert thread["state"] == {}
    assert next(event["snapshot"] for event in shown if event["type"] == "STATE_SNAPSHOT") == {}


async def test_a_patch_without_operations_sends_nothing(connect: Connect) -> None:
    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        ctx.state.patch()
        yield CustomEvent(name="now", value=ctx.state.value)

    assert types(await (await connect(agent)).run(ask(state=LIST))) == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
