"""A run as the API shows it.

Rule: camelCase, times in Unix seconds, and the same words wherever the run is. What is not known is left out.
"""

from ag_ui.core import TokenUsage
from pydantic import TypeAdapter
from pydantic_core import from_json

from app.core.usage import tokens_of
from app.engine.run import Run
from app.ports.records import RunRecord

Facts = dict[str, object]
"""One JSON object."""

USAGE = TypeAdapter(list[TokenUsage])


def summary(run: Run, now: float) -> Facts:
    """A run of this process."""
    facts: Facts = {
        "runId": run.ctx.run_id,
        "threadId": run.ctx.thread_id,
        "status": run.status,
        "startedAt": run.started_at,
        "seconds": seconds_of(run.started_at, run.ended_at, now),
        "events": len(run.log),
        "tokens": tokens_of(run.ctx.usage),
        "readers": run.audience.size(now),
    }
    if run.ended_at is not None:
        facts["endedAt"] = run.ended_at
    return facts


def recorded(record: RunRecord, now: float) -> Facts:
    """A run that is stored. While it goes on, its ``tokens`` and ``readers`` are those of a moment ago."""
    facts: Facts = {
        "runId": record.key.run_id,
        "threadId": record.key.thread_id,
        "status": record.status,
        "startedAt": record.started_at,
        "seconds": seconds_of(record.started_at, record.ended_at, now),
        "events": record.last_seq,
    }
    if record.usage is not None or record.active:
        facts["tokens"] = tokens_of(USAGE.validate_json(record.usage or b"[]"))
    if record.active:
        facts["readers"] = record.readers
    if record.error is not None:
        facts["error"] = from_json(record.error)
    if record.ended_at is not None:
        facts["endedAt"] = record.ended_at
    return facts


def seconds_of(started_at: float, ended_at: float | None, now: float) -> float:
    """How long it goes on, or took."""
    return round((now if ended_at is None else ended_at) - started_at, 3)
