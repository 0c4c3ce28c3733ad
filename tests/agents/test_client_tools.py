"""Results of client tools that arrive one by one: the model is asked once it has all of them."""

from collections.abc import AsyncIterator, Sequence

import pytest
from ag_ui.core import (
    AssistantMessage,
    CustomEvent,
    FunctionCall,
    Message,
    RunFinishedEvent,
    RunFinishedSuccessOutcome,
    TextMessageEndEvent,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallResultEvent,
    ToolMessage,
    UserMessage,
)

from agui_container.agents.assistant.assistant import Assistant
from agui_container.ports import Delta, Item, Prompt, StopDelta, StopReason, TextDelta, ToolCallDelta
from agui_container.testing import run_agent
from agui_container.tools.builtin import builtin_tools
from tests.agents.doubles import DONE, ScriptedModel, answering, asks
from tests.contexts import client_tool, collect_items, expanded, of_type, run_context, run_input


def call_message(*names: str) -> AssistantMessage:
    """Return an assistant message with a call of each tool. The id of a call is the name of its tool."""
    calls = [ToolCall(id=name, function=FunctionCall(name=name, arguments="{}")) for name in names]
    return AssistantMessage(id="a", tool_calls=calls)


def result(call: str) -> ToolMessage:
    return ToolMessage(id=f"result-{call}", tool_call_id=call, content="done")


async def calls_model(*history: Message, client: tuple[str, ...] = ("paint", "hang")) -> bool:
    """Return True if the model is called after this history. If not, the run is a success without text."""
    model = ScriptedModel([DONE])
    request = run_input("go", *history, tools=[client_tool(name) for name in client])
    yielded = expanded(await collect_items(Assistant(model, [answering("add")]).run(request, run_context())))
    assert yielded[-1] == RunFinishedEvent(thread_id="thread", run_id="run")
    assert bool(model.prompts) == (len(yielded) > 1)
    return bool(model.prompts)


async def test_the_model_waits_for_the_last_of_the_clients_results() -> None:
    turn = call_message("paint", "add", "hang")
    assert not await calls_model(turn, result("add"), result("paint"))
    assert not await calls_model(turn, result("hang"), result("add"))
    assert await calls_model(turn, result("add"), result("paint"), result("hang"))


async def test_a_user_who_speaks_does_not_wait_for_the_clients_tools() -> None:
    turn, user = call_message("paint", "hang"), UserMessage(id="u", content="never mind")
    assert await calls_model(turn, result("paint"), user)
    assert await calls_model(turn, user, result("paint"))


@pytest.mark.parametrize(
    ("turn", "client"),
    [
        pytest.param([call_message("paint", "hang")], ("paint", "hang"), id="it has answered nothing"),
        pytest.param([call_message("paint", "hang"), result("paint")], ("paint",), id="it has the tool no more"),
        pytest.param([call_message("paint", "add"), result("paint")], ("paint", "add"), id="the call was the server's"),
    ],
)
async def test_the_model_does_not_wait_for_calls_that_the_client_is_not_running(
    turn: list[Message], client: tuple[str, ...]
) -> None:
    assert await calls_model(*turn, client=client)


async def run_with_tools(*turns: Sequence[Delta]) -> tuple[list[str], list[object], list[str] | None]:
    """Run the assistant with two client tools. Return the arguments, the results and the pending calls' tools."""
    model = ScriptedModel([list(turn) for turn in turns])
    request = run_input("go", tools=[client_tool("paint"), client_tool("hang")])
    events = await run_agent(Assistant(model), request)
    assert len(model.prompts) == len(turns)
    (finished,) = of_type(events, RunFinishedEvent)
    assert isinstance(finished.outcome, RunFinishedSuccessOutcome)
    arguments = [event.delta for event in of_type(events, ToolCallArgsEvent)]
    results: list[object] = [event.content for event in of_type(events, ToolCallResultEvent)]
    return arguments, results, finished.outcome.pending_tool_call_ids


async def test_a_client_call_without_arguments_gets_an_empty_object() -> None:
    arguments, results, pending = await run_with_tools([ToolCallDelta(0, "", "paint")])
    assert (arguments, results) == (["{}"], [])
    assert len(pending or ()) == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ('{"a":', "Error: the arguments are not valid JSON."),
        ('{"a": 1e400}', "Error: the arguments are not valid JSON."),
        ('{"a": NaN}', "Error: the arguments are not valid JSON."),
        ("[1]", "Error: the arguments are not a JSON object."),
        ("null", "Error: the arguments are not a JSON object."),
    ],
)
async def test_a_client_call_that_cannot_run_is_answered_and_made_again(arguments: str, error: str) -> None:
    sent, results, pending = await run_with_tools(asks(("paint", arguments)), asks(("paint", '{"a": 1}')))
    assert (sent, results) == ([arguments, '{"a": 1}'], [error])
    assert len(pending or ()) == 1


async def test_a_client_call_that_cannot_run_does_not_wait_beside_one_that_can() -> None:
    _, results, pending = await run_with_tools(asks(("paint", '{"a":'), "hang"))
    assert results == ["Error: the arguments are not valid JSON."]
    assert len(pending or ()) == 1


# --- answers that were cut off ----------------------------------------------------------------------------------------


CUT = "Error: the answer was cut off before this call was complete."


class TurnModel:
    """A model that says these turns."""

    provider = name = "turns"

    def __init__(self, *turns: Sequence[Delta]) -> None:
        self.turns = list(turns)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Delta]:
        for delta in self.turns.pop(0):
            yield delta


async def run(*turns: Sequence[Delta]) -> list[Item]:
    assistant = Assistant(TurnModel(*turns), builtin_tools())
    return await collect_items(assistant.run(run_input("go", tools=[client_tool("paint")]), run_context()))


def told(items: Sequence[Item]) -> list[object]:
    return [item.value for item in items if isinstance(item, CustomEvent) and item.name == "model.stopped"]


def results(items: Sequence[Item]) -> list[object]:
    return [item.content for item in items if isinstance(item, ToolCallResultEvent)]


async def test_the_client_is_told_that_an_answer_was_cut_off_or_filtered() -> None:
    for reason in (StopReason.LENGTH, StopReason.FILTERED):
        items = await run([TextDelta("Once"), StopDelta(reason)])
        assert told(items) == [{"reason": reason}]
        assert [item.metadata for item in items if isinstance(item, TextMessageEndEvent)] == [{"stopReason": reason}]
        assert isinstance(items[-1], RunFinishedEvent)


async def test_an_ordinary_end_is_nothing_to_tell() -> None:
    items = await run([TextDelta("Once"), StopDelta(StopReason.END)])
    assert told(items) == []
    assert [item.metadata for item in items if isinstance(item, TextMessageEndEvent)] == [None]


@pytest.mark.parametrize("reason", [StopReason.LENGTH, StopReason.FILTERED])
async def test_a_call_that_was_cut_off_is_not_run_but_the_ones_before_it_are(reason: StopReason) -> None:
    calls: list[Delta] = [
        ToolCallDelta(0, '{"expression":"1+1"}', name="calculate"),
        ToolCallDelta(1, "{}", name="calculate"),
        StopDelta(reason),
    ]
    assert results(await run(calls, [TextDelta("Done.")])) == ["2", CUT]


@pytest.mark.parametrize("reason", [StopReason.LENGTH, StopReason.FILTERED])
async def test_a_client_never_gets_a_call_that_was_cut_off(reason: StopReason) -> None:
    items = await run([ToolCallDelta(0, "", name="paint"), StopDelta(reason)], [TextDelta("Done.")])
    assert results(items) == [CUT]
