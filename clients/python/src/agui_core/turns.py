"""Index of the turns and calls of a conversation: every pairing of a call with its result is made here.

Rules:

- Pure functions of messages. A call in a history is text and never runs.
- A turn begins with a message of the user. Its open calls are those without a result at its end, as long as the
  assistant has not answered without calls after them.
- The server gives a call another id if its thread has a call with that one (``repeated_id``). Other histories may have
  an id twice. A result belongs to the last call with its id before it, or to the next one if there is none. Of two
  calls with an id, the second may have lost its result to the first, because snapshots and clients move results: then
  the further results of the first are those of the second.
- The last result of a call counts, unless it is a placeholder. If a message repeats the id of a call, the first counts.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import count

from ag_ui.core import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from msgspec import Struct

NO_RESULT = "This call was not answered."
"""Text of the placeholder for a missing result. A result that comes later replaces it."""


class IndexedCall(Struct, eq=False):
    """A call at its place in a conversation, and its results in order."""

    call: ToolCall
    message: AssistantMessage
    number: int
    """Number among the calls with this id, from 1."""
    results: list[ToolMessage]

    @property
    def result(self) -> ToolMessage | None:
        final = [result for result in self.results if not is_placeholder(result)] or self.results
        return final[-1] if final else None


def index_calls(messages: Iterable[Message]) -> list[Sequence[IndexedCall]]:
    made: defaultdict[str, list[IndexedCall]] = defaultdict(list)
    early: defaultdict[str, list[ToolMessage]] = defaultdict(list)
    index: list[Sequence[IndexedCall]] = []
    answers: list[tuple[int, ToolMessage]] = []
    for message in messages:
        calls: dict[str, IndexedCall] = {}
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls or ():
                if call.id not in calls:
                    same_id = made[call.id]
                    calls[call.id] = IndexedCall(call, message, len(same_id) + 1, early.pop(call.id, []))
                    same_id.append(calls[call.id])
        elif isinstance(message, ToolMessage):
            same_id = made.get(message.tool_call_id, [])
            (same_id[-1].results if same_id else early[message.tool_call_id]).append(message)
            answers.append((len(index), message))
        index.append(list(calls.values()))
    for same_id in made.values():
        _share_results(deque(same_id))
    answered = {id(result): [call] for same_id in made.values() for call in same_id for result in call.results}
    for at, answer in answers:
        index[at] = answered.get(id(answer), [])
    return index


def latest_calls(messages: Sequence[Message]) -> dict[str, IndexedCall]:
    index = zip(messages, index_calls(messages), strict=True)
    return {each.call.id: each for message, calls in index if isinstance(message, AssistantMessage) for each in calls}


def repeated_ids(call_id: str, known: Container[str]) -> Iterator[str]:
    """Yield the known ids of the calls that were made under an id."""
    for number in count(1):
        id_ = repeated_id(call_id, number)
        if id_ not in known:
            break
        yield id_


def repeated_id(call_id: str, number: int) -> str:
    """Return the id of a call that is the one of this number under its id."""
    return call_id if number == 1 else f"{call_id}--{number}"


def is_repeat(id_: str, call_id: str) -> bool:
    """Return True for an id under which the thread may have a call that an agent has made with ``call_id``."""
    first, _, number = id_.rpartition("--")
    return id_ == call_id or (first == call_id and number.isdecimal())


def _share_results(calls: deque[IndexedCall]) -> None:
    """Give the further results of a call to the next calls of its id that have none, one to each."""
    while calls:
        sharing = [calls.popleft()]
        while calls and not calls[0].results:
            sharing.append(calls.popleft())
        results = deque(sharing[0].results)
        for call in sharing[:-1]:
            call.results = []
            while results and (not call.results or is_placeholder(call.results[-1])):
                call.results.append(results.popleft())
        sharing[-1].results = list(results)


def with_results(messages: Sequence[Message], results: Callable[[IndexedCall], Iterable[ToolMessage]]) -> list[Message]:
    """Return the messages with the results that a function returns for each call, right after the call's message."""
    conversation: list[Message] = []
    for message, calls in zip(messages, index_calls(messages), strict=True):
        if not isinstance(message, ToolMessage):
            conversation.append(message)
            conversation.extend(result for call in calls for result in results(call))
    return conversation


def with_settled_calls(
    messages: Sequence[Message], settled: Mapping[str, tuple[ToolCall, ToolMessage]]
) -> list[Message]:
    """Return the messages with calls as they are given here, and with their results right after them.

    A call of the messages is the last one with its id. Calls that the messages do not have are put at their end.
    """
    known = latest_calls(messages)
    missing = [call for id_, (call, _) in settled.items() if id_ not in known]
    added = [AssistantMessage(id=f"held-{missing[0].id}", tool_calls=missing)] if missing else []
    everything = [*messages, *added]
    last = latest_calls(everything)

    def is_settled(call: ToolCall, message: Message) -> bool:
        return call.id in settled and last[call.id].message is message

    def results_of(each: IndexedCall) -> Sequence[ToolMessage]:
        return [settled[each.call.id][1]] if is_settled(each.call, each.message) else each.results

    history = []
    for message in with_results(everything, results_of):
        calls = [settled[call.id][0] if is_settled(call, message) else call for call in calls_of(message)]
        history.append(message.model_copy(update={"tool_calls": calls}) if calls else message)
    return history


def unanswered_calls(messages: Iterable[Message]) -> Sequence[ToolCall]:
    """Return the calls of the assistant that have no result. Calls of subagents are not among them."""
    made = dict.fromkeys(call for calls in index_calls(messages) for call in calls)
    return [each.call for each in made if not each.results and each.message.subagent_run_id is None]


def open_calls(messages: Sequence[Message]) -> Sequence[ToolCall]:
    last = _after_last(messages, ends_calls)
    return unanswered_calls(last) if last else []


def unanswered_in_last_turn(messages: Sequence[Message]) -> Sequence[ToolCall]:
    """Return the calls after the user's last message that have no result, whether the assistant has gone on or not."""
    return unanswered_calls(last_turn(messages))


def last_turn(messages: Sequence[Message]) -> Sequence[Message]:
    return _after_last(messages, lambda message: isinstance(message, UserMessage))


def ends_calls(message: Message) -> bool:
    """Return True if calls before the message are not open: it is the user's, or the assistant's without calls."""
    if isinstance(message, AssistantMessage):
        return message.subagent_run_id is None and not message.tool_calls
    return isinstance(message, UserMessage)


def _after_last(messages: Sequence[Message], condition: Callable[[Message], bool]) -> Sequence[Message]:
    for at in range(len(messages), 0, -1):
        if condition(messages[at - 1]):
            return messages[at:]
    return messages


def calls_of(message: Message | None) -> Sequence[ToolCall]:
    return (message.tool_calls or ()) if isinstance(message, AssistantMessage) else ()


def call_ids(messages: Iterable[Message]) -> set[str]:
    return {call.id for message in messages for call in calls_of(message)}


def answered_ids(messages: Iterable[Message]) -> set[str]:
    return {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}


def is_placeholder(result: ToolMessage) -> bool:
    """Return True for a placeholder. It is compared by content, because frameworks may change its id and its error."""
    return result.content == NO_RESULT


def ends_with_answer(messages: Sequence[Message]) -> bool:
    """Return True if the last message, subagents' aside, is the assistant's and makes no calls."""
    last = next((message for message in reversed(messages) if message.subagent_run_id is None), None)
    return isinstance(last, AssistantMessage) and not last.tool_calls


def ends_with_question(messages: Sequence[Message]) -> bool:
    """Return True if the last message is the user's. Then the client waits for no results of its own calls."""
    return bool(messages) and isinstance(messages[-1], UserMessage)


def is_awaiting_client(messages: Sequence[Message], tools: Container[str]) -> bool:
    """Return True if the client has answered some of its calls and is expected to send the other results.

    ``tools`` are the names of the client's tools. Such a history ends with a tool result. If it ends with another
    message, the client wants the run to continue without the missing results.
    """
    if not messages or not isinstance(messages[-1], ToolMessage):
        return False
    return any(call.function.name in tools for call in open_calls(messages))
