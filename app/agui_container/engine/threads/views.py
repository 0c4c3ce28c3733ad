"""A run and a thread as the API shows them.

Rule: camelCase, times in Unix seconds, and the same words wherever the run is. What is not known is left out.
"""

from collections.abc import Sequence

from ag_ui.core import Interrupt, Message, TokenUsage
from pydantic import TypeAdapter
from pydantic_core import from_json

from agui_container.engine.run.run import Run
from agui_container.ports.records import Feedback, RunRecord, StoredGoal, StoredMessage, ThreadDelta, ThreadRecord
from agui_container.protocol.conversation.merge import MESSAGE
from agui_container.protocol.conversation.plaintext import render_plaintext
from agui_container.protocol.token_usage import count_tokens

View = dict[str, object]
"""One JSON object."""

USAGE = TypeAdapter(list[TokenUsage])

# --- runs -------------------------------------------------------------------------------------------------------------


def run_view(run: Run, now: float) -> View:
    """A run of this process."""
    facts: View = {
        "runId": run.ctx.run_id,
        "threadId": run.ctx.thread_id,
        "status": run.status,
        "startedAt": run.started_at,
        "seconds": seconds_of(run.started_at, run.ended_at, now),
        "events": len(run.log),
        "tokens": count_tokens(run.ctx.usage),
        "readers": run.presence.count(now),
    }
    if run.error is not None:
        facts["error"] = from_json(run.error)
    if run.ended_at is not None:
        facts["endedAt"] = run.ended_at
    return facts


def stored_run_view(record: RunRecord, now: float) -> View:
    """A run that is stored. While it goes on, its ``tokens`` and ``readers`` are those of a moment ago."""
    facts: View = {
        "runId": record.key.run_id,
        "threadId": record.key.thread_id,
        "status": record.status,
        "startedAt": record.started_at,
        "seconds": seconds_of(record.started_at, record.ended_at, now),
        "events": record.last_seq,
        "tokens": count_tokens(USAGE.validate_json(record.usage or b"[]")),
    }
    if record.is_active:
        facts["readers"] = record.readers
    if record.error is not None:
        facts["error"] = from_json(record.error)
    if record.ended_at is not None:
        facts["endedAt"] = record.ended_at
    return facts


def seconds_of(started_at: float, ended_at: float | None, now: float) -> float:
    """How long it goes on, or took."""
    return round((now if ended_at is None else ended_at) - started_at, 3)


# --- threads ----------------------------------------------------------------------------------------------------------


def thread_view(record: ThreadRecord) -> View:
    """A thread without its messages."""
    origin = record.forked_from
    known: View = {
        "title": record.title,
        "activeRunId": record.active_run,
        "forkedFrom": {"threadId": origin[0], "messageId": origin[1]} if origin else None,
    }
    return {
        "threadId": record.key.thread_id,
        "status": record.status.value,
        "createdAt": record.created_at,
        "changedAt": record.changed_at,
        **{name: value for name, value in known.items() if value is not None},
    }


def delta_view(delta: ThreadDelta) -> View:
    """A thread's facts, and of the rest what has changed: a field that is not there has not."""
    known: View = {
        "order": delta.order,
        "state": None if delta.state is None else from_json(delta.state),
        "goals": None if delta.goals is None else [goal_view(goal) for goal in delta.goals],
    }
    return {
        **thread_view(delta.thread),
        "messages": [from_json(message.data) for message in delta.messages],
        "runs": {message.id: message.run_id for message in delta.messages if message.run_id},
        **{name: value for name, value in known.items() if value is not None},
        "continuationToken": delta.next,
    }


def transcript_view(delta: ThreadDelta) -> str:
    """A thread as text."""
    return render_plaintext(parse_messages(delta.messages), delta.thread.title)


def goal_view(goal: StoredGoal) -> View:
    """A goal and what became of it."""
    known: View = {
        "data": None if goal.result is None else from_json(goal.result),
        "concludedAt": goal.concluded_at,
    }
    return {
        "runId": goal.run_id,
        "type": goal.type,
        "status": goal.status.value,
        "createdAt": goal.created_at,
        **{name: value for name, value in known.items() if value is not None},
    }


def interrupt_view(interrupt: Interrupt) -> View:
    """What waits for an answer. A run without messages shows all of it."""
    return {"id": interrupt.id, "reason": interrupt.reason}


def feedback_view(feedback: Feedback) -> View:
    """A feedback as its user sees it: nothing of what operators make of it."""
    said: View = {
        "messageId": feedback.message_id,
        "sentiment": feedback.sentiment,
        "categories": list(feedback.categories),
        "createdAt": feedback.created_at,
        "changedAt": feedback.changed_at,
    }
    return said if feedback.notes is None else {**said, "notes": feedback.notes}


def parse_messages(messages: Sequence[StoredMessage]) -> list[Message]:
    """Stored messages as AG-UI's own."""
    return [MESSAGE.validate_json(message.data) for message in messages]
