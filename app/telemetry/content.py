"""What users, models and tools say, as the GenAI conventions write it down: only where the operator asks for it.

Rule: text, reasoning, calls and results are told; of anything else only what it is, because spans are no place for
images. Source: the JSON schemas of ``gen_ai.input.messages`` and ``gen_ai.output.messages``.
"""

import os
from collections.abc import Iterator, Sequence

from ag_ui.core import AssistantMessage, ContentPart, Message, ReasoningMessage, TextPart, ToolMessage
from pydantic_core import to_json

from app.ports import ToolContent

SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ON = ("true", "span_only", "span_and_event")

Part = dict[str, str]


def is_wanted() -> bool:
    """Whether the operator wants content in spans."""
    return os.environ.get(SWITCH, "").lower() in ON


def instructions(system: str) -> str:
    """The system text."""
    return _json([_text(system)])


def conversation(messages: Sequence[Message]) -> str:
    """What a model is sent."""
    return _json([{"role": _role(message), "parts": list(_parts(message))} for message in messages])


def answer(messages: Sequence[Message], finish_reason: str) -> str:
    """What a model has said: one message, whatever it consists of."""
    parts = [part for message in messages for part in _parts(message)]
    return _json([{"role": "assistant", "parts": parts, "finish_reason": finish_reason}])


def words(said: ToolContent) -> str:
    """What a tool gave."""
    return said if isinstance(said, str) else _json([_part(part) for part in said])


def _role(message: Message) -> str:
    return "assistant" if isinstance(message, ReasoningMessage) else message.role


def _parts(message: Message) -> Iterator[Part]:
    said = message.content
    if isinstance(message, ToolMessage):
        yield {"type": "tool_call_response", "id": message.tool_call_id, "response": words(message.content)}
    elif isinstance(message, ReasoningMessage):
        yield {"type": "reasoning", "content": message.content}
    elif isinstance(said, str):
        yield _text(said)
    elif isinstance(said, list):
        yield from map(_part, said)
    for call in (message.tool_calls or ()) if isinstance(message, AssistantMessage) else ():
        function = call.function
        yield {"type": "tool_call", "id": call.id, "name": function.name, "arguments": function.arguments}


def _part(part: ContentPart) -> Part:
    return _text(part.text) if isinstance(part, TextPart) else {"type": part.type}


def _text(text: str) -> Part:
    return {"type": "text", "content": text}


def _json(value: object) -> str:
    return to_json(value).decode()
