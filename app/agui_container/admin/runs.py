"""``python -m agui_container runs``: which runs go on, everywhere, and how one of them is ended.

Rule: a run is ended by its replica; here it is only asked to.
"""

import argparse
import time
from contextlib import suppress

from agui_container.admin.store import SharedStores, print_json
from agui_container.engine.persistence.cluster import ReplicaCommand, encode_command
from agui_container.engine.threads.views import stored_run_view
from agui_container.ports.bus import Bus, BusUnavailable
from agui_container.ports.records import RunKey, RunRecord


async def list_runs(where: SharedStores, asked: argparse.Namespace) -> str | None:
    """What goes on, the newest first; with ``--all`` what has ended, too."""
    page, now = None, time.time()
    while True:
        found = await where.store.runs.list(None, active=not asked.all, page=page)
        for record in found.items:
            print_json(operator_view(record, now))
        if found.next is None:
            return None
        page = found.next


async def cancel_run(where: SharedStores, asked: argparse.Namespace) -> str | None:
    """Ask a run's replica to end it."""
    record = await where.store.runs.get(RunKey(asked.owner, asked.thread, asked.run))
    if record is None:
        return "there is no such run"
    if await where.store.runs.request_cancel(record.key):
        await _notify_replica(where.bus, record)
    print_json(operator_view(record, time.time()))
    return None


async def _notify_replica(bus: Bus, record: RunRecord) -> None:
    """Say it by the bus, too: without one the replica hears of it when it renews its leases."""
    with suppress(BusUnavailable):
        await bus.open()
        try:
            await bus.send(record.replica, encode_command(ReplicaCommand.CANCEL, record.key))
        finally:
            await bus.aclose()


def operator_view(record: RunRecord, now: float) -> dict[str, object]:
    """A run for operators: as users see it, with its owner and its replica."""
    return {"owner": record.key.owner, "replica": record.replica, **stored_run_view(record, now)}
