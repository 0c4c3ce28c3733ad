"""``python -m app runs``: which runs go on, everywhere, and how one of them is ended.

Rule: a run is ended by its replica; here it is only asked to.
"""

import argparse
import time
from contextlib import suppress

from app.engine.archive import Told, spoken
from app.engine.facts import recorded
from app.operations.place import Place, show
from app.ports.bus import Bus, BusUnavailable
from app.ports.records import RunKey, RunRecord


async def listed(where: Place, asked: argparse.Namespace) -> str | None:
    """What goes on, the newest first; with ``--all`` what has ended, too."""
    page, now = None, time.time()
    while True:
        found = await where.store.runs.list(None, active=not asked.all, page=page)
        for record in found.items:
            show(facts_of(record, now))
        if found.next is None:
            return None
        page = found.next


async def cancelled(where: Place, asked: argparse.Namespace) -> str | None:
    """Ask a run's replica to end it."""
    record = await where.store.runs.get(RunKey(asked.owner, asked.thread, asked.run))
    if record is None:
        return "there is no such run"
    if await where.store.runs.unwant(record.key):
        await _hurry(where.bus, record)
    show(facts_of(record, time.time()))
    return None


async def _hurry(bus: Bus, record: RunRecord) -> None:
    """Say it by the bus, too: without one the replica hears of it when it renews its leases."""
    with suppress(BusUnavailable):
        await bus.open()
        try:
            await bus.send(record.replica, spoken(Told.CANCEL, record.key))
        finally:
            await bus.aclose()


def facts_of(record: RunRecord, now: float) -> dict[str, object]:
    """A run for operators: as users see it, with its owner and its replica."""
    return {"owner": record.key.owner, "replica": record.replica, **recorded(record, now)}
