"""A session at one moment as its client sees it, and what has changed since the client's last look.

Rule: pure functions, which may run in a thread. A client appends to its last message and adds new messages after it.
Its position is therefore a number of messages and the extent of the last one, in a token that it sends back. Digests of
the earlier messages and of everything else detect other changes, such as an edit through another protocol.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence

import msgspec
from ag_ui.core import Message
from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import to_json

from agui_container.ports.records import ThreadDelta, ThreadNote, ThreadRecord, ThreadStatus
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_container.protocols.roboto.goals import DeclaredGoal, fail, goals_in, goals_of, last_turn
from agui_container.protocols.roboto.messages import ASSISTANT, GENERATING, MessageRecord, date_of, session_messages
from agui_container.protocols.roboto.requests import (
    APPROVAL_REQUIRED,
    FACTS,
    FAILURE,
    GOAL,
    JSON,
    Facts,
    TurnFailure,
    fact_notes,
)
from agui_core.turns import unanswered_in_last_turn

ACTIVE = "roboto_turn"
"""Status of a session whose agent is at work."""

NOTES = (FACTS, FAILURE, GOAL)
"""Kinds of the notes that a session consists of."""

TOKEN = re.compile(r"(\d{1,9})\.(\d{1,12})\.(\d{1,9})\.([0-9a-f]{12})\.([0-9a-f]{12})")
DIGEST_BYTES = 6


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
        return f"{self.count}.{self.chars}.{self.blocks}.{self.prefix}.{self.facts}"


class SessionView(Struct, frozen=True):
    thread: ThreadRecord
    facts: Facts
    status: str
    messages: Sequence[MessageRecord]
    goals: Sequence[DeclaredGoal] = ()
    failures: Mapping[str, TurnFailure] = {}

    @classmethod
    def of(cls, session: ThreadDelta, messages: Sequence[Message], open_ids: Collection[str] | None) -> "SessionView":
        """Return the view of a thread. ``messages`` and ``open_ids`` are as in ``session_messages``."""
        thread, facts, goals = session.thread, Facts.of(session.notes), goals_in(session.notes)
        failures = {
            note.id: msgspec.json.decode(note.data, type=TurnFailure) for note in session.notes if note.kind == FAILURE
        }
        rows = session_messages(messages, facts, thread.created_at, open_ids, failures)
        status = ACTIVE if open_ids is not None else _status_at_rest(thread, facts, goals, messages)
        return cls(thread, facts, status, rows, goals, failures)

    @property
    def position(self) -> Position:
        last = self.messages[-1:]
        facts = [self.status, self.thread.title, self.goal_records, [row.status for row in last]]
        extent = last[0].extent if last else (0, 0)
        return Position(len(self.messages), *extent, _prefix_digest(self.messages), digest(facts))

    @property
    def goal_records(self) -> list[JSON]:
        return [
            {
                "goal_type": goal.goal.__struct_config__.tag,
                "goal_data": msgspec.to_builtins(goal.goal),
                "status": goal.status,
                "message_sequence_num": self._index_of(goal.message_id) or 0,
                "created": date_of(goal.created),
                "concluded_at": date_of(goal.concluded_at),
                "achieve_tool_use_id": goal.call_id,
            }
            for goal in self.goals
        ]

    def _index_of(self, message_id: str) -> int | None:
        return next((at for at, row in enumerate(self.messages) if message_id in row.ids), None)

    def as_begun(self, message_id: str, goals: Sequence[DeclaredGoal]) -> "SessionView":
        """Return the session as the turn begins with this message and goals, whatever its run has done since.

        Clients show what they get by polls, and no more of what they have from the answer to a start.
        """
        last = self._index_of(message_id)
        messages = self.messages[: None if last is None else last + 1]
        return replace(self, messages=messages, goals=goals, status=ACTIVE)

    def json(self, *, with_messages: bool = True) -> bytes:
        thread, facts = self.thread, self.facts
        shown = self if with_messages else replace(self, messages=())
        record: JSON = {
            **ids(thread.key.thread_id),
            "created": date_of(thread.created_at),
            "created_by": thread.key.owner,
            "created_by_principal": f"user:{thread.key.owner}",
            "org_id": facts.org_id,
            "messages": [message.json() for message in shown.messages],
            "continuation_token": shown.position.token,
            "status": self.status,
            "title": thread.title,
            "model_profile": facts.model_profile,
            "goals": self.goal_records,
            "visibility": facts.visibility,
            "pinned_at": date_of(facts.pinned_at),
            "origin": "api",
        }
        if thread.forked_from is not None:
            origin, message_id = thread.forked_from
            record |= {"forked_from_session_id": origin, "forked_from_thread_id": origin}
            record["forked_from_message_sequence_num"] = self._index_of(message_id)
        return to_json(record)

    def delta(self, since: Position, *, knows_reset: bool) -> tuple[bytes, bool]:
        """Return the changes since a position as JSON, and True if there are any, or if no others will come.

        ``knows_reset`` is True for a client that can drop messages.
        """
        here = self.position
        messages, reset_from = self.missing(since, has_changed=here.facts != since.facts, can_drop=knows_reset)
        record: JSON = {
            "messages_by_idx": {str(at): message.json() for at, message in messages.items()},
            "goals": None if here.facts == since.facts else self.goal_records,
            "reset_from_message_sequence_num": reset_from,
            "continuation_token": here.token,
            "status": self.status,
            "title": self.thread.title,
        }
        return to_json(record), here != since or self.status != ACTIVE

    def answer_at(self, at: int) -> tuple[str, str]:
        """Return the id of the assistant's message at an index, and the session's organisation."""
        message = self._message_at(at, ErrorCode.THREAD_NOT_FOUND)
        if message.role != ASSISTANT or not message.ids:
            raise validation_error("message_sequence_num: is not an answer of the assistant.")
        return message.ids[-1], self.facts.org_id

    def fork_at(self, at: int, now: float) -> tuple[str, list[ThreadNote]]:
        """Return the id of the last AG-UI message up to an index, and the notes that a copy of the session has.

        A copy has no client tools until a client declares them, because the client's object of the copy has none.
        Nothing waits in it, so goals that are not achieved in it have failed.
        """
        self._message_at(at, ErrorCode.VALIDATION_ERROR)
        copied = self.messages[: at + 1]
        last = next(message.ids[-1] for message in reversed(copied) if message.ids)
        facts = {"scope": self.facts.scope, "model_profile": self.facts.model_profile, "org_id": self.facts.org_id}
        failures = [it.note(key) for key, it in self.failures.items() if it.code != APPROVAL_REQUIRED]
        names = {name for message in copied for name in message.ids}
        calls = {block.get("tool_use_id") for message in copied for block in message.content}
        goals = [
            it if it.status == "failed" or (it.status == "achieved" and it.call_id in calls) else fail(it, now)
            for it in self.goals
            if it.message_id in names
        ]
        return last, [*fact_notes(facts), *failures, *(goal.note for goal in goals)]

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
        content = last.content_after(since.chars, since.blocks)
        if content or has_changed:
            later = {count - 1: replace(last, content=content), **later}
        return later, reset_from


def _status_at_rest(
    thread: ThreadRecord, facts: Facts, goals: Sequence[DeclaredGoal], messages: Sequence[Message]
) -> str:
    """Return the session's status. A call of a tool that no client has declared waits for no client."""
    if any(goal.status == "failed" for goal in goals_of(last_turn(messages), goals)):
        return "goals_failed"
    waiting = {call.function.name for call in unanswered_in_last_turn(messages)}
    if thread.status is ThreadStatus.CLIENT_TOOL_TURN and waiting.isdisjoint(tool.name for tool in facts.tools):
        return ThreadStatus.USER_TURN.value
    return thread.status.value


def _prefix_digest(messages: Sequence[MessageRecord]) -> str:
    """Return a digest of messages in order. Only the first id of the last one counts, because it may grow."""
    before = [(message.role, message.ids, message.extent) for message in messages[:-1]]
    return digest([before, [(message.role, message.ids[:1]) for message in messages[-1:]]])


def ids(thread_id: str) -> JSON:
    """Return a session's id under each of its names, because each generation of clients reads another of them."""
    return {"thread_id": thread_id, "session_id": thread_id, "chat_id": thread_id}


def digest(value: object) -> str:
    """Return a short digest of a JSON value."""
    return hashlib.blake2b(to_json(value), digest_size=DIGEST_BYTES).hexdigest()
