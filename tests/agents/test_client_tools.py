"""Results of client tools that arrive one by one: the model is asked once it has all of them."""

from collections.abc import Mapping, Sequence

import pytest
from ag_ui import core as ag
from msgspec.structs import replace

from agui_container.assistant.assistant import Assistant
from agui_container.assistant.context_window.window import SNAPSHOT, ContextBudget
from agui_container.assistant.subagents import Subagent
from agui_container.ports import ClientOffer, Delta, Item, StopDelta, StopReason, TextDelta, ToolCallDelta
from agui_container.testing import run_agent
from agui_container.tools.builtin import builtin_tools
from tests.agents.doubles import DONE, ScriptedModel, ScriptedTool, answering, asks
from tests.contexts import client_tool, collect_items, expanded, of_type, run_context, run_input


def call_message(*names: str) -> ag.AssistantMessage:
    """Return an assistant message with a call of each tool. The id of a call is the name of its tool."""
    calls = [ag.ToolCall(id=name, function=ag.FunctionCall(name=name, arguments="{}")) for name in names]
    return ag.AssistantMessage(id="a", tool_calls=calls)


def result(call: str) -> ag.ToolMessage:
    return ag.ToolMessage(id=f"result-{call}", tool_call_id=call, content="done")


async def calls_model(*history: ag.Message, client: tuple[str, ...] = ("paint", "hang")) -> bool:
    """Return True if the model is called after this history. If not, the run is a success without text."""
    model = ScriptedModel([DONE])
    request = run_input("go", *history, tools=[client_tool(name) for name in client])
    yielded = expanded(await collect_items(Assistant(model, [answering("add")]).run(request, run_context())))
    assert yielded[-1] == ag.RunFinishedEvent(thread_id="thread", run_id="run")
    assert bool(model.prompts) == (len(yielded) > 1)
    return bool(model.prompts)


@pytest.mark.parametrize(
    ("turn", "client"),
    [
        pytest.param([call_message("paint", "hang")], ("paint", "hang"), id="it has answered nothing"),
        pytest.param([call_message("paint", "hang"), result("paint")], ("paint",), id="it has the tool no more"),
        pytest.param([call_message("paint", "add"), result("paint")], ("paint", "add"), id="the call was the server's"),
    ],
)
async def test_the_model_does_not_wait_for_calls_that_the_client_is_not_running(
    turn: list[ag.Message], client: tuple[str, ...]
) -> None:
    assert await calls_model(*turn, client=client)


async def run_with_tools(*turns: Sequence[Delta]) -> tuple[list[str], list[object], list[str] | None]:
    """Run the assistant with two client tools. Return the arguments, the results and the pending calls' tools."""
    model = ScriptedModel([list(turn) for turn in turns])
    request = run_input("go", tools=[client_tool("paint"), client_tool("hang")])
    events = await run_agent(Assistant(model), request)
    assert len(model.prompts) == len(turns)
    (finished,) = of_type(events, ag.RunFinishedEvent)
    assert isinstance(finished.outcome, ag.RunFinishedSuccessOutcome)
    arguments = [event.delta for event in of_type(events, ag.ToolCallArgsEvent)]
    results: list[object] = [event.content for event in of_type(events, ag.ToolCallResultEvent)]
    return arguments, results, finished.outcome.pending_tool_call_ids


async def test_a_client_call_that_cannot_run_is_answered_and_made_again() -> None:
    sent, results, pending = await run_with_tools(asks(("paint", '{"a":')), asks(("paint", '{"a": 1}')))
    assert (sent, results) == (['{"a":', '{"a": 1}'], ["Error: the arguments are not valid JSON."])
    assert len(pending or ()) == 1


CUT = "Error: the answer was cut off before this call was complete."


async def run(*turns: Sequence[Delta]) -> list[Item]:
    assistant = Assistant(ScriptedModel([list(turn) for turn in turns]), builtin_tools())
    return await collect_items(assistant.run(run_input("go", tools=[client_tool("paint")]), run_context()))


def told(items: Sequence[Item]) -> list[object]:
    return [item.value for item in items if isinstance(item, ag.CustomEvent) and item.name == "model.stopped"]


def results(items: Sequence[Item]) -> list[object]:
    return [item.content for item in items if isinstance(item, ag.ToolCallResultEvent)]


async def test_the_client_is_told_that_an_answer_was_cut_off_or_filtered() -> None:
    for reason in (StopReason.LENGTH, StopReason.FILTERED):
        items = await run([TextDelta("Once"), StopDelta(reason)])
        assert told(items) == [{"reason": reason}]
        assert [item.metadata for item in items if isinstance(item, ag.TextMessageEndEvent)] == [{"stopReason": reason}]
        assert isinstance(items[-1], ag.RunFinishedEvent)


@pytest.mark.parametrize("reason", [StopReason.LENGTH, StopReason.FILTERED])
async def test_a_call_that_was_cut_off_is_not_run_but_the_ones_before_it_are(reason: StopReason) -> None:
    calls: list[Delta] = [
        ToolCallDelta(0, '{"expression":"1+1"}', name="calculate"),
        ToolCallDelta(1, "{}", name="calculate"),
        StopDelta(reason),
    ]
    assert results(await run(calls, [TextDelta("Done.")])) == ["2", CUT]


async def test_a_client_never_gets_a_call_that_was_cut_off() -> None:
    items = await run([ToolCallDelta(0, "", name="paint"), StopDelta(StopReason.LENGTH)], [TextDelta("Done.")])
    assert results(items) == [CUT]


async def test_a_client_tool_that_a_server_tool_hides_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    await calls_model(client=("add", "paint"))
    assert caplog.text.count("client tools hidden by server tools of the same names tools=add") == 1


async def test_a_changed_offer_is_counted_in_the_next_prompt_of_the_runs_own_agent_and_kept_from_subagents() -> None:
    offer, heard = ClientOffer(), list[Item]()

    async def change(_: Mapping[str, object]) -> str:
        offer.latest = [client_tool("paint")], [ag.Context(description="wall", value="blue")]
        return "changed"

    inner = ScriptedModel([asks("change"), DONE])
    helper = Subagent("helper", "It helps.", Assistant(inner, [ScriptedTool("change", change)]))
    outer = ScriptedModel([asks(("helper", '{"task": "change"}')), DONE])
    assistant = Assistant(outer, [helper], budget=ContextBudget(10_000))
    await collect_items(assistant.run(run_input("go"), replace(run_context(emit=heard.append), offer=offer)))
    assert [[tool.name for tool in prompt.tools] for prompt in inner.prompts] == [["change"], ["change"]]
    assert [[tool.name for tool in prompt.tools] for prompt in outer.prompts] == [["helper"], ["helper", "paint"]]
    assert [("blue" in prompt.system) for prompt in outer.prompts] == [False, True]
    counted = [it.value for it in heard if isinstance(it, ag.CustomEvent) and it.name == SNAPSHOT]
    assert all(counted[0][name] < counted[1][name] for name in ("systemTokens", "toolTokens"))
