"""Requests adapt to the server: what it refuses is left out, and what it has sent is sent back."""

from typing import Any

import pytest
from ag_ui.core import (
    AssistantMessage,
    FunctionCall,
    Message,
    TextMessageContentEvent,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallResultEvent,
    ToolMessage,
)
from ag_ui.core import Tool as ToolSpec

from agui_container.agents.assistant.assistant import Assistant
from agui_container.models.openai import OpenAIModel, OpenAIOptions
from agui_container.ports import Prompt, ToolCallDelta
from agui_container.protocol.conversation.transcript import Transcript
from agui_container.protocol.errors import ErrorCode
from agui_container.testing import run_agent
from agui_container.tools.builtin import builtin_tools
from tests.contexts import of_type, run_input, types
from tests.models.openai.conftest import Models
from tests.models.openai.server import OpenAIResponse, OpenAIServer, refuses, says, speaks, sse
from tests.models.openai.stream_reader import PROMPT, read_deltas

TOOLS = [ToolSpec(name=name, description=f"Does {name}.", parameters=None) for name in ("one", "two")]
TOO_LONG = (
    "Invalid 'tools[1].function.description': string too long. "
    "Expected a string with maximum length 4, but got a string with length 9 instead."
)
EXTRA = {"google": {"thought_signature": "c2lnbmVk"}}


def call_chunk(**extra: object) -> dict[str, object]:
    function = {"name": "calculate", "arguments": '{"expression": "6*7"}'}
    call: dict[str, object] = {"index": 0, "id": "x", "type": "function", "function": function}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call | extra]}, "finish_reason": "tool_calls"}]}


def calls(**extra: object) -> OpenAIResponse:
    return OpenAIResponse(sse(call_chunk(**extra), "[DONE]"))


def thinks(field: str) -> OpenAIResponse:
    return OpenAIResponse(
        sse({"choices": [{"index": 0, "delta": {field: "Hm."}, "finish_reason": None}]}, call_chunk(), "[DONE]")
    )


def descriptions(wire: OpenAIServer) -> list[list[str]]:
    requests: list[Any] = [request.json for request in wire.requests]
    return [[tool["function"]["description"] for tool in body.get("tools", ())] for body in requests]


async def test_a_refused_tool_costs_only_itself(
    wire: OpenAIServer, models: Models, caplog: pytest.LogCaptureFixture
) -> None:
    error = {"error": {"message": "Invalid schema", "param": "tools[0].function.parameters", "code": "invalid"}}
    wire.gives(refuses(400, error), speaks("a"), speaks("b"))
    model = models()
    for text in ("a", "b"):
        given, failure = await read_deltas(model.stream(Prompt("", PROMPT.messages, TOOLS)))
        assert (given[0], failure) == ({"text": text}, None)
    assert descriptions(wire) == [["Does one.", "Does two."], ["Does two."], ["Does two."]]
    (warning,) = (record.getMessage() for record in caplog.records if "tool refused" in record.getMessage())
    assert "tool=one" in warning


async def test_a_description_over_the_limit_is_no_conversation_that_is_too_long(
    wire: OpenAIServer, models: Models
) -> None:
    error = {
        "error": {"message": TOO_LONG, "param": "tools[1].function.description", "code": "string_above_max_length"}
    }
    wire.gives(refuses(400, error), speaks("a"))
    _, failure = await read_deltas(models().stream(Prompt("", PROMPT.messages, TOOLS)))
    assert failure is None
    assert descriptions(wire) == [["Does one.", "Does two."], ["Does one.", "Does"]]


async def test_a_tool_that_is_not_the_prompts_is_a_refused_request(wire: OpenAIServer, models: Models) -> None:
    wire.gives(refuses(400, {"error": {"message": TOO_LONG, "code": "string_above_max_length"}}))
    _, failure = await read_deltas(models().stream(PROMPT))
    assert failure is not None
    assert failure.code is ErrorCode.MODEL_REJECTED


async def run_calculation(model: OpenAIModel, *history: Message) -> list[Message]:
    """Run the assistant, and return the conversation that a client then has."""
    request = run_input(*(history or ("What is 6*7?",)))
    events = await run_agent(Assistant(model, builtin_tools()), request)
    assert [event.content for event in of_type(events, ToolCallResultEvent)] == ([] if history else ["42"])
    transcript = Transcript(request.messages)
    for event in events:
        transcript.feed(event)
    return transcript.messages


def sent_calls(wire: OpenAIServer) -> list[list[dict[str, Any]]]:
    requests: list[Any] = [request.json for request in wire.requests]
    return [[call for message in body["messages"] for call in message.get("tool_calls", ())] for body in requests]


async def test_opaque_fields_of_a_call_are_sent_back_in_this_turn_and_in_later_ones(
    wire: OpenAIServer, models: Models
) -> None:
    model = models()
    wire.gives(calls(extra_content=EXTRA), speaks("42"), speaks("Yes."))
    history = await run_calculation(model)
    await run_calculation(model, *history, *run_input("Sure?").messages)
    _, second, third = sent_calls(wire)
    assert second == third
    assert second[0] == {
        "extra_content": EXTRA,
        "id": "call00001",
        "type": "function",
        "function": {"name": "calculate", "arguments": '{"expression": "6*7"}'},
    }


async def test_opaque_fields_of_another_model_and_changed_ones_are_not_sent(wire: OpenAIServer, models: Models) -> None:
    wire.gives(calls(extra_content=EXTRA), *[speaks("a")] * 3)
    deltas = [delta async for delta in models().stream(PROMPT)]
    (sealed,) = [each.encrypted_value for each in deltas if isinstance(each, ToolCallDelta) and each.encrypted_value]

    async def send(model: OpenAIModel, value: str) -> object:
        call = ToolCall(id="x", function=FunctionCall(name="calculate", arguments="{}"), encrypted_value=value)
        history: list[Message] = [
            AssistantMessage(id="a", tool_calls=[call]),
            ToolMessage(id="t", tool_call_id="x", content="42"),
        ]
        await read_deltas(model.stream(Prompt("", history)))
        return sent_calls(wire)[-1][0].get("extra_content")

    assert await send(models(), sealed) == EXTRA
    assert await send(models(), sealed.replace("c2lnbmVk", "b3RoZXI=")) is None
    other = OpenAIModel("other", wire.url)
    assert await send(other, sealed) is None
    await other.aclose()


async def test_opaque_fields_never_replace_those_of_the_call(wire: OpenAIServer, models: Models) -> None:
    function = {"name": "calculate", "arguments": '{"expression": "6*7"}', "thought_signature": "s"}
    wire.gives(calls(function=function, custom=None), speaks("42"))
    await run_calculation(models())
    (call,) = sent_calls(wire)[1]
    assert call == {"id": "call00001", "type": "function", "function": function}


@pytest.mark.parametrize(
    ("field", "option", "sent"),
    [
        ("reasoning_content", None, "Hm."),
        ("reasoning", None, None),
        ("reasoning_content", "", None),
    ],
)
async def test_reasoning_content_is_sent_back_once_it_has_been_sent(
    field: str, option: str | None, sent: str | None, wire: OpenAIServer, models: Models
) -> None:
    wire.gives(thinks(field), speaks("42"))
    await run_calculation(models(options=OpenAIOptions(reasoning_field=option)))
    requests: list[Any] = [request.json for request in wire.requests]
    (message,) = (each for each in requests[1]["messages"] if each["role"] == "assistant")
    assert message.get("reasoning_content") == sent


async def test_a_server_that_refuses_reasoning_gets_none(wire: OpenAIServer, models: Models) -> None:
    error = {"error": {"message": "reasoning_content is not allowed in input messages"}}
    wire.gives(thinks("reasoning_content"), refuses(400, error), speaks("42"), speaks("Yes."))
    model = models()
    history = await run_calculation(model)
    await run_calculation(model, *history, *run_input("Sure?").messages)
    requests: list[Any] = [request.json for request in wire.requests]
    assert ["reasoning_content" in str(body["messages"]) for body in requests] == [False, True, False, False]


async def test_a_server_that_misses_the_reasoning_that_another_process_got_is_sent_it(
    wire: OpenAIServer, models: Models
) -> None:
    wire.gives(thinks("reasoning_content"), speaks("42"))
    history = await run_calculation(models())
    missing = {"error": {"message": "Missing `reasoning_content` field in the assistant message at index 2"}}
    wire.gives(refuses(400, missing), speaks("Yes."), speaks("Yes."))
    model = models()
    for _ in range(2):
        await run_calculation(model, *history, *run_input("Sure?").messages)
    requests: list[Any] = [request.json for request in wire.requests[2:]]
    assert ["reasoning_content" in str(body["messages"]) for body in requests] == [False, True, True]


# --- symbols in two chunks --------------------------------------------------------------------------------------------


def piece(arguments: str, **first: object) -> dict[str, object]:
    """A chunk with a piece of the call with index 0."""
    function = {"arguments": arguments} | ({"name": "calculate"} if first else {})
    return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": function, **first}]}}]}


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
