"""AG-UI messages as messages of a Roboto session.

Rule: pure functions. A message that a client has received never changes, except that more is appended to it. A client
stores messages by index and can only append. While a run is active, a message is therefore withheld until its index is
final: until the previous message has ended and all of its calls have results.

A call that a message of the user has denied stays without its result, because the result would come before the message.

Calls without a result between them are in one message, because a client looks for unanswered calls only in the last
message of the assistant. Messages of subagents, reasoning and instructions are not shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from ag_ui.core import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from msgspec import Struct, field

from agui_container.protocol.conversation.transcript import DURATION, has_failed
from agui_container.protocol.strict_json import parse_finite_json
from agui_container.transports.conversation.events import part_text, text_of
from agui_container.transports.roboto.notes import MessageNotes, Notes, TurnFailure

Block = dict[str, object]

USER, ASSISTANT, ROBOTO = "user", "assistant", "roboto"
COMPLETED, GENERATING = "completed", "generating"
TEXT = "text"


class OpenItems(Struct, frozen=True):
    """Ids of the text messages and calls in the active run that have not ended."""

    messages: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()


class SessionMessage(Struct):
    """A message of a session.

    Attributes:
        ids: ids of the AG-UI messages in this message, in order.
        created: Unix seconds.
        is_sent: True if the client has the message already, because the client sent it.
    """

    role: str
    created: float
    ids: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    status: str = COMPLETED
    is_sent: bool = False

    @property
    def is_final(self) -> bool:
        """True if nothing more can be appended to the message."""
        return self.status != GENERATING

    @property
    def has_calls(self) -> bool:
        """True if the message contains a tool use."""
        return any(block["content_type"] == "tool_use" for block in self.blocks)


def session_messages(  # noqa: PLR0913 - a session, and two facts of its client
    messages: Sequence[Message],
    notes: Notes,
    created: float,
    active: OpenItems | None,
    *,
    knows_context: bool = False,
    errors_as_text: bool = False,
) -> list[SessionMessage]:
    """Return a thread as a session.

    Args:
        messages: all messages of the thread, including those of an active run so far.
        notes: facts of the session.
        created: creation time of the thread, in Unix seconds.
        active: messages and calls that have not ended, or None without an active run.
        knows_context: True if the client knows blocks of the type ``client_context``.
        errors_as_text: True if the client does not show blocks of the type ``error``.
    """
    answered_calls = _answered_calls(messages)
    session = _Session(
        notes, created, active or OpenItems(), knows_context=knows_context, errors_as_text=errors_as_text
    )
    session.denied_calls = denied_calls(messages)
    for message in messages if active is None else _final_messages(messages, active, answered_calls):
        session.add(message)
    if active is not None:
        session.mark_generating(answered_calls)
    return session.messages


def calls_awaiting_client(messages: Sequence[Message]) -> Mapping[str, str]:
    """Return the names of the calls without a result since the last user message, by id."""
    answered_calls = _answered_calls(messages)
    calls: dict[str, str] = {}
    for message in messages:
        if isinstance(message, UserMessage):
            calls.clear()
        elif isinstance(message, AssistantMessage) and message.subagent_run_id is None:
            calls |= {call.id: call.function.name for call in message.tool_calls or () if call.id not in answered_calls}
    return calls


def _answered_calls(messages: Sequence[Message]) -> set[str]:
    return {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}


def _final_messages(messages: Sequence[Message], active: OpenItems, answered_calls: set[str]) -> Iterator[Message]:
    """Yield the messages of a thread whose index cannot change any more."""
    is_waiting = False
    for message in messages:
        match message:
            case UserMessage():
                is_waiting = False
            case AssistantMessage(subagent_run_id=None):
                if is_waiting:
                    return
                calls = {call.id for call in message.tool_calls or ()}
                if message.id in active.messages or calls & active.calls:
                    yield message
                    return
                is_waiting = not calls <= answered_calls
        yield message


def denied_calls(messages: Sequence[Message]) -> frozenset[str]:
    """Return the ids of the calls that messages of the user have denied."""
    return frozenset(
        call_id
        for message in messages
        if isinstance(message, UserMessage) and message.metadata
        for call_id in MessageNotes.of(message.metadata).denied
    )


class _Session:
    """Builder of a session's messages.

    Attributes:
        denied_calls: ids of the calls whose results are not shown.
    """

    def __init__(
        self, notes: Notes, created: float, active: OpenItems, *, knows_context: bool, errors_as_text: bool
    ) -> None:
        self.messages: list[SessionMessage] = []
        self.denied_calls: frozenset[str] = frozenset()
        self._notes = notes
        self._created = created
        self._active = active
        self._knows_context = knows_context
        self._errors_as_text = errors_as_text
        self._client_tools = {tool.name for tool in notes.tools}
        self._names: dict[str, str] = {}

    def add(self, message: Message) -> None:
        """Add a message of the thread, and the error of a turn that failed after it."""
        match message:
            case UserMessage():
                self._add_user(message)
            case AssistantMessage(subagent_run_id=None):
                self._add_assistant(message)
            case ToolMessage(subagent_run_id=None) if message.tool_call_id not in self.denied_calls:
                self._add_result(message)
        failure = self._notes.failures.get(message.id)
        if failure is not None:
            self._add_failure(failure)

    def mark_generating(self, answered_calls: set[str]) -> None:
        """Mark the last message as generating if more can be appended to it."""
        last = self.messages[-1] if self.messages else None
        if last is None or last.status != COMPLETED or last.role == USER:
            return
        previous = self.messages[-2:-1]
        is_waiting = any(
            "input" in block and block["tool_use_id"] not in answered_calls for it in previous for block in it.blocks
        )
        if last.role == ASSISTANT or is_waiting:
            last.status = GENERATING

    def _add_user(self, message: UserMessage) -> None:
        notes = MessageNotes.of(message.metadata)
        self._created = notes.created or self._created
        blocks = [text_block(text) for text in _texts(message)]
        if self._knows_context and notes.context is not None:
            blocks.append({"content_type": "client_context", "context": notes.context})
        self.messages.append(SessionMessage(USER, self._created, [message.id], blocks, is_sent=notes.is_sent))

    def _add_assistant(self, message: AssistantMessage) -> None:
        last = self._last(ASSISTANT)
        target = last if last is not None and last.has_calls and last.status == COMPLETED else None
        if target is None:
            target = SessionMessage(ASSISTANT, self._created)
            self.messages.append(target)
        target.ids.append(message.id)
        if message.content:
            target.blocks.append(text_block(message.content))
        for call in message.tool_calls or ():
            if call.id not in self._active.calls:
                self._names[call.id] = call.function.name
                target.blocks.append(self._tool_use_block(call))

    def _tool_use_block(self, call: ToolCall) -> Block:
        return {
            "content_type": "tool_use",
            "tool_name": call.function.name,
            "tool_use_id": call.id,
            "input": arguments_of(call),
            "raw_request": None,
            "answered_by_server": call.function.name not in self._client_tools,
        }

    def _add_result(self, message: ToolMessage) -> None:
        target = self._last(ROBOTO)
        if target is None:
            target = SessionMessage(ROBOTO, self._created)
            self.messages.append(target)
        target.ids.append(message.id)
        target.blocks.append(result_block(message, self._names.get(message.tool_call_id, "unknown")))

    def _add_failure(self, failure: TurnFailure) -> None:
        target = self._last(ASSISTANT)
        if target is None:
            target = SessionMessage(ASSISTANT, self._created)
            self.messages.append(target)
        if self._errors_as_text and not self._has_answer_text():
            target.blocks.append(text_block(failure.message))
        block: Block = {"content_type": "error", "error_message": failure.message, "error_code": failure.code}
        target.blocks.append(block)
        target.status = failure.status

    def _has_answer_text(self) -> bool:
        """Return True if the agent has said anything since the last message of the user."""
        turn = takewhile(lambda message: message.role != USER, reversed(self.messages))
        return any(block["content_type"] == TEXT for message in turn for block in message.blocks)

    def _last(self, role: str) -> SessionMessage | None:
        last = self.messages[-1] if self.messages else None
        return last if last is not None and last.role == role else None


# --- blocks -----------------------------------------------------------------------------------------------------------


def text_block(text: str) -> Block:
    """Return a block of text."""
    return {"content_type": TEXT, "text": text}


def result_block(message: ToolMessage, name: str) -> Block:
    """Return the result of a call as a block. Clients read the object ``raw_response``."""
    notes, duration = MessageNotes.of(message.metadata), (message.metadata or {}).get(DURATION)
    output = _output(message)
    return {
        "content_type": "tool_result",
        "tool_name": name,
        "tool_use_id": message.tool_call_id,
        "runtime_ms": duration if isinstance(duration, int) else notes.runtime_ms,
        "status": notes.status or ("error" if has_failed(message) else "success"),
        "raw_response": output,
        "payload": output,
    }


def arguments_of(call: ToolCall) -> object:
    """Return the arguments of a call, or None if they are no JSON object."""
    try:
        arguments = parse_finite_json(call.function.arguments)
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None


def _output(message: ToolMessage) -> Mapping[str, object]:
    text = text_of(message.content)
    try:
        value = parse_finite_json(text)
    except ValueError:
        value = text
    if isinstance(value, dict):
        return value
    return {"error": value} if has_failed(message) else {"result": value}


def _texts(message: UserMessage) -> Iterator[str]:
    if isinstance(message.content, str):
        yield message.content
    else:
        yield from map(part_text, message.content)  # Roboto has no blocks for media
