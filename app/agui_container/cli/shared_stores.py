"""The store and the bus of running servers, for commands of operators.

Rules:

- No route and no client command leads to these commands. Users must not see the triage of feedback, so only operators
  read and write it.
- Results are JSON lines on the standard output, so that other programs can read them. An error is one line on the
  standard error, with exit status 2.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import click
from msgspec import Struct

from agui_container.buses import open_bus
from agui_container.cli.failure import CommandFailed
from agui_container.cli.project_store import DATABASE, project_store
from agui_container.main import open_url
from agui_container.ports.bus import Bus, BusUnavailable
from agui_container.ports.store import Store, StoreUnavailable
from agui_container.settings import Settings, SettingsError
from agui_container.settings_sources import load_with_origins
from agui_container.stores import is_durable, open_store


class SharedStores(Struct, frozen=True):
    """The store and the bus of the servers."""

    store: Store
    bus: Bus


def run_with_stores(config: Path | None, work: Callable[[SharedStores], Awaitable[None]]) -> None:
    """Run a command on the store and the bus that the settings name. Only a command that uses the bus opens it.

    Raises:
        CommandFailed: a setting cannot be used, or the store or the bus cannot be reached.
    """
    try:
        asyncio.run(_run(open_shared_stores(*load_with_origins(config)), work))
    except SettingsError as error:
        raise CommandFailed(f"cannot do this: {error}") from None
    except StoreUnavailable as error:
        raise CommandFailed(f"cannot do this: AGUI_STORE: {error}") from None
    except BusUnavailable as error:
        raise CommandFailed(f"cannot do this: AGUI_BUS: {error}") from None


def open_shared_stores(settings: Settings, origins: Mapping[str, str]) -> SharedStores:
    """Return the store and the bus of the servers. Raises ``SettingsError`` if the servers do not share a store."""
    url = (project_store(origins) if DATABASE.exists() else None) or settings.store.get_secret_value()
    store = open_url("AGUI_STORE", url, open_store)
    if not is_durable(url):
        raise SettingsError("AGUI_STORE: what it names is in the server's own process; name the database that it uses.")
    if url.startswith("sqlite:") and not Path(url.partition("///")[2].partition("?")[0]).exists():
        raise SettingsError("AGUI_STORE: there is no such file.")
    return SharedStores(store, open_url("AGUI_BUS", settings.bus.get_secret_value(), open_bus))


async def _run(stores: SharedStores, work: Callable[[SharedStores], Awaitable[None]]) -> None:
    try:
        await stores.store.open()
        await work(stores)
    finally:
        await stores.store.aclose()


def print_json(facts: Mapping[str, object]) -> None:
    """Print one line of JSON without the values that are None."""
    click.echo(json.dumps({name: value for name, value in facts.items() if value is not None}))
