"""Requests adapt to the server: what it refuses is left out, and what it has sent is sent back."""

from typing import Any

import pytest
from ag_ui.core import Message, ToolCallResultEvent
from ag_ui.core import Tool as ToolSpec

from agui_container.assistant.assistant import Assistant
from agui_container.models.openai import OpenAIModel, OpenAIOptions
from agui_container.ports import Prompt
from agui_container.testing import run_agent
from agui_container.tools.builtin import builtin_tools
from agui_core.transcript import Transcript
from tests.contexts import of_type, run_input
from tests.models.histories import IMAGE, assistant, result, user
from tests.models.openai.conftest import Models
from tests.models.openai.server import refuses, sends, speaks, sse
from tests.models.openai.stream_reader import PROMPT, read_deltas, text_in
from tests.models.wire import WireResponse, WireServer

pytestmark = pytest.mark.wire

TOOLS = [ToolSpec(name=name, description=f"Does {name}.", parameters=None) for name in ("one", "two")]
EXTRA = {"google": {"thought_signature": "c2lnbmVk"}}


def call_chunk(**extra: object) -> dict[str, object]:
    function = {"name": "calculate", "arguments": '{"expression": "6*7"}'}
    call: dict[str, object] = {"index": 0, "id": "x", "type": "function", "function": function}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call | extra]}, "finish_reason": "tool_calls"}]}


def calls(**extra: object) -> WireResponse:
    return sends(*sse(call_chunk(**extra), "[DONE]"))


def thinks(field: str) -> WireResponse:
    return sends(
        *sse({"choices": [{"index": 0, "delta": {field: "Hm."}, "finish_reason": None}]}, call_chunk(), "[DONE]")
    )


def descriptions(wire: WireServer) -> list[list[str]]:
    requests: list[Any] = [request.json for request in wire.requests]
    return [[tool["function"]["description"] for tool in body.get("tools", ())] for body in requests]


async def test_a_refused_tool_costs_only_itself(
    wire: WireServer, models: Models, caplog: pytest.LogCaptureFixture
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


async def run_calculation(model: OpenAIModel, *history: Message) -> list[Message]:
    request = run_input(*(history or ("What is 6*7?",)))
    events = await run_agent(Assistant(model, builtin_tools()), request)
    assert [event.content for event in of_type(events, ToolCallResultEvent)] == ([] if history else ["42"])
    transcript = Transcript(request.messages)
    for event in events:
        transcript.feed(event)
    return transcript.messages


def sent_calls(wire: WireServer) -> list[list[dict[str, Any]]]:
    requests: list[Any] = [request.json for request in wire.requests]
    return [[call for message in body["messages"] for call in message.get("tool_calls", ())] for body in requests]


async def test_opaque_fields_of_a_call_are_sent_back_in_this_turn_and_in_later_ones(
    wire: WireServer, models: Models
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


async def test_a_model_that_sees_nothing_gets_no_pictures_of_tool_results(wire: WireServer, models: Models) -> None:
    refusal = refuses(400, {"error": {"message": "This model does not support image input"}})
    wire.gives(refusal, speaks("a"), speaks("b"))
    model, history = models(), Prompt("", [assistant(None, "x"), result("x", [IMAGE]), user()])
    for text in "ab":
        assert text_in((await read_deltas(model.stream(history)))[0]) == text
    assert [b"image_url" in request.body for request in wire.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("field", "option", "sent"),
    [
        ("reasoning_content", None, "Hm."),
        ("reasoning", None, None),
        ("reasoning_content", "", None),
    ],
)
async def test_reasoning_content_is_sent_back_once_it_has_been_sent(
    field: str, option: str | None, sent: str | None, wire: WireServer, models: Models
) -> None:
    wire.gives(thinks(field), speaks("42"))
    await run_calculation(models(options=OpenAIOptions(reasoning_field=option)))
    requests: list[Any] = [request.json for request in wire.requests]
    (message,) = (each for each in requests[1]["messages"] if each["role"] == "assistant")
    assert message.get("reasoning_content") == sent


async def test_a_server_that_refuses_reasoning_gets_none(wire: WireServer, models: Models) -> None:
    error = {"error": {"message": "reasoning_content is not allowed in input messages"}}
    wire.gives(thinks("reasoning_content"), refuses(400, error), speaks("42"), speaks("Yes."))
    model = models()
    history = await run_calculation(model)
    await run_calculation(model, *history, *run_input("Sure?").messages)
    requests: list[Any] = [request.json for request in wire.requests]
    assert ["reasoning_content" in str(body["messages"]) for body in requests] == [False, True, False, False]


async def test_a_server_that_misses_the_reasoning_that_another_process_got_is_sent_it(
    wire: WireServer, models: Models
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
