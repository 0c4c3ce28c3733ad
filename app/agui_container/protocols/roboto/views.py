"""A session at one moment as its client sees it, and what has changed since the client's last look.

Rule: pure functions, which may run in a thread. A client appends to its last message and adds new messages after it.
Its position is therefore a number of messages and the extent of the last one, in a token that it sends back. Digests of
the earlier messages and of everything else detect other changes, such as an edit through another protocol.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from ag_ui.core import (
    EventType,
    Message,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import to_json

from agui_container.conversation.recovery import EVENT
from agui_container.ports.records import StoredMessage, ThreadDelta, ThreadRecord, ThreadStatus
from agui_container.protocol.errors import AppError, ErrorCode, clip_message
from agui_container.protocol.parser import MESSAGE
from agui_container.protocols.roboto.goals import calls_awaiting_client, goal_records, last_turn
from agui_container.protocols.roboto.messages import ASSISTANT, GENERATING, TEXT, Reader, session_messages, text_block
from agui_container.protocols.roboto.records import APPROVAL_REQUIRED, JSON, MessageRecord, Notes, date_of, ids
from agui_core.transcript import Transcript

ACTIVE = "roboto_turn"
"""Status of a session whose agent is at work."""

ANNOUNCED = {
    EventType.TEXT_MESSAGE_START,
    EventType.TEXT_MESSAGE_CONTENT,
    EventType.TEXT_MESSAGE_END,
    EventType.TOOL_CALL_END,
    EventType.TOOL_CALL_RESULT,
    EventType.MESSAGES_SNAPSHOT,
}
"""Events that answer waiting polls."""

SHOWN = ANNOUNCED | {EventType.TOOL_CALL_START, EventType.TOOL_CALL_ARGS}
"""Events that change the messages of a session. A call is shown only when its arguments are complete."""

WAITING_NOTE = "Waiting for an answer through another protocol: {calls}"

TOKEN = re.compile(r"(\d{1,9})\.(\d{1,12})\.(\d{1,9})\.([0-9a-f]{12})\.([0-9a-f]{12})")
DIGEST_BYTES = 6


class LiveMessages:
    """The messages of a thread while a run adds to them. ``open_ids`` are those of messages and calls without end."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.open_ids: set[str] = set()
        self._transcript = Transcript(messages)

    @property
    def messages(self) -> list[Message]:
        return self._transcript.messages

    def feed(self, data: bytes) -> None:
        """Change the messages by one of the events that are ``SHOWN``, as JSON."""
        event = EVENT.validate_json(data)
        self._transcript.feed(event)
        match event:
            case TextMessageStartEvent(message_id=item) | ToolCallStartEvent(tool_call_id=item):
                self.open_ids.add(item)
            case TextMessageEndEvent(message_id=item) | ToolCallEndEvent(tool_call_id=item):
                self.open_ids.discard(item)


def view_of(
    reader: Reader,
    session: ThreadDelta,
    messages: Sequence[Message] | Sequence[StoredMessage],
    open_ids: Collection[str] | None = None,
    waiting: str = "",
) -> "SessionView":
    """Return a session as a client sees it.

    Args:
        reader: the client.
        session: the thread of the session with its facts.
        messages: the stored messages, or those so far of a thread with an active run.
        open_ids: ids of the messages and calls of the active run that have not ended, or None without one.
        waiting: names of the calls that wait for an answer through another protocol, or an empty text.
    """
    thread, notes, history = session.thread, Notes.of(session.notes), parse_history(messages)
    rows = session_messages(history, notes, thread.created_at, open_ids, reader)
    activity = WAITING_NOTE.format(calls=waiting) if waiting else None
    status = ACTIVE if open_ids is not None else _status_at_rest(thread, notes, history)
    return SessionView(thread, notes, status, rows, goal_records(history, rows, notes), activity)


def _status_at_rest(thread: ThreadRecord, notes: Notes, messages: Sequence[Message]) -> str:
    """Return the session's status. A call of a tool that no client has declared waits for no client."""
    turn = last_turn(messages)
    if turn is not None and turn.has_ended(notes) and turn.open_names:
        return "goals_failed"
    waits = thread.status is ThreadStatus.CLIENT_TOOL_TURN
    if waits and not {tool.name for tool in notes.tools} & {*calls_awaiting_client(messages).values()}:
        return ThreadStatus.USER_TURN.value
    return thread.status.value


def parse_history(messages: Iterable[Message | StoredMessage]) -> list[Message]:
    """Parse those messages of a thread that are stored."""
    return [MESSAGE.validate_json(it.data) if isinstance(it, StoredMessage) else it for it in messages]


class Position(Struct, frozen=True):
    """A client's place in a session: the number of its messages, and the extent of the last one.

    Attributes:
        chars, blocks: characters of text, and number of other blocks, in the last message.
        prefix, facts: digests of the messages, and of what else a delta shows.
    """

    count: int = 0
    chars: int = 0
    blocks: int = 0
    prefix: str = ""
    facts: str = ""

    @classmethod
    def parse(cls, token: str) -> "Position":
        """Parse a token. Raises ``AppError`` VALIDATION_ERROR."""
        match = TOKEN.fullmatch(token)
        if match is None:
            raise validation_error("next_token: must be a continuation_token of this session.")
        count, chars, blocks, *digests = match.groups()
        return cls(int(count), int(chars), int(blocks), *digests)

    @property
    def token(self) -> str:
        """The position as text."""
        return f"{self.count}.{self.chars}.{self.blocks}.{self.prefix}.{self.facts}"


class SessionView(Struct, frozen=True):
    """A session as one client sees it. ``activity`` is a text about an answer that the session waits for."""

    thread: ThreadRecord
    notes: Notes
    status: str
    messages: Sequence[MessageRecord]
    goals: Sequence[JSON] = ()
    activity: str | None = None

    @property
    def position(self) -> Position:
        """The position after all messages."""
        last = self.messages[-1:]
        facts = [self.status, self.thread.title, self.activity, self.goals, [row.status for row in last]]
        extent = _extent(last[0]) if last else (0, 0)
        return Position(len(self.messages), *extent, _prefix_digest(self.messages), digest(facts))

    def json(self, *, with_messages: bool = True) -> bytes:
        """Return the session as JSON."""
        thread, notes = self.thread, self.notes
        shown = self if with_messages else replace(self, messages=())
        record: JSON = {
            **ids(thread.key.thread_id),
            "created": date_of(thread.created_at),
            "created_by": thread.key.owner,
            "created_by_principal": f"user:{thread.key.owner}",
            "org_id": notes.org_id,
            "messages": [message.json() for message in shown.messages],
            "continuation_token": shown.position.token,
            "status": self.status,
            "title": thread.title,
            "model_profile": notes.model_profile,
            "goals": self.goals,
            "visibility": notes.visibility,
            "pinned_at": date_of(notes.pinned_at),
            "origin": "api",
            "activity": self.activity,
            "tasks": [],
        }
        if thread.forked_from is not None:
            origin = thread.forked_from[0]
            record |= {"forked_from_session_id": origin, "forked_from_thread_id": origin}
            record["forked_from_message_sequence_num"] = notes.forked_from
        return to_json(record)

    def delta(self, since: Position, *, knows_reset: bool) -> tuple[bytes, bool]:
        """Return the changes since a position as JSON, and True if a poll may wait for others.

        ``knows_reset`` is True for a client that can drop messages.
        """
        here = self.position
        messages, reset_from = self.missing(since, has_changed=here.facts != since.facts, can_drop=knows_reset)
        record: JSON = {
            "messages_by_idx": {str(at): message.json() for at, message in messages.items()},
            "goals": None if here.facts == since.facts else self.goals,
            "reset_from_message_sequence_num": reset_from,
            "continuation_token": here.token,
            "status": self.status,
            "title": self.thread.title,
            "activity": self.activity,
            "tasks": None,
        }
        return to_json(record), here == since and self.status == ACTIVE

    def answer_at(self, at: int) -> tuple[str, str]:
        """Return the id of the assistant's message at an index, and the session's organisation."""
        message = self._message_at(at, ErrorCode.THREAD_NOT_FOUND)
        if message.role != ASSISTANT or not message.ids:
            raise validation_error("message_sequence_num: is not an answer of the assistant.")
        return message.ids[-1], self.notes.org_id

    def fork_at(self, at: int, now: float) -> tuple[str, dict[str, object]]:
        """Return the id of the last AG-UI message up to an index, and the facts that a copy of the session has, too.

        A copy has no client tools until a client declares them, because the client's object of the copy has none.
        Nothing waits in it.
        """
        self._message_at(at, ErrorCode.VALIDATION_ERROR)
        last = next(message.ids[-1] for message in reversed(self.messages[: at + 1]) if message.ids)
        facts = self.notes.model_dump(include={"scope", "model_profile", "org_id", "concluded"})
        failures = {key: it for key, it in self.notes.failures.items() if it.code != APPROVAL_REQUIRED}
        return last, {**facts, **self.notes.with_goals(None, now), "failures": failures}

    def _message_at(self, at: int, code: ErrorCode) -> MessageRecord:
        """Return a complete message by index. Raises ``AppError`` with ``code`` if there is no such message."""
        if not 0 <= at < len(self.messages):
            raise AppError(code, "message_sequence_num: there is no such message in this session.")
        if self.messages[at].status == GENERATING:
            raise validation_error("message_sequence_num: this message is still being generated.")
        return self.messages[at]

    def missing(
        self, since: Position, *, has_changed: bool, can_drop: bool
    ) -> tuple[Mapping[int, MessageRecord], int | None]:
        """Return what a client at a position lacks, by index, and the index from which it must drop its messages.

        A client adds its own message when it sends it, and another client does not have that message. A client that can
        drop messages drops all that it has added, and gets them anew. For one that cannot, messages that were sent come
        without their content. ``has_changed`` is True if the status of the last message may be another one.
        """
        messages, count = self.messages, since.count
        if not count:
            return dict(enumerate(messages)), None
        if len(messages) < count or _prefix_digest(messages[:count]) != since.prefix:
            first = 0 if can_drop else count
            return dict(enumerate(messages[first:], first)), 0 if can_drop else None
        later = dict(enumerate(messages[count:], count))
        reset_from = count if can_drop and any(message.is_sent for message in later.values()) else None
        if not can_drop:
            later = {at: replace(it, content=[]) if it.is_sent else it for at, it in later.items()}
        last = messages[count - 1]
        content = _content_after(last, since.chars, since.blocks)
        if content or has_changed:
            later = {count - 1: replace(last, content=content), **later}
        return later, reset_from


def _content_after(message: MessageRecord, chars: int, blocks: int) -> list[JSON]:
    """Return the content of a message without the first characters of text and the first other blocks."""
    rest: list[JSON] = []
    for block in message.content:
        if block["content_type"] != TEXT:
            if blocks <= 0:
                rest.append(block)
            blocks -= 1
            continue
        text = str(block["text"])
        if len(text) > chars:
            rest.append(text_block(text[chars:]))
        chars = max(chars - len(text), 0)
    return rest


def _extent(message: MessageRecord) -> tuple[int, int]:
    texts = [str(block["text"]) for block in message.content if block["content_type"] == TEXT]
    return sum(map(len, texts)), len(message.content) - len(texts)


def _prefix_digest(messages: Sequence[MessageRecord]) -> str:
    """Return a digest of messages in order. Only the first id of the last one counts, because it may grow."""
    before = [(message.role, message.ids, _extent(message)) for message in messages[:-1]]
    return digest([before, [(message.role, message.ids[:1]) for message in messages[-1:]]])


def validation_error(message: str) -> AppError:
    return AppError(ErrorCode.VALIDATION_ERROR, clip_message(message))


def digest(value: object) -> str:
    """Return a short digest of a JSON value."""
    return hashlib.blake2b(to_json(value), digest_size=DIGEST_BYTES).hexdigest()
