"""Attribute names and message formats of OpenTelemetry's GenAI semantic conventions.

Rule: messages are recorded only if the operator enables it. Text, reasoning, tool calls and tool results are recorded
with their content. Any other part is recorded with its type only, because spans are not suited for images.

Source: semantic conventions for generative AI, agent and inference spans, and the JSON schemas of
``gen_ai.input.messages`` and ``gen_ai.output.messages``. The version is the one that AWS's distribution reads:
``gen_ai.provider.name``, and messages as attributes.
"""

import os
from collections.abc import Iterable, Iterator, Sequence

from ag_ui.core import ContentPart, Message, ReasoningMessage, TextPart, TokenUsage, ToolMessage
from pydantic_core import to_json

from agui_container.ports import ToolContent
from agui_core.turns import calls_of

Attributes = dict[str, str | int | tuple[str, ...]]

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
MODEL = "gen_ai.request.model"
CONVERSATION = "gen_ai.conversation.id"
AGENT, AGENT_ID, AGENT_ABOUT = "gen_ai.agent.name", "gen_ai.agent.id", "gen_ai.agent.description"
TOOL, TOOL_TYPE, TOOL_CALL = "gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.tool.call.id"
ARGUMENTS, RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
INSTRUCTIONS, INPUT, OUTPUT = "gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages"
FINISH = "gen_ai.response.finish_reasons"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - tokens of a model
ERROR = "error.type"
SESSION = "session.id"
RUN, STATUS, REQUEST = "agui.run.id", "agui.run.status", "agui.request.id"

PROVIDERS = {"bedrock": "aws.bedrock", "openai-compatible": "openai"}
"""Names of the conventions for providers, by the names in ``TokenUsage``, if they differ."""

USAGE = {
    "gen_ai.usage.input_tokens": "input_tokens",
    "gen_ai.usage.output_tokens": "output_tokens",
    "gen_ai.usage.cache_read.input_tokens": "cached_input_tokens",
    "gen_ai.usage.cache_creation.input_tokens": "cache_write_input_tokens",
    "gen_ai.usage.reasoning.output_tokens": "reasoning_tokens",
}
"""Fields of ``TokenUsage``, by the attributes that contain them."""


def usage_attributes(usage: Iterable[TokenUsage]) -> Attributes:
    entries = list(usage)
    sums = {name: [getattr(entry, field) for entry in entries] for name, field in USAGE.items()}
    return {name: sum(filter(None, counts)) for name, counts in sums.items() if any(c is not None for c in counts)}


SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ON = ("true", "span_only", "span_and_event")

MessagePart = dict[str, str]


def is_enabled() -> bool:
    """True if the operator enabled the recording of message content."""
    return os.environ.get(SWITCH, "").lower() in ON


def system_instructions(system: str) -> str:
    return _json([_text(system)])


def input_messages(messages: Sequence[Message]) -> str:
    return _json([{"role": _role(message), "parts": list(_parts(message))} for message in messages])


def output_message(messages: Sequence[Message], finish_reason: str) -> str:
    """Return the messages of a model's answer as JSON with one assistant message."""
    parts = [part for message in messages for part in _parts(message)]
    return _json([{"role": "assistant", "parts": parts, "finish_reason": finish_reason}])


def result_text(content: ToolContent) -> str:
    return content if isinstance(content, str) else _json([_part(part) for part in content])


def _role(message: Message) -> str:
    return "assistant" if isinstance(message, ReasoningMessage) else message.role


def _parts(message: Message) -> Iterator[MessagePart]:
    content = message.content
    if isinstance(message, ToolMessage):
        yield {"type": "tool_call_response", "id": message.tool_call_id, "response": result_text(message.content)}
    elif isinstance(message, ReasoningMessage):
        yield {"type": "reasoning", "content": message.content}
    elif isinstance(content, str):
        yield _text(content)
    elif isinstance(content, list):
        yield from map(_part, content)
    for call in calls_of(message):
        function = call.function
        yield {"type": "tool_call", "id": call.id, "name": function.name, "arguments": function.arguments}


def _part(part: ContentPart) -> MessagePart:
    return _text(part.text) if isinstance(part, TextPart) else {"type": part.type}


def _text(text: str) -> MessagePart:
    return {"type": "text", "content": text}


def _json(value: object) -> str:
    return to_json(value).decode()
