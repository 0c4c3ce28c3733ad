"""Commands for operators on the store that ``AGUI_STORE`` names: feedback and runs.

Rule: no route and no client command leads here. Results are JSON lines on the standard output, so that other programs
can read them. An error is one line on the standard error, with exit status 2.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from agui_container.admin import feedback, runs
from agui_container.admin.store import SharedStores
from agui_container.buses import open_bus
from agui_container.main import open_url
from agui_container.ports.bus import BusUnavailable
from agui_container.ports.store import StoreUnavailable
from agui_container.runtime.log_values import mask_passwords
from agui_container.settings import Settings, SettingsError, load_settings
from agui_container.stores import is_durable, open_store

Command = Callable[[SharedStores, argparse.Namespace], Awaitable[str | None]]

COMMANDS: Mapping[tuple[str, str], Command] = {
    ("feedback", "list"): feedback.list_feedback,
    ("feedback", "triage"): feedback.triage_feedback,
    ("runs", "list"): runs.list_runs,
    ("runs", "cancel"): runs.cancel_run,
}
"""Function of each command and action. It returns an error message, or None on success."""


def run_command(arguments: argparse.Namespace) -> int:
    """Run one command of ``agui_container.__main__`` and return the exit status."""
    try:
        failure = asyncio.run(_run_with_store(open_shared_stores(load_settings()), arguments))
    except SettingsError as error:
        failure = f"cannot do this: {error}"
    except StoreUnavailable as error:
        failure = f"cannot do this: AGUI_STORE: {error}"
    except BusUnavailable as error:
        failure = f"cannot do this: AGUI_BUS: {error}"
    if failure is None:
        return 0
    print(mask_passwords(failure), file=sys.stderr)  # noqa: T201 - the one line an operator needs
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
