"""The caller's messages prepared for a model: untrusted messages removed, calls and results paired.

Rule: pure functions. A call in a history is text and never runs. In the result every call is answered exactly once,
right after the message that makes it, because providers reject any other order, now and in each later run.

Sources: AG-UI spec 1.1, basic/run-input#messages and events/tool-calls#frontend-tools.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
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
    ToolMessage,
    UserMessage,
)

from agui_container.ports.files import handle_of
from agui_container.protocol.client_input import plain_base64
from agui_container.protocol.errors import validation_error
from agui_core.turns import NO_RESULT, IndexedCall, calls_of, index_calls

ORPHANS, DUPLICATES, INSTRUCTIONS = "results_without_call", "duplicates", "instructions"
"""Kinds of dropped messages and calls, as the log names them."""

NOTHING = "messages: there is nothing to answer. Send text or inline media of the user, or the result of a known call."
UNUSABLE = "messages: there is nothing to answer. This model cannot be given the media of the last message: {reason}."
ALL_ANSWERED = (
    "messages: the assistant has answered everything. Send text or inline media of the user, or the result of a call."
)
"""Reasons for which a model is not called."""


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

    Raises:
        AppError: VALIDATION_ERROR if there is nothing to answer, because a model would answer something invented.
    """
    last = _last_substance(prompt)
    if last is None:
        raise validation_error(NOTHING)
    if not isinstance(last, AssistantMessage):
        return prompt
    results = {message.tool_call_id for message in prompt if isinstance(message, ToolMessage)}
    known = [message for message in sent if not isinstance(message, ToolMessage) or message.tool_call_id in results]
    if not isinstance(_last_substance(known), ToolMessage):
        raise validation_error(ALL_ANSWERED)
    return _with_results_last(prompt)


def question_parts(messages: Sequence[Message]) -> set[tuple[str, int]]:
    """Return message id and index of the parts of the user's last messages; none if one of these has text."""
    questions = takewhile(lambda message: isinstance(message, UserMessage), reversed(messages))
    parts = {
        (each.id, at): part for each in questions for at, part in enumerate(parts_of(each)) if _has_content([part])
    }
    return set() if any(isinstance(part, TextPart) for part in parts.values()) else set(parts)


def parts_of(message: Message) -> Sequence[ContentPart]:
    content = message.content if isinstance(message, UserMessage) else ""
    return [TextPart(text=content)] if isinstance(content, str) else content


def is_prompt(message: Message) -> bool:
    """Return True for a result, and for a user message with content: a model has something to answer after it."""
    return isinstance(message, ToolMessage) or _has_content(parts_of(message))


def _last_substance(messages: Sequence[Message]) -> Message | None:
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
        else handle_of(part) or (isinstance(part.source, DataSource) and plain_base64(part.source.value))
        for part in parts
    )


def pair_calls(messages: Sequence[Message], dropped: Counter[str] | None = None) -> list[Message]:
    """Return the messages with each call answered once, in call order, right after the message that makes it.

    Results without a call are dropped, and so are repeated calls and assistant messages without text and calls. A call
    without a result gets an empty result with an error. ``dropped`` counts what is dropped, by kind.
    """
    dropped = Counter() if dropped is None else dropped
    index = index_calls(messages)
    repeated = _repeated_calls(index)
    paired: list[Message] = []
    for message, calls in zip(messages, index, strict=True):
        if isinstance(message, ToolMessage):
            dropped[ORPHANS] += not calls
            continue
        own = [each for each in calls if each not in repeated]
        dropped[DUPLICATES] += len(calls_of(message)) - len(own) + sum(max(len(each.results) - 1, 0) for each in own)
        if isinstance(message, AssistantMessage):
            if not own and not message.content:
                continue
            message = message.model_copy(update={"tool_calls": [each.call for each in own] or None})  # noqa: PLW2901
        paired.append(message)
        paired.extend(each.result or missing_result(each.call.id) for each in own)
    return paired


def _repeated_calls(index: Iterable[Sequence[IndexedCall]]) -> Collection[IndexedCall]:
    """Return the calls that repeat an earlier one: both are the same, and only one of them has a result.

    The earlier one gets the result.
    """
    repeated: dict[IndexedCall, None] = {}
    earlier: dict[str, IndexedCall] = {}
    for each in dict.fromkeys(call for calls in index for call in calls):
        previous = earlier.setdefault(each.call.id, each)
        is_same = previous is not each and each.call.function == previous.call.function
        if is_same and not (each.results and previous.results):
            previous.results = previous.results or each.results
            repeated[each] = None
        else:
            earlier[each.call.id] = each
    return repeated


def missing_result(call_id: str) -> ToolMessage:
    return ToolMessage(id=f"unanswered-{call_id}", tool_call_id=call_id, content="", error=NO_RESULT)
