"""Runs, threads, goals, interrupts and feedback as JSON objects of the API.

Rule: names are in camelCase and times in Unix seconds. A run has the same fields on every replica. Unknown fields are
left out.
"""

from collections.abc import Sequence

from ag_ui.core import Interrupt, Message, TokenUsage
from pydantic import TypeAdapter
from pydantic_core import from_json

from agui_container.engine.run.run import Run
from agui_container.engine.service import View
from agui_container.ports.records import Feedback, RunRecord, StoredGoal, StoredMessage, ThreadDelta, ThreadRecord
from agui_container.protocol.conversation.merge import MESSAGE
from agui_container.protocol.conversation.plaintext import render_plaintext
from agui_container.protocol.token_usage import count_tokens

USAGE = TypeAdapter(list[TokenUsage])

# --- runs -------------------------------------------------------------------------------------------------------------


def run_view(run: Run, now: float) -> View:
    """Return the view of a run of this process. ``now`` is in Unix seconds."""
    view: View = {
        "runId": run.ctx.run_id,
        "threadId": run.ctx.thread_id,
        "status": run.status,
        "startedAt": run.started_at,
        "seconds": duration(run.started_at, run.ended_at, now),
        "events": len(run.log),
        "tokens": count_tokens(run.ctx.usage),
        "readers": run.presence.count(now),
    }
    if run.error is not None:
        view["error"] = from_json(run.error)
    if run.ended_at is not None:
        view["endedAt"] = run.ended_at
    return view


def stored_run_view(record: RunRecord, now: float) -> View:
    """Return the view of a stored run. ``now`` is in Unix seconds.

    While the run is active, ``tokens`` and ``readers`` are a few seconds old.
    """
    view: View = {
        "runId": record.key.run_id,
        "threadId": record.key.thread_id,
        "status": record.status,
        "startedAt": record.started_at,
        "seconds": duration(record.started_at, record.ended_at, now),
        "events": record.last_seq,
        "tokens": count_tokens(USAGE.validate_json(record.usage or b"[]")),
    }
    if record.is_active:
        view["readers"] = record.readers
    if record.error is not None:
        view["error"] = from_json(record.error)
    if record.ended_at is not None:
        view["endedAt"] = record.ended_at
    return view


def duration(started_at: float, ended_at: float | None, now: float) -> float:
    """Return the seconds between the start and the end of a run, or until now if it is open.

    It is 0 if the clock was set back since the start.
    """
    return max(0.0, round((now if ended_at is None else ended_at) - started_at, 3))


# --- threads ----------------------------------------------------------------------------------------------------------


def thread_view(record: ThreadRecord) -> View:
    """Return the view of a thread without its messages."""
    origin = record.forked_from
    optional: View = {
        "title": record.title,
        "activeRunId": record.active_run,
        "forkedFrom": {"threadId": origin[0], "messageId": origin[1]} if origin else None,
    }
    return {
        "threadId": record.key.thread_id,
        "status": record.status.value,
        "createdAt": record.created_at,
        "changedAt": record.changed_at,
        **without_none(optional),
    }


def delta_view(delta: ThreadDelta) -> View:
    """Return the view of a thread with its changed messages. An unchanged order, state or list of goals is left out."""
    optional: View = {
        "order": delta.order,
        "state": None if delta.state is None else from_json(delta.state),
        "goals": None if delta.goals is None else [goal_view(goal) for goal in delta.goals],
    }
    return {
        **thread_view(delta.thread),
        "messages": [from_json(message.data) for message in delta.messages],
        "runs": {message.id: message.run_id for message in delta.messages if message.run_id},
        **without_none(optional),
        "continuationToken": delta.next,
    }


def shown_thread_view(delta: ThreadDelta, feedback: Sequence[Feedback], *, with_messages: bool) -> View:
    """Return the view of a whole thread with the feedback on its messages."""
    view = delta_view(delta)
    for name in ("order",) if with_messages else ("messages", "runs"):
        view.pop(name, None)
    view["feedback"] = [feedback_view(each) for each in feedback]
    return view


def transcript_view(delta: ThreadDelta) -> str:
    """Return the messages of a thread as plain text."""
    return render_plaintext(parse_messages(delta.messages), delta.thread.title)


def goal_view(goal: StoredGoal) -> View:
    """Return the view of a goal, with its result and the time of its end."""
    optional: View = {
        "data": None if goal.result is None else from_json(goal.result),
        "concludedAt": goal.concluded_at,
    }
    return {
        "runId": goal.run_id,
        "type": goal.type,
        "status": goal.status.value,
        "createdAt": goal.created_at,
        **without_none(optional),
    }


def interrupt_view(interrupt: Interrupt) -> View:
    """Return the view of an unanswered interrupt, as RUN_FINISHED has it."""
    return interrupt.model_dump(mode="json", by_alias=True, exclude_none=True)


def feedback_view(feedback: Feedback) -> View:
    """Return the view of a feedback for its user, without the operators' triage."""
    view: View = {
        "messageId": feedback.message_id,
        "sentiment": feedback.sentiment,
        "categories": list(feedback.categories),
        "createdAt": feedback.created_at,
        "changedAt": feedback.changed_at,
    }
    return view if feedback.notes is None else {**view, "notes": feedback.notes}


def parse_messages(messages: Sequence[StoredMessage]) -> list[Message]:
    """Return stored messages as AG-UI messages. Raises ``ValueError`` for invalid JSON."""
    return [MESSAGE.validate_json(message.data) for message in messages]


def without_none(fields: View) -> View:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}
