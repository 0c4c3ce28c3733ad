"""The caller's messages prepared for a model: untrusted messages removed, calls and results paired.

Rule: pure functions. A call in a history is text and never runs. In the result every call is answered exactly once,
right after the message that makes it, because providers reject any other order, now and in each later run.

Sources: AG-UI spec 1.1, basic/run-input#messages and events/tool-calls#frontend-tools.
"""

from collections.abc import Sequence

from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    ContentPart,
    DataSource,
    DeveloperMessage,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

from agui_container.protocol.content_parts import plain_base64
from agui_container.protocol.errors import AppError, ErrorCode

NO_RESULT = "This call was not answered."

NOTHING = "messages: there is nothing to answer. Send text or inline media of the user, or the result of a known call."
ALL_ANSWERED = (
    "messages: the assistant has answered everything. Send text or inline media of the user, or the result of a call."
)
"""Reasons for which a model is not called."""


def trusted_conversation(messages: Sequence[Message], *, trust_instructions: bool = False) -> list[Message]:
    """Return the caller's messages that the model may see, with calls and results paired.

    Activities are removed because they are meant for display, and messages of subagents because they belong to other
    conversations. System and developer messages are removed unless ``trust_instructions`` is set, because a caller
    could use them to override the operator's instructions.
    """
    hidden: tuple[type, ...] = (ActivityMessage,)
    if not trust_instructions:
        hidden = (ActivityMessage, SystemMessage, DeveloperMessage)
    return pair_calls(
        [message for message in messages if not isinstance(message, hidden) and not message.subagent_run_id]
    )


def answerable(prompt: Sequence[Message], sent: Sequence[Message]) -> Sequence[Message]:
    """Return the messages for a model, which end with something to answer: a user message or results.

    Results stand right after their calls. If the caller has sent them after texts of the assistant, these texts are put
    before the calls.

    Args:
        prompt: messages whose calls and results are paired.
        sent: the caller's messages, and results that the caller does not know.

    Raises:
        AppError: VALIDATION_ERROR if there is nothing to answer, because a model would answer something invented.
    """
    last = _last_substance(prompt)
    if last is None:
        raise AppError(ErrorCode.VALIDATION_ERROR, NOTHING)
    if not isinstance(last, AssistantMessage):
        return prompt
    results = {message.tool_call_id for message in prompt if isinstance(message, ToolMessage)}
    known = [message for message in sent if not isinstance(message, ToolMessage) or message.tool_call_id in results]
    if not isinstance(_last_substance(known), ToolMessage):
        raise AppError(ErrorCode.VALIDATION_ERROR, ALL_ANSWERED)
    return _with_results_last(prompt)


def _last_substance(messages: Sequence[Message]) -> Message | None:
    """Return the last message of the user, of the assistant, or with a result, that has content. None if none has."""
    for message in reversed(messages):
        match message:
            case ToolMessage():
                return message
            case UserMessage() if _has_content(message.content):
                return message
            case AssistantMessage() if message.content or message.tool_calls:
                return message
    return None


def _with_results_last(messages: Sequence[Message]) -> Sequence[Message]:
    end = max(at for at, message in enumerate(messages) if isinstance(message, ToolMessage)) + 1
    start = max(at for at in range(end) if not isinstance(messages[at], ToolMessage))
    return [*messages[:start], *messages[end:], *messages[start:end]]


def _has_content(content: str | Sequence[ContentPart]) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return any(
        part.text.strip()
        if isinstance(part, TextPart)
        else isinstance(part.source, DataSource) and plain_base64(part.source.value)
        for part in content
    )


def pair_calls(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with each call answered once, in call order, right after the message that makes it.

    Of several calls or results with the same id only the first is used. Results without a call are dropped, and so are
    assistant messages without text and calls. A call without a result gets an empty result with an error.
    """
    results: dict[str, ToolMessage] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            results.setdefault(message.tool_call_id, message)
    paired: list[Message] = []
    seen_calls: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AssistantMessage):
            paired.append(message)
            continue
        calls = _new_calls(message.tool_calls or (), seen_calls)
        if calls or message.content:
            paired.append(message.model_copy(update={"tool_calls": calls or None}))
        paired.extend(results.get(call.id) or missing_result(call.id) for call in calls)
    return paired


def _new_calls(calls: Sequence[ToolCall], seen: set[str]) -> list[ToolCall]:
    """Return the calls whose ids are not in ``seen``, and add their ids."""
    new = []
    for call in calls:
        if call.id not in seen:
            seen.add(call.id)
            new.append(call)
    return new


def missing_result(call_id: str) -> ToolMessage:
    """Return the placeholder for a missing result."""
    return ToolMessage(id=f"unanswered-{call_id}", tool_call_id=call_id, content="", error=NO_RESULT)
