"""The caller's messages prepared for a model: untrusted messages removed, calls and results paired.

Rule: pure functions. A call in a history is text and never runs. In the result every call is answered exactly once,
right after the message that makes it, because providers reject any other order, now and in each later run.

Sources: AG-UI spec 1.1, basic/run-input#messages and events/tool-calls#frontend-tools.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile

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
from msgspec import Struct

from agui_container.protocol.content_parts import plain_base64
from agui_container.protocol.conversation.stored_parts import NO_RESULT
from agui_container.protocol.errors import AppError, ErrorCode

ORPHANS, DUPLICATES, INSTRUCTIONS = "results_without_call", "duplicates", "instructions"
"""Kinds of dropped messages and calls, as the log names them."""

NOTHING = "messages: there is nothing to answer. Send text or inline media of the user, or the result of a known call."
UNUSABLE = "messages: there is nothing to answer. This model cannot be given the media of the last message: {reason}."
ALL_ANSWERED = (
    "messages: the assistant has answered everything. Send text or inline media of the user, or the result of a call."
)
"""Reasons for which a model is not called."""


class _Call(Struct, eq=False):
    """A call at its place in a history, and its result. ``is_duplicate`` is True if the history repeats an own call."""

    call: ToolCall
    result: ToolMessage | None = None
    is_duplicate: bool = False


def trusted_conversation(
    messages: Sequence[Message], *, trust_instructions: bool = False, dropped: Counter[str] | None = None
) -> list[Message]:
    """Return the caller's messages that the model may see, with calls and results paired.

    Activities are removed because they are meant for display, and messages of subagents because they belong to other
    conversations. System and developer messages are removed unless ``trust_instructions`` is set, because a caller
    could use them to override the operator's instructions. ``dropped`` counts the dropped messages and calls by kind.
    """
    dropped = Counter() if dropped is None else dropped
    own = [each for each in messages if not isinstance(each, ActivityMessage) and not each.subagent_run_id]
    if trust_instructions:
        return pair_calls(own, dropped)
    trusted = [each for each in own if not isinstance(each, SystemMessage | DeveloperMessage)]
    dropped[INSTRUCTIONS] += len(own) - len(trusted)
    return pair_calls(trusted, dropped)


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


def question_parts(messages: Sequence[Message]) -> set[tuple[str, int]]:
    """Return the parts with content of the user's messages at the end, as message id and index.

    Return none if one of these messages has text, or if there are no such messages.
    """
    questions = takewhile(lambda message: isinstance(message, UserMessage), reversed(messages))
    parts = {
        (each.id, at): part for each in questions for at, part in enumerate(parts_of(each)) if _has_content([part])
    }
    return set() if any(isinstance(part, TextPart) for part in parts.values()) else set(parts)


def parts_of(message: Message) -> Sequence[ContentPart]:
    """Return the parts of a user message. A text is one part."""
    content = message.content if isinstance(message, UserMessage) else ""
    return [TextPart(text=content)] if isinstance(content, str) else content


def is_prompt(message: Message) -> bool:
    """Return True for a result, and for a user message with content: a model has something to answer after it."""
    return isinstance(message, ToolMessage) or _has_content(parts_of(message))


def _last_substance(messages: Sequence[Message]) -> Message | None:
    """Return the last message of the user, of the assistant, or with a result, that has content. None if none has."""
    for message in reversed(messages):
        match message:
            case ToolMessage() | UserMessage() if is_prompt(message):
                return message
            case AssistantMessage() if message.content or message.tool_calls:
                return message
    return None


def _with_results_last(messages: Sequence[Message]) -> Sequence[Message]:
    end = max(at for at, message in enumerate(messages) if isinstance(message, ToolMessage)) + 1
    start = max(at for at in range(end) if not isinstance(messages[at], ToolMessage))
    return [*messages[:start], *messages[end:], *messages[start:end]]


def _has_content(parts: Sequence[ContentPart]) -> bool:
    return any(
        part.text.strip()
        if isinstance(part, TextPart)
        else isinstance(part.source, DataSource) and plain_base64(part.source.value)
        for part in parts
    )


def pair_calls(messages: Sequence[Message], dropped: Counter[str] | None = None) -> list[Message]:
    """Return the messages with each call answered once, in call order, right after the message that makes it.

    A result belongs to the last call with its id before it, because other back ends number the calls of each message
    anew. The last result of a call counts, because a client may first send a placeholder. Results without a call are
    dropped, and so are repeated calls and assistant messages without text and calls. A call without a result gets an
    empty result with an error. ``dropped`` counts what is dropped, by kind.
    """
    dropped = Counter() if dropped is None else dropped
    calls = _answered_calls(messages, dropped)
    paired: list[Message] = []
    for position, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AssistantMessage):
            paired.append(message)
            continue
        own = [each for each in calls.get(position, ()) if not each.is_duplicate]
        if own or message.content:
            paired.append(message.model_copy(update={"tool_calls": [each.call for each in own] or None}))
        paired.extend(each.result or missing_result(each.call.id) for each in own)
    return paired


def _answered_calls(messages: Sequence[Message], dropped: Counter[str]) -> Mapping[int, Sequence[_Call]]:
    """Return the calls of each message, with their results, by the position of the message."""
    by_position: dict[int, Sequence[_Call]] = {}
    by_id: defaultdict[str, list[_Call]] = defaultdict(list)
    early: list[ToolMessage] = []
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            own: dict[str, _Call] = {}
            for call in message.tool_calls:
                own.setdefault(call.id, _Call(call))
            dropped[DUPLICATES] += len(message.tool_calls) - len(own)
            by_position[position] = list(own.values())
            for each in by_position[position]:
                by_id[each.call.id].append(each)
        elif isinstance(message, ToolMessage) and message.tool_call_id in by_id:
            last = by_id[message.tool_call_id][-1]
            dropped[DUPLICATES] += last.result is not None
            last.result = message
        elif isinstance(message, ToolMessage):
            early.append(message)
    for message in early:
        _take_early_result(by_id.get(message.tool_call_id), message, dropped)
    for same_id in by_id.values():
        _mark_duplicates(same_id, dropped)
    return by_position


def _take_early_result(calls: Sequence[_Call] | None, result: ToolMessage, dropped: Counter[str]) -> None:
    """Give the first call a result that precedes it, unless it has one."""
    if calls is None:
        dropped[ORPHANS] += 1
    elif calls[0].result is None:
        calls[0].result = result
    else:
        dropped[DUPLICATES] += 1


def _mark_duplicates(calls: Sequence[_Call], dropped: Counter[str]) -> None:
    """Mark the calls that repeat an earlier one: both are the same, and only one of them has a result."""
    previous = calls[0]
    for each in calls[1:]:
        is_same = each.call.function == previous.call.function
        if is_same and (each.result is None or previous.result is None):
            previous.result = previous.result or each.result
            each.is_duplicate = True
            dropped[DUPLICATES] += 1
        else:
            previous = each


def missing_result(call_id: str) -> ToolMessage:
    """Return the placeholder for a missing result."""
    return ToolMessage(id=f"unanswered-{call_id}", tool_call_id=call_id, content="", error=NO_RESULT)
