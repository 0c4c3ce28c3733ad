"""``agui runs``: list and cancel the runs of all servers on one database, or of one server by its URL.

Rules:

- Only the replica of a run ends it. ``agui runs cancel`` requests the cancellation.
- The client is imported for a URL only, because operators use the database in images without the extra ``cli``.
"""

import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from agui_container.cli.extra import needs_extra
from agui_container.cli.failure import CommandFailed
from agui_container.cli.options import config_option, token_option, url_option
from agui_container.cli.shared_stores import SharedStores, print_json, run_with_stores
from agui_container.engine.persistence.cluster import ReplicaCommand, encode_command
from agui_container.engine.threads.views import stored_run_view
from agui_container.ports.bus import Bus, BusUnavailable
from agui_container.ports.records import RunKey, RunRecord


@click.group()
def runs() -> None:
    """List and cancel the runs of all servers on the database of AGUI_STORE, or of a server."""


@runs.command("list")
@click.option("--all", "include_ended", is_flag=True, help="Include ended runs.")
@url_option
@token_option
@config_option
def list_command(*, include_ended: bool, url: str | None, token: str | None, config: Path | None) -> None:
    """List open runs as JSON lines, newest first. With --url, those of the caller."""
    if url is not None:
        with needs_extra("runs --url"):
            from agui_container.cli.server_commands import print_runs_of, run_with_server  # noqa: PLC0415 - see above
        run_with_server(url, token, partial(print_runs_of, include_ended=include_ended))
        return
    run_with_stores(config, partial(print_runs, include_ended=include_ended))


@runs.command("cancel")
@click.argument("owner")
@click.argument("thread")
@click.argument("run")
@url_option
@token_option
@config_option
def cancel_command(owner: str, thread: str, run: str, url: str | None, token: str | None, config: Path | None) -> None:
    """Cancel a run on any server. Its OWNER, THREAD and RUN are those of the list.

    Without AGUI_BUS it takes two seconds. With --url the owner is the caller, whatever OWNER says.
    """
    if url is not None:
        with needs_extra("runs --url"):
            from agui_container.cli.server_commands import cancel_run_of, run_with_server  # noqa: PLC0415 - see above
        run_with_server(url, token, partial(cancel_run_of, thread_id=thread, run_id=run))
        return
    run_with_stores(config, partial(cancel_run, key=RunKey(owner, thread, run)))


async def print_runs(stores: SharedStores, *, include_ended: bool) -> None:
    """Print active runs, newest first, and ended runs if they are included."""
    page, now = None, time.time()
    while True:
        records = await stores.store.runs.list(None, active=not include_ended, page=page)
        for record in records.items:
            print_json(operator_view(record, now))
        if records.next is None:
            return
        page = records.next


async def cancel_run(stores: SharedStores, key: RunKey) -> None:
    """Request the cancellation of a run from its replica. Raises ``CommandFailed`` if there is no such run."""
    record = await stores.store.runs.get(key)
    if record is None:
        raise CommandFailed("there is no such run")
    if await stores.store.runs.request_cancel(record.key):
        await _notify_replica(stores.bus, record)
    print_json(operator_view(record, time.time()))


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
