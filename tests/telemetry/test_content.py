"""Messages of users and models in the format of the GenAI conventions."""

import json

import pytest
from ag_ui.core import (
    AssistantMessage,
    DataSource,
    FunctionCall,
    ImagePart,
    Message,
    ReasoningMessage,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

from agui_container.telemetry import semconv
from tests.requirements import requirement

PICTURE = ImagePart(source=DataSource(value="AAAA" * 1_000, mime_type="image/png"))
CALL = ToolCall(id="c1", function=FunctionCall(name="pay", arguments='{"amount": 3}'))
TOLD_CALL = {"type": "tool_call", "id": "c1", "name": "pay", "arguments": '{"amount": 3}'}


@requirement("trace.content")
@pytest.mark.parametrize(
    ("message", "role", "parts"),
    [
        (UserMessage(id="m", content="hi"), "user", [{"type": "text", "content": "hi"}]),
        (
            UserMessage(id="m", content=[TextPart(text="see"), PICTURE]),
            "user",
            [{"type": "text", "content": "see"}, {"type": "image"}],
        ),
        (SystemMessage(id="m", content="be kind"), "system", [{"type": "text", "content": "be kind"}]),
        (ReasoningMessage(id="m", content="hm"), "assistant", [{"type": "reasoning", "content": "hm"}]),
        (AssistantMessage(id="m", content=None, tool_calls=[CALL]), "assistant", [TOLD_CALL]),
        (
            AssistantMessage(id="m", content="I pay.", tool_calls=[CALL]),
            "assistant",
            [{"type": "text", "content": "I pay."}, TOLD_CALL],
        ),
        (
            ToolMessage(id="m", tool_call_id="c1", content="paid"),
            "tool",
            [{"type": "tool_call_response", "id": "c1", "response": "paid"}],
        ),
    ],
    ids=["text", "a picture", "system", "reasoning", "a call", "text and a call", "a result"],
)
def test_a_message_is_its_role_and_its_parts(message: Message, role: str, parts: list[dict[str, str]]) -> None:
    assert json.loads(semconv.input_messages([message])) == [{"role": role, "parts": parts}]


@requirement("trace.content")
def test_an_answer_is_one_message_with_the_reason_of_its_end() -> None:
    said: list[Message] = [ReasoningMessage(id="t", content="hm"), AssistantMessage(id="m", content="Hello.")]
    parts = [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "Hello."}]
    assert json.loads(semconv.output_message(said, "stop")) == [
        {"role": "assistant", "parts": parts, "finish_reason": "stop"}
    ]


@requirement("trace.content")
def test_a_result_is_told_as_it_is_and_without_what_is_no_text() -> None:
    assert semconv.result_text("42") == "42"
    assert json.loads(semconv.result_text([TextPart(text="see"), PICTURE])) == [
        {"type": "text", "content": "see"},
        {"type": "image"},
    ]
