"""Checks of the store and the bus. No check changes a database."""

import os
from collections.abc import Sequence
from pathlib import Path

from agui_container.cli.checks.finding import CheckStatus, Finding
from agui_container.main import open_url
from agui_container.ports.bus import BusUnavailable
from agui_container.ports.store import Store, StoreUnavailable
from agui_container.replicas.buses import open_bus
from agui_container.settings import Settings
from agui_container.stores import is_durable, open_store


async def check_store(settings: Settings) -> Sequence[Finding]:
    """Check that the store can be reached, and how many migrations it lacks."""
    url = settings.store.get_secret_value()
    if url == "memory":
        return [Finding("store", CheckStatus.OK, "memory: threads end with the process")]
    if url.startswith("sqlite:") and (finding := check_new_file(url)):
        return [finding]
    store = open_url("AGUI_STORE", url, open_store)
    try:
        return await (check_database(store) if is_durable(url) else check_memory(store))
    except StoreUnavailable as error:
        advice = "Check the address, user, password and network of AGUI_STORE."
        return [Finding("store", CheckStatus.FAILED, str(error), advice)]
    finally:
        await store.aclose()


def check_new_file(url: str) -> Finding | None:
    """Check the folder of a database file that is not there yet. None if the file is there."""
    file = Path(url.partition("///")[2].partition("?")[0])
    if file.exists():
        return None
    if not os.access(file.parent, os.W_OK | os.X_OK):
        advice = "Make the folder, or let the user of the server write to it."
        return Finding("store", CheckStatus.FAILED, f"{file} cannot be made in {file.parent}", advice)
    return Finding("store", CheckStatus.OK, f"{file} is made at the start")


async def check_database(store: Store) -> Sequence[Finding]:
    """Check a database and its migrations. Raises ``StoreUnavailable``."""
    from agui_container.stores.sql.store import SqlStore  # noqa: PLC0415 - imported only if it is used

    missing = await store.count_missing_steps() if isinstance(store, SqlStore) else 0
    reached = Finding("store", CheckStatus.OK, "the database answers")
    if missing:
        advice = "The next start of a server applies them. Keep a backup until it has started."
        return [reached, Finding("migrations", CheckStatus.WARNING, f"{missing} steps are missing", advice)]
    return [reached, Finding("migrations", CheckStatus.OK, "the schema is that of this version")]


async def check_memory(store: Store) -> Sequence[Finding]:
    """Check that AgentCore Memory answers. Raises ``StoreUnavailable``."""
    await store.threads("agui-doctor", limit=1)
    return [Finding("store", CheckStatus.OK, "AgentCore Memory answers")]


async def check_bus(settings: Settings) -> Sequence[Finding]:
    """Check that the bus can be reached."""
    url = settings.bus.get_secret_value()
    if url == "memory":
        return [Finding("bus", CheckStatus.OK, "memory: this process alone")]
    bus = open_url("AGUI_BUS", url, open_bus)
    try:
        await bus.open()
    except BusUnavailable as error:
        advice = "Check the address, user, password and network of AGUI_BUS."
        return [Finding("bus", CheckStatus.FAILED, str(error), advice)]
    finally:
        await bus.aclose()
    return [Finding("bus", CheckStatus.OK, "the server answers")]
