"""``python -m agui_container runs``: list the runs of all replicas and cancel one.

Rule: only the replica of a run ends it. The command requests the cancellation.
"""

import argparse
import time
from contextlib import suppress

from agui_container.admin.store import SharedStores, print_json
from agui_container.engine.persistence.cluster import ReplicaCommand, encode_command
from agui_container.engine.threads.views import stored_run_view
from agui_container.ports.bus import Bus, BusUnavailable
from agui_container.ports.records import RunKey, RunRecord


async def list_runs(stores: SharedStores, arguments: argparse.Namespace) -> str | None:
    """Print active runs, newest first. With ``--all``, print ended runs, too."""
    page, now = None, time.time()
    while True:
        records = await stores.store.runs.list(None, active=not arguments.all, page=page)
        for record in records.items:
            print_json(operator_view(record, now))
        if records.next is None:
            return None
        page = records.next


async def cancel_run(stores: SharedStores, arguments: argparse.Namespace) -> str | None:
    """Request the cancellation of a run from its replica."""
    record = await stores.store.runs.get(RunKey(arguments.owner, arguments.thread, arguments.run))
    if record is None:
        return "there is no such run"
    if await stores.store.runs.request_cancel(record.key):
        await _notify_replica(stores.bus, record)
    print_json(operator_view(record, time.time()))
    return None


async def _notify_replica(bus: Bus, record: RunRecord) -> None:
    """Send the request over the bus. Without a bus, the replica reads it when it renews its leases."""
    with suppress(BusUnavailable):
        await bus.open()
        try:
            await bus.send(record.replica, encode_command(ReplicaCommand.CANCEL, record.key))
        finally:
            await bus.aclose()


def operator_view(record: RunRecord, now: float) -> dict[str, object]:
    """Return the view of a run for operators: the view for users plus owner and replica."""
    return {"owner": record.key.owner, "replica": record.replica, **stored_run_view(record, now)}
