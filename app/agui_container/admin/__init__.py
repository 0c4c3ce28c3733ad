"""What an operator does beside the servers, on the store that ``AGUI_STORE`` names: feedback, and runs.

Rule: no route and no command of a client leads here. One JSON object per line goes to the standard output, so that
other programs can read on; what is wrong is one line and an exit status of 2.
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
from agui_container.settings import Settings, SettingsError, load_settings
from agui_container.stores import is_durable, open_store

Work = Callable[[SharedStores, argparse.Namespace], Awaitable[str | None]]

WORK: Mapping[tuple[str, str], Work] = {
    ("feedback", "list"): feedback.list_feedback,
    ("feedback", "triage"): feedback.triage_feedback,
    ("runs", "list"): runs.list_runs,
    ("runs", "cancel"): runs.cancel_run,
}
"""A command and its action to what is done; it gives why not, where it is not."""


def run_command(asked: argparse.Namespace) -> int:
    """Run one command of ``agui_container.__main__``; the exit status."""
    try:
        why_not = asyncio.run(_run_with_store(place(load_settings()), asked))
    except SettingsError as error:
        why_not = f"cannot do this: {error}"
    except StoreUnavailable:
        why_not = "cannot do this: the database of AGUI_STORE does not answer"
    except BusUnavailable:
        why_not = "cannot do this: the bus of AGUI_BUS does not answer"
    if why_not is None:
        return 0
    print(why_not, file=sys.stderr)  # noqa: T201 - the one line an operator needs
    return 2


def place(settings: Settings) -> SharedStores:
    """What the servers share. Raises ``SettingsError`` where they do not."""
    url = settings.store.get_secret_value()
    store = open_url("AGUI_STORE", url, open_store)
    if not is_durable(url):
        raise SettingsError("AGUI_STORE: what it names is in the server's own process; name the database that it uses.")
    if url.startswith("sqlite:") and not Path(url.partition("///")[2].partition("?")[0]).exists():
        raise SettingsError("AGUI_STORE: there is no such file.")
    return SharedStores(store, open_url("AGUI_BUS", settings.bus.get_secret_value(), open_bus))


async def _run_with_store(where: SharedStores, asked: argparse.Namespace) -> str | None:
    try:
        await where.store.open()
        return await WORK[asked.command, asked.action](where, asked)
    finally:
        await where.store.aclose()
