"""Commands for operators on the store that ``AGUI_STORE`` names: ``agui feedback`` and ``agui runs``.

Rules:

- No route and no client command leads here. Users must not see the triage of feedback, so only these commands read and
  write it.
- Results are JSON lines on the standard output, so that other programs can read them. An error is one line on the
  standard error, with exit status 2.
- Only the replica of a run ends it: ``agui runs cancel`` requests the cancellation. Only a command that uses the bus
  opens it.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agui_container.buses import open_bus
from agui_container.engine.persistence.cluster import ReplicaCommand, encode_command
from agui_container.engine.threads.views import stored_run_view
from agui_container.main import open_url
from agui_container.ports.bus import Bus, BusUnavailable
from agui_container.ports.records import Review, RunKey, RunRecord, ThreadKey, Triage
from agui_container.ports.store import FeedbackStore, Store, StoreUnavailable
from agui_container.settings import Settings, SettingsError, load_settings
from agui_container.stores import is_durable, open_store


class SharedStores(Struct, frozen=True):
    """The store and the bus of the servers."""

    store: Store
    bus: Bus


def print_json(facts: Mapping[str, object]) -> None:
    """Print one line of JSON without the values that are None."""
    present = {name: value for name, value in facts.items() if value is not None}
    print(json.dumps(present))  # noqa: T201 - output of the command


async def list_feedback(stores: SharedStores, arguments: argparse.Namespace) -> str | None:
    """Print unresolved feedback, newest first. With ``--all``, print resolved feedback, too."""
    async for review in _reviews(stores.store.feedbacks, None if arguments.all else False):
        _show(review)
    return None


async def triage_feedback(stores: SharedStores, arguments: argparse.Namespace) -> str | None:
    """Change the triage of one feedback. Options that are not given leave their value unchanged."""
    feedbacks, thread = stores.store.feedbacks, ThreadKey(arguments.owner, arguments.thread)
    async for review in _reviews(feedbacks, None):
        if (review.thread, review.feedback.message_id) == (thread, arguments.message):
            changed = await feedbacks.triage(
                thread, arguments.message, apply_triage(arguments, review.triage, time.time())
            )
            if changed is not None:
                _show(changed)
                return None
    return "there is no such feedback"


async def _reviews(feedbacks: FeedbackStore, resolved: bool | None) -> AsyncIterator[Review]:  # noqa: FBT001 - as in the store
    page = await feedbacks.reviews(resolved=resolved)
    while True:
        for review in page.items:
            yield review
        if page.next is None:
            return
        page = await feedbacks.reviews(resolved=resolved, page=page.next)


def apply_triage(arguments: argparse.Namespace, triage: Triage, now: float) -> Triage:
    """Return a triage with the given options applied. An empty label or note removes the old one."""
    texts = {name: value or None for name in ("label", "note") if (value := getattr(arguments, name)) is not None}
    triage = replace(triage, **texts)
    if arguments.reopen:
        return replace(triage, resolved_by=None, resolved_at=None)
    return replace(triage, resolved_by=arguments.resolved_by, resolved_at=now) if arguments.resolved_by else triage


def _show(review: Review) -> None:
    feedback, triage = review.feedback, review.triage
    facts: dict[str, object] = {
        "owner": review.thread.owner,
        "threadId": review.thread.thread_id,
        "messageId": feedback.message_id,
        "sentiment": feedback.sentiment,
        "categories": list(feedback.categories),
        "notes": feedback.notes,
        "createdAt": feedback.created_at,
        "changedAt": feedback.changed_at,
        "label": triage.label,
        "note": triage.note,
        "resolvedBy": triage.resolved_by,
        "resolvedAt": triage.resolved_at,
    }
    print_json(facts)


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


Command = Callable[[SharedStores, argparse.Namespace], Awaitable[str | None]]

COMMANDS: Mapping[tuple[str, str], Command] = {
    ("feedback", "list"): list_feedback,
    ("feedback", "triage"): triage_feedback,
    ("runs", "list"): list_runs,
    ("runs", "cancel"): cancel_run,
}
"""Function of each command and action. It returns an error message, or None on success."""


def run_command(arguments: argparse.Namespace) -> int:
    """Run one command of ``agui_container.__main__`` and return the exit status."""
    try:
        failure = asyncio.run(_run_with_store(open_shared_stores(load_settings()), arguments))
    except SettingsError as error:
        failure = f"cannot do this: {error}"
    except StoreUnavailable:
        failure = "cannot do this: the database of AGUI_STORE does not answer"
    except BusUnavailable:
        failure = "cannot do this: the bus of AGUI_BUS does not answer"
    if failure is None:
        return 0
    print(failure, file=sys.stderr)  # noqa: T201 - the one line an operator needs
    return 2


def open_shared_stores(settings: Settings) -> SharedStores:
    """Return the store and the bus of the servers. Raises ``SettingsError`` if the servers do not share a store."""
    url = settings.store.get_secret_value()
    store = open_url("AGUI_STORE", url, open_store)
    if not is_durable(url):
        raise SettingsError("AGUI_STORE: what it names is in the server's own process; name the database that it uses.")
    if url.startswith("sqlite:") and not Path(url.partition("///")[2].partition("?")[0]).exists():
        raise SettingsError("AGUI_STORE: there is no such file.")
    return SharedStores(store, open_url("AGUI_BUS", settings.bus.get_secret_value(), open_bus))


async def _run_with_store(stores: SharedStores, arguments: argparse.Namespace) -> str | None:
    try:
        await stores.store.open()
        return await COMMANDS[arguments.command, arguments.action](stores, arguments)
    finally:
        await stores.store.aclose()
