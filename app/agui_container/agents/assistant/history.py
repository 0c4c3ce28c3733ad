"""The caller's messages as a model may see them: what is untrusted is left out, and calls and results pair up.

Rule: pure, and nothing here causes anything to run; a call in a history is words. A model gets every call answered
exactly once, right after the message that made it, because providers refuse anything else for good. Sources: AG-UI spec
1.1, basic/run-input#messages and events/tool-calls#frontend-tools.
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
    """What of the caller's messages a model is shown.

    Activities are for eyes only, and what subagents said to themselves is not the assistant's. Instructions (system and
    developer messages) are dropped unless the operator trusts callers with them: whoever can write them could rewrite
    the assistant's orders.
    """
    hidden: tuple[type, ...] = (ActivityMessage,)
    if not trust_instructions:
        hidden = (ActivityMessage, SystemMessage, DeveloperMessage)
    return pair_calls(
        [message for message in messages if not isinstance(message, hidden) and not message.subagent_run_id]
    )


def pair_calls(messages: Sequence[Message]) -> list[Message]:
    """The messages with each call answered once, in call order, behind the message that made it.

    Of several calls with one id the first counts, and so it is with results. Results of no call are dropped, and so is
    an assistant's message without text and calls. A call without a result is answered by the empty string with an error
    beside it.
    """
    results: dict[str, ToolMessage] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            results.setdefault(message.tool_call_id, message)
    shown: list[Message] = []
    answered: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AssistantMessage):
            shown.append(message)
            continue
        calls = _new_calls(message.tool_calls or (), answered)
        if calls or message.content:
            shown.append(message.model_copy(update={"tool_calls": calls or None}))
        shown.extend(results.get(call.id) or missing_result(call.id) for call in calls)
    return shown


def _new_calls(calls: Sequence[ToolCall], taken: set[str]) -> list[ToolCall]:
    """The calls whose ids are not taken yet; from now on they are."""
    fresh = []
    for call in calls:
        if call.id not in taken:
            taken.add(call.id)
            fresh.append(call)
    return fresh


def missing_result(call_id: str) -> ToolMessage:
    """What stands in for a missing result."""
    return ToolMessage(id=f"unanswered-{call_id}", tool_call_id=call_id, content="", error=NO_RESULT)
