"""The assistant on a model behind the wire: a call in fragments, the tool's result, and the answer."""

from ag_ui.core import TextMessageContentEvent, ToolCallArgsEvent, ToolCallResultEvent

from agui_container.agents.assistant.assistant import Assistant
from agui_container.ports import RunContext
from agui_container.testing import run_agent
from agui_container.tools.builtin import builtin_tools
from tests.contexts import collect_items, expanded, of_type, run_context, run_input, types
from tests.models.openai.conftest import Models
from tests.models.openai.server import OpenAIResponse, OpenAIServer, says, speaks, sse


def piece(arguments: str, **first: object) -> dict[str, object]:
    """A chunk with a piece of the call with index 0."""
    function = {"arguments": arguments} | ({"name": "calculate"} if first else {})
    return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": function, **first}]}}]}


SHOWN = [
    "REASONING_START",
    "REASONING_MESSAGE_START",
    "REASONING_MESSAGE_CONTENT",
    "REASONING_MESSAGE_END",
    "REASONING_END",
    "TOOL_CALL_START",
    "TOOL_CALL_ARGS",
    "TOOL_CALL_ARGS",
    "TOOL_CALL_END",
    "TOOL_CALL_RESULT",
    "TEXT_MESSAGE_START",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_END",
    "RUN_FINISHED",
]
"""Events of reasoning, one call, and the answer."""


async def test_a_symbol_in_two_chunks_is_joined_in_text_and_in_arguments(wire: OpenAIServer, models: Models) -> None:
    call = [piece('{"text": "\ud83d', id="call_x"), piece('\ude00"}'), says("", "tool_calls")]
    wire.gives(
        OpenAIResponse(sse(says("a\ud83d"), says("\ude00b"), *call, "[DONE]")),
        OpenAIResponse(sse(says("c\ud83d"), says("", "stop"), "[DONE]")),
    )
    events = await run_agent(Assistant(models(), builtin_tools()), run_input("hi"))
    assert types(events)[-1] == "RUN_FINISHED"
    assert "".join(event.delta for event in of_type(events, TextMessageContentEvent)) == "a😀bc\ufffd"
    assert "".join(event.delta for event in of_type(events, ToolCallArgsEvent)) == '{"text": "😀"}'


async def test_the_assistant_calculates(wire: OpenAIServer, models: Models) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 9, "total_tokens": 39}}
    thinks = {"choices": [{"index": 0, "delta": {"reasoning_content": "Arithmetic."}}]}
    call = [piece("", id="call_x"), piece('{"expression": '), piece('"2*(3+4)"}'), says("", "tool_calls"), usage]
    wire.gives(OpenAIResponse(sse(thinks, *call, "[DONE]")), speaks("It is ", "14."))
    ctx: RunContext = run_context()
    events = expanded(
        await collect_items(Assistant(models(), builtin_tools()).run(run_input("calculate 2*(3+4)"), ctx))
    )

    assert types(events) == SHOWN
    assert "".join(event.delta for event in of_type(events, ToolCallArgsEvent)) == '{"expression": "2*(3+4)"}'
    assert [event.content for event in of_type(events, ToolCallResultEvent)] == ["14"]
    assert "".join(event.delta for event in of_type(events, TextMessageContentEvent)) == "It is 14."
    assert [usage.total_tokens for usage in ctx.usage] == [39]

    first, second = (request.json for request in wire.requests)
    tools = first["tools"]
    assert isinstance(tools, list)
    assert [tool["function"]["name"] for tool in tools] == ["calculate", "current_time"]
    messages = second["messages"]
    assert isinstance(messages, list)
    assert messages[1:] == [
        {"role": "user", "content": "calculate 2*(3+4)"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Arithmetic.",
            "tool_calls": [
                {
                    "id": "call00001",
                    "type": "function",
                    "function": {"name": "calculate", "arguments": '{"expression": "2*(3+4)"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call00001", "content": "14"},
    ]
