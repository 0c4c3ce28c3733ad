"""Where operators work: what the servers share.

Rule: the bus is opened by who uses it, because most commands need none.
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
    """One line; what is None is left out."""
    known = {name: value for name, value in facts.items() if value is not None}
    print(json.dumps(known))  # noqa: T201 - the answer
