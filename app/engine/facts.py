"""A run as the API shows it.

Rule: camelCase, times in Unix seconds, and the same words wherever the run is.
"""

from app.engine.run import Run
from app.ports.records import RunRecord

Facts = dict[str, object]
"""One JSON object."""


def summary(run: Run) -> Facts:
    """A run of this process."""
    facts: Facts = {
        "runId": run.ctx.run_id,
        "threadId": run.ctx.thread_id,
        "status": run.status,
        "startedAt": run.started_at,
        "events": len(run.log),
        "readers": run.readers,
    }
    if run.ended_at is not None:
        facts["endedAt"] = run.ended_at
    return facts


def recorded(record: RunRecord) -> Facts:
    """A run that is stored; who reads it is not known."""
    facts: Facts = {
        "runId": record.key.run_id,
        "threadId": record.key.thread_id,
        "status": record.status,
        "startedAt": record.started_at,
        "events": record.last_seq,
    }
    if record.ended_at is not None:
        facts["endedAt"] = record.ended_at
    return facts
