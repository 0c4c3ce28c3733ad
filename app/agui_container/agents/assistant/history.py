"""The caller's messages prepared for a model: untrusted messages removed, calls and results paired.

Rule: pure functions. A call in a history is text and never runs. In the result every call is answered exactly once,
right after the message that makes it, because providers reject any other order, now and in each later run.

Sources: AG-UI spec 1.1, basic/run-input#messages and events/tool-calls#frontend-tools.
"""

from collections.abc import Sequence

from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    DeveloperMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

NO_RESULT = "This call was not answered."


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
