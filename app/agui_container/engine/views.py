"""Runs, threads, interrupts and feedback as JSON objects of the API.

Rule: names are in camelCase and times in Unix seconds. A run has the same fields on every replica. Unknown fields are
left out.
"""

from collections.abc import Sequence

from ag_ui.core import Interrupt, Message
from pydantic_core import from_json, to_json

from agui_container.ports.records import RunRecord, StoredMessage, ThreadDelta, ThreadRecord
from agui_container.protocol.parser import MESSAGE
from agui_container.protocol.token_usage import USAGE, count_tokens
from agui_container.run.notes import UNANSWERED, Entry, entries_in, questions_of
from agui_container.run.run import Run
from agui_core.commands import ThreadsFeedback
from agui_core.rendering import AskedQuestion, render_plaintext

View = dict[str, object]
"""One JSON object of the API, with camelCase names."""

FEEDBACK = "feedback"
"""Kind of the notes with feedback. The id of one is that of its message."""

# --- runs -------------------------------------------------------------------------------------------------------------


def run_view(run: Run | RunRecord, now: float) -> View:
    """Return a run of this process or a stored one, whose ``tokens`` and ``readers`` are a few seconds old."""
    readers: int | None
    if isinstance(run, Run):
        events, usage, readers = len(run.log), run.ctx.usage, run.readers.count()
    else:
        events, usage = run.last_seq, USAGE.validate_json(run.usage or b"[]")
        readers = run.readers if run.is_open else None
    optional: View = {
        "readers": readers,
        "error": None if run.error is None else from_json(run.error),
        "endedAt": run.ended_at,
    }
    return {
        "runId": run.key.run_id,
        "threadId": run.key.thread_id,
        "status": run.status,
        "startedAt": run.started_at,
        "seconds": duration(run.started_at, run.ended_at, now),
        "events": events,
        "tokens": count_tokens(usage),
        **without_none(optional),
    }


def duration(started_at: float, ended_at: float | None, now: float) -> float:
    """Return the seconds until the end or now, 0 if the clock was set back since the start."""
    return max(0.0, round((now if ended_at is None else ended_at) - started_at, 3))


# --- threads ----------------------------------------------------------------------------------------------------------


def thread_view(record: ThreadRecord) -> View:
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
    """Return the view of changes. The whole thread has a state, so that a client drops that of a deleted thread."""
    state = b"{}" if delta.state is None and delta.is_whole else delta.state
    optional: View = {
        "order": delta.order,
        "state": None if state is None else from_json(state),
    }
    return {
        **thread_view(delta.thread),
        "messages": [from_json(message.data) for message in delta.messages],
        "runs": {message.id: message.run_id for message in delta.messages if message.run_id},
        **without_none(optional),
        "continuationToken": delta.next,
    }


def shown_thread_view(delta: ThreadDelta, *, with_messages: bool) -> View:
    view = delta_view(delta)
    for name in ("order",) if with_messages else ("messages", "runs"):
        view.pop(name, None)
    view["feedback"] = [from_json(note.data) for note in delta.notes if note.kind == FEEDBACK]
    return view


def transcript_view(delta: ThreadDelta) -> str:
    questions = map(_asked_question, questions_of(entries_in(delta.notes)))
    return render_plaintext(parse_messages(delta.messages), delta.thread.title, questions)


def _asked_question(entry: Entry) -> AskedQuestion:
    status, payload, after = entry["status"], entry.get("payload"), entry.get("messageId")
    answer = None if status == UNANSWERED else f"[{status}]" if payload is None else _text_of(payload)
    return AskedQuestion(str(entry.get("message") or entry["reason"]), answer, None if after is None else str(after))


def _text_of(payload: object) -> str:
    return payload if isinstance(payload, str) else to_json(payload).decode()


def interrupt_view(interrupt: Interrupt) -> View:
    return interrupt.model_dump(mode="json", by_alias=True, exclude_none=True)


def feedback_view(feedback: ThreadsFeedback, created_at: float, changed_at: float) -> View:
    view: View = {
        "messageId": feedback.message_id,
        "sentiment": feedback.sentiment,
        "categories": list(feedback.categories),
        "createdAt": created_at,
        "changedAt": changed_at,
    }
    return view if feedback.notes is None else {**view, "notes": feedback.notes}


def parse_messages(messages: Sequence[StoredMessage]) -> list[Message]:
    return [MESSAGE.validate_json(message.data) for message in messages]


def without_none(fields: View) -> View:
    return {name: value for name, value in fields.items() if value is not None}
