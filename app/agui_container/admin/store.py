"""Store, bus and output of the commands for operators.

Rule: only a command that uses the bus opens it, because most commands need none.
"""

import json
from collections.abc import Mapping

from msgspec import Struct

from agui_container.ports.bus import Bus
from agui_container.ports.store import Store


class SharedStores(Struct, frozen=True):
    """The store and the bus of the servers."""

    store: Store
    bus: Bus


def print_json(facts: Mapping[str, object]) -> None:
    """Print one line of JSON without the values that are None."""
    present = {name: value for name, value in facts.items() if value is not None}
    print(json.dumps(present))  # noqa: T201 - output of the command
