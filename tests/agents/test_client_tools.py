"""Results of client tools that arrive one by one: the model is asked once it has all of them."""

import pytest
from ag_ui.core import AssistantMessage, FunctionCall, Message, RunFinishedEvent, ToolCall, ToolMessage, UserMessage

from agui_container.agents.assistant.assistant import Assistant
from tests.agents.doubles import DONE, ScriptedModel, answering
from tests.contexts import client_tool, collect_items, expanded, run_context, run_input


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
