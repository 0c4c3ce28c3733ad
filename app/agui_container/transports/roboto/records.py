"""Records and deltas of sessions as JSON objects.

Rule: pure functions. ``thread_id``, ``session_id`` and ``chat_id`` have the same value, because each generation of
clients reads another of these members.
"""

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from pydantic_core import from_json, to_json

from agui_container.ports.records import StoredGoal, ThreadKey, ThreadRecord, ThreadStatus
from agui_container.transports.roboto.messages import USER, SessionMessage
from agui_container.transports.roboto.notes import Notes
from agui_container.transports.roboto.position import Position, digest, missing

JSON = dict[str, object]

STATUSES: Mapping[ThreadStatus, str] = {
    ThreadStatus.NOT_STARTED: "not_started",
    ThreadStatus.AGENT_TURN: "roboto_turn",
    ThreadStatus.CLIENT_TOOL_TURN: "client_tool_turn",
    ThreadStatus.USER_TURN: "user_turn",
    ThreadStatus.GOALS_FAILED: "goals_failed",
}


class SessionView(Struct, frozen=True):
    """A session at one moment.

    Attributes:
        messages: messages that can be shown.
        goals: goal records.
        activity: text about an answer that the session waits for, or None.
    """

    thread: ThreadRecord
    notes: Notes
    status: ThreadStatus
    messages: Sequence[SessionMessage]
    goals: Sequence[JSON]
    activity: str | None = None

    def position(self, count: int | None = None) -> Position:
        """Return the position after ``count`` messages, or after all of them."""
        facts = [self.status, self.thread.title, self.activity]
        return Position.at_end_of(self.messages[:count], facts, self.goals)


def session_json(view: SessionView, *, with_messages: bool = True) -> bytes:
    """Return a SessionRecord as JSON."""
    return to_json(session_record(view, with_messages=with_messages))


def session_record(view: SessionView, *, with_messages: bool = True) -> JSON:
    """Return a SessionRecord."""
    thread, notes = view.thread, view.notes
    owner = thread.key.owner
    return {
        **ids(thread.key.thread_id),
        "created": time(thread.created_at),
        "created_by": owner,
        "created_by_principal": f"user:{owner}",
        "org_id": notes.org_id,
        "messages": [message_record(message) for message in view.messages] if with_messages else [],
        "continuation_token": view.position(None if with_messages else 0).token,
        "status": STATUSES[view.status],
        "title": thread.title,
        "model_profile": notes.model_profile,
        "goals": list(view.goals),
        "visibility": notes.visibility,
        "pinned_at": None if notes.pinned_at is None else time(notes.pinned_at),
        "origin": "api",
        "activity": view.activity,
        "tasks": [],
        **_origin(view),
    }


def _origin(view: SessionView) -> JSON:
    origin = view.thread.forked_from
    if origin is None:
        return {}
    at = {"forked_from_message_sequence_num": view.notes.forked_from}
    return {"forked_from_session_id": origin[0], "forked_from_thread_id": origin[0], **at}


def feedback_record(key: ThreadKey, org_id: str, at: int, message_id: str, feedback: Mapping[str, object]) -> JSON:
    """Return a FeedbackRecord. ``feedback`` is the result of the command ``threads.feedback``."""
    owner, thread_id = key
    return {
        **ids(thread_id),
        "feedback_id": f"fb_{digest([owner, thread_id, message_id])}",
        "message_sequence_num": at,
        "org_id": org_id,
        "created": time(float(str(feedback["createdAt"]))),
        "created_by": owner,
        "modified": time(float(str(feedback["changedAt"]))),
        "modified_by": owner,
        "sentiment": feedback["sentiment"],
        "categories": feedback["categories"],
        "notes": feedback.get("notes"),
    }


def ids(thread_id: str) -> JSON:
    """Return a session's id under each of its names."""
    return {"thread_id": thread_id, "session_id": thread_id, "chat_id": thread_id}


def message_record(message: SessionMessage) -> JSON:
    """Return a message as JSON."""
    return {
        "role": message.role,
        "content": message.blocks,
        "status": message.status,
        "created": time(message.created),
    }


class Delta(Struct, frozen=True):
    """The Delta from a position to a session.

    Attributes:
        json: the Delta as JSON.
        may_wait: True if nothing has changed while a run is active.
    """

    json: bytes
    may_wait: bool


def make_delta(view: SessionView, position: Position, *, knows_reset: bool) -> Delta:
    """Return the Delta from a position to the view. ``knows_reset`` is True for a client that can drop messages."""
    difference, here = missing(view.messages, position, can_drop=knows_reset), view.position()
    record: JSON = {
        "messages_by_idx": {str(at): message_record(message) for at, message in difference.messages.items()},
        "goals": None if here.goals == position.goals else view.goals,
        "reset_from_message_sequence_num": difference.reset_from,
        "continuation_token": here.token,
        "status": STATUSES[view.status],
        "title": view.thread.title,
        "activity": view.activity,
        "tasks": None,
    }
    return Delta(to_json(record), may_wait=here == position and view.status is ThreadStatus.AGENT_TURN)


def goal_record(stored: StoredGoal, declared: JSON, at: int, achieve_tool_use_id: str | None) -> JSON:
    """Return a GoalRecord. ``at`` is the index of the message that declared it."""
    return {
        "goal_type": declared.get("goal_type", stored.type),
        "goal_data": declared,
        "status": stored.status.value,
        "message_sequence_num": at,
        "created": time(stored.created_at),
        "concluded_at": None if stored.concluded_at is None else time(stored.concluded_at),
        "achieve_tool_use_id": achieve_tool_use_id,
    }


def goal_records(
    goals: Sequence[StoredGoal], messages: Sequence[SessionMessage], declared: Mapping[str, tuple[str, Sequence[JSON]]]
) -> list[JSON]:
    """Return the goals of a session.

    Args:
        goals: goals of the thread, the oldest first.
        messages: messages of the session.
        declared: id of the message that declared a run's goals, and the goals as the client declared them, by run id. A
            run of another protocol has no entry; its goals get the index of the last user message.
    """
    places = {name: at for at, message in enumerate(messages) for name in message.ids}
    user_indexes = [at for at, message in enumerate(messages) if message.role == USER]
    uses = _uses_by_input(messages) if any(goal.result is not None for goal in goals) else {}
    records = []
    for goal in goals:
        message_id, rows = declared.get(goal.run_id, ("", ()))
        generic: JSON = {"goal_type": goal.type, "schema": from_json(goal.schema)}
        row = rows[goal.index] if goal.index < len(rows) else generic
        at = places.get(message_id, user_indexes[-1] if user_indexes else 0)
        records.append(goal_record(goal, row, at, _achieved_by(goal, uses, at)))
    return records


def _uses_by_input(messages: Sequence[SessionMessage]) -> dict[str, list[tuple[int, str]]]:
    """Return the index of the message and the id of each use of a tool, by the use's input."""
    uses: dict[str, list[tuple[int, str]]] = {}
    for at, message in enumerate(messages):
        for block in message.blocks:
            if block["content_type"] == "tool_use":
                uses.setdefault(_sorted_json(block["input"]), []).append((at, str(block["tool_use_id"])))
    return uses


def _achieved_by(goal: StoredGoal, uses: Mapping[str, list[tuple[int, str]]], at: int) -> str | None:
    """Return the id of the first use from message ``at`` on whose input is the goal's data, or None."""
    if goal.result is None:
        return None
    same = uses.get(_sorted_json(from_json(goal.result)), [])
    first = bisect_left(same, at, key=lambda use: use[0])
    return same[first][1] if first < len(same) else None


def _sorted_json(value: object) -> str:
    """Return a value as JSON that does not depend on the order of members."""
    return json.dumps(value, sort_keys=True)


def time(seconds: float) -> str:
    """Return Unix seconds as ISO 8601 text, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
