"""Messages of a roz client as AG-UI: prompts, history, context, results and decisions.

Rule: pure translation. Source: roz's API reference (proto/roz/v1/agent.proto).
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    ContentPart,
    FunctionCall,
    Message,
    ReasoningMessage,
    SystemMessage,
    TextPart,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from google.protobuf.json_format import MessageToDict
from pydantic_core import to_json

from agui_container.protocol.client_input import object_schema, schema_problem
from agui_container.protocol.errors import validation_error
from agui_container.protocol.parser import MAX_MESSAGE_PARTS
from agui_container.protocols.conversation.approvals import ApprovalDecision, Verdict
from agui_container.protocols.gen import agent_pb2 as pb
from agui_container.protocols.gen.descriptors import Struct
from agui_core.content import media_part

ROLES = ("user", "assistant", "system", "tool")

MAX_HISTORY = 5_000
"""Number of messages, and number of parts, of an earlier conversation."""


def json_of(struct: Struct) -> dict[str, Any]:
    """Make whole numbers integers: ``Struct`` has only floats. Raises ``AppError`` for infinite numbers and NaN."""
    try:
        document: dict[str, Any] = _with_integers(MessageToDict(struct))
    except ValueError:
        raise validation_error("A Struct has a number that is not finite.") from None
    return document


def _with_integers(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _with_integers(each) for name, each in value.items()}
    return [_with_integers(each) for each in value] if isinstance(value, list) else value


def tool_of(schema: pb.ToolSchema) -> Tool:
    """Raise ``AppError`` VALIDATION_ERROR without a name, or for a schema of anything else than an object."""
    if not schema.name:
        raise validation_error("tools: a tool needs a name.")
    parameters = object_schema(json_of(schema.parameters_schema))
    if parameters is None:
        raise validation_error(f"parameters_schema: {schema_problem(schema.name)}")
    return Tool(name=schema.name, description=schema.description, parameters=parameters)


def user_message(message: pb.UserMessage, message_id: str) -> UserMessage:
    """Return a user message with its text and context blocks. Raises ``AppError`` VALIDATION_ERROR for too many."""
    if len(message.context) > MAX_MESSAGE_PARTS:
        raise validation_error(f"context: may have {MAX_MESSAGE_PARTS} blocks at most.")
    if not message.context:
        return UserMessage(id=message_id, content=message.content)
    parts: list[ContentPart] = [TextPart(text=message.content)] if message.content else []
    parts += [part for block in message.context for part in _content_parts(block)]
    return UserMessage(id=message_id, content=parts)


def _content_parts(block: pb.ContentBlock) -> Sequence[ContentPart]:
    """Return the parts of a block. The label of media is a text before it, because no model reads names of media."""
    if block.WhichOneof("block") != "binary":
        return (TextPart(text=f"{block.label}:\n{block.text}" if block.label else block.text),)
    media = _media(block.binary.mime_type, block.binary.data, block.label)
    return (TextPart(text=f"{block.label}:"), media) if block.label else (media,)


def _media(mime_type: str, data: bytes, name: str | None = None) -> ContentPart:
    return media_part(base64.b64encode(data).decode(), mime_type, name)


def history_of(messages: Sequence[pb.ConversationMessage]) -> list[Message]:
    """Raise ``AppError`` VALIDATION_ERROR for an unknown role, or too many messages or parts."""
    if len(messages) > MAX_HISTORY or sum(len(message.parts) for message in messages) > MAX_HISTORY:
        raise validation_error(f"history: may have {MAX_HISTORY} messages and parts at most.")
    history: list[Message] = []
    for at, message in enumerate(messages):
        if message.role not in ROLES:
            raise validation_error(f"history.{at}.role: must be one of {', '.join(ROLES)}.")
        history += _history_messages(f"history-{at}", message)
    return history


def _history_messages(message_id: str, message: pb.ConversationMessage) -> list[Message]:
    texts, calls = list[str](), list[ToolCall]()
    reasoning, results, images = list[Message](), list[Message](), list[ContentPart]()
    for at, part in enumerate(message.parts):
        part_id = f"{message_id}-{at}"
        match part.WhichOneof("part"):
            case "text":
                texts.append(part.text.text)
            case "image":
                images.append(_media(part.image.media_type, part.image.data))
            case "thinking":
                text, signature = part.thinking.thinking, part.thinking.signature or None
                reasoning.append(ReasoningMessage(id=part_id, content=text, encrypted_value=signature))
            case "tool_use":
                arguments = to_json(json_of(part.tool_use.input)).decode()
                function = FunctionCall(name=part.tool_use.name, arguments=arguments)
                calls.append(ToolCall(id=part.tool_use.id, function=function))
            case "tool_result":
                result = part.tool_result
                error = result.content if result.is_error else None
                call_id, content = result.tool_use_id, result.content
                results.append(ToolMessage(id=part_id, tool_call_id=call_id, content=content, error=error))
    text = "\n".join(texts)
    if message.role == "system":
        return [SystemMessage(id=message_id, content=text)]
    if message.role == "assistant":
        answer = AssistantMessage(id=message_id, content=text or None, tool_calls=calls or None)
        return [*reasoning, *([answer] if texts or calls else ()), *results]
    question = [*(TextPart(text=text) for text in texts), *images] if images else text
    return [*results, *([UserMessage(id=message_id, content=question)] if texts or images else ())]


def tool_message(result: pb.ToolResult) -> ToolMessage:
    """Exit code and truncation are part of the text, because the model reads nothing else of a result."""
    details: Mapping[str, object] = {
        "exitCode": result.exit_code if result.HasField("exit_code") else None,
        "truncated": result.truncated or None,
        "durationMs": result.duration_ms if result.HasField("duration_ms") else None,
    }
    exit_code = f"[exit code {result.exit_code}]" if result.HasField("exit_code") else ""
    cut = "[the output was truncated]" if result.truncated else ""
    return ToolMessage(
        id=f"result-{result.tool_call_id}",
        tool_call_id=result.tool_call_id,
        content="\n".join(filter(None, (result.result, exit_code, cut))),
        error=None if result.success else (result.result or "The tool failed."),
        metadata={name: value for name, value in details.items() if value is not None} or None,
    )


def permission_answer(permission: pb.PermissionDecision) -> ApprovalDecision:
    """Raise ``AppError`` VALIDATION_ERROR for edited arguments that are not JSON."""
    verdict = Verdict.APPROVED if permission.approved else Verdict.DENIED
    edited = json_of(permission.modifier) if permission.HasField("modifier") else None
    return ApprovalDecision(permission.tool_call_id, verdict, edited_arguments=edited)
