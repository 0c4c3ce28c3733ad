"""Conversion between pending interrupts and events of AgentCore Memory.

An event of a thread's session holds the interrupts of one write as ASCII JSON in its ``blob`` items. Its metadata
identify the write, so that turns and interrupts are never taken for each other. Of all events, the newest record of an
interrupt counts.
"""

import json
import logging
from collections.abc import Iterable, Sequence

from msgspec import Struct

from agui_container.ports.records import InterruptScope, PendingInterrupt
from agui_container.runtime.log_values import format_fields
from agui_container.stores.agentcore.turn_events import Event, TurnPart, make_parts, read_records

INTERRUPTS = "agui.interrupts"
"""Name of the metadata that identify a write."""

logger = logging.getLogger(__name__)


class StoredInterrupt(Struct, frozen=True):
    """An interrupt as an event holds it. ``depth`` and ``part`` complete its scope in the thread."""

    depth: int
    part: str
    interrupt: PendingInterrupt


def make_interrupt_parts(
    name: str, scope: InterruptScope, interrupts: Sequence[PendingInterrupt], at: float
) -> list[TurnPart]:
    """Return the events of one write. ``at`` is its time in Unix seconds, by which writes are ordered."""
    return make_parts(INTERRUPTS, name, at, [], dump_interrupts(scope, interrupts))


def dump_interrupts(scope: InterruptScope, interrupts: Sequence[PendingInterrupt]) -> str:
    """Return interrupts as ASCII JSON."""
    rows = [[each.id, each.payload.decode(), each.until, each.is_settled] for each in interrupts]
    return json.dumps({"depth": scope.depth, "part": scope.part, "interrupts": rows}, separators=(",", ":"))


def load_interrupts(events: Iterable[Event]) -> list[StoredInterrupt]:
    """Return the newest record of every interrupt in a session, in the order of their first records."""
    found: dict[tuple[int, str, str], StoredInterrupt] = {}
    for name, text in read_records(INTERRUPTS, events):
        try:
            for each in _load(text):
                found[each.depth, each.part, each.interrupt.id] = each
        except (KeyError, TypeError, ValueError):
            logger.warning("interrupt record unreadable, skipped %s", format_fields({"record": name}))
    return list(found.values())


def _load(text: str) -> list[StoredInterrupt]:
    record = json.loads(text)
    depth, part = int(record["depth"]), str(record["part"])
    return [
        StoredInterrupt(depth, part, PendingInterrupt(str(name), payload.encode(), float(until), bool(is_settled)))
        for name, payload, until, is_settled in record["interrupts"]
    ]
