"""Events of an upstream server: from the data of a server-sent event to an event for the run.

Rules, as the official client has them:

- An event of an unknown type is dropped, with one log line for each type and run.
- The THINKING_* events of servers before 1.0 are REASONING_* events.
- RAW events and the field ``rawEvent`` repeat what the server has received from its model. They are dropped unless the
  settings keep them.

Source: AG-UI spec 1.1; ``@ag-ui/client`` 1.0.0, its layer of backward compatibility.
"""

import json
from collections.abc import Mapping

from ag_ui.core import BaseEvent, Event, EventType
from msgspec import Struct, field
from pydantic import TypeAdapter, ValidationError

from agui_container.log_values import format_fields
from agui_container.ports import RunContext

EVENT: TypeAdapter[BaseEvent] = TypeAdapter(Event)
KNOWN = frozenset(each.value for each in EventType)

RENAMED = {
    "THINKING_START": "REASONING_START",
    "THINKING_END": "REASONING_END",
    "THINKING_TEXT_MESSAGE_START": "REASONING_MESSAGE_START",
    "THINKING_TEXT_MESSAGE_CONTENT": "REASONING_MESSAGE_CONTENT",
    "THINKING_TEXT_MESSAGE_END": "REASONING_MESSAGE_END",
}
"""Events before 1.0, which had no ids, and their successors."""


class UpstreamFault(Exception):
    """The upstream server broke the protocol. The text is for the log."""


class EventReader(Struct):
    """Reads the events of one answer. ``thread_id`` replaces the ``opaque_id`` of the upstream server."""

    ctx: RunContext
    opaque_id: str
    thread_id: str
    keeps_raw: bool
    _dropped: set[str] = field(default_factory=set)
    _block_id: str = ""
    _message_id: str = ""

    def read(self, data: str) -> BaseEvent | None:
        """Return None for an event that is dropped. Raises ``UpstreamFault`` for data that is no event."""
        try:
            fields: object = json.loads(data.replace(self.opaque_id, json.dumps(self.thread_id)[1:-1]))
        except ValueError as error:
            raise UpstreamFault(f"an event is no JSON: {error}") from None
        if not isinstance(fields, dict):
            raise UpstreamFault(f"an event is no JSON object: {data[:200]}")
        if not self.keeps_raw:
            fields.pop("rawEvent", None)
        kind = fields.get("type")
        if kind in RENAMED:
            fields = self._renamed(fields)
        elif kind not in KNOWN:
            self._report(str(kind))
            return None
        elif kind == EventType.RAW and not self.keeps_raw:
            return None
        try:
            return EVENT.validate_python(fields)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            path = ".".join(str(part) for part in first["loc"])
            raise UpstreamFault(f"an event {kind} is not valid: {path}: {first['msg']}") from None

    def _renamed(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Return the successor of an event before 1.0, with the id that it lacks."""
        kind = RENAMED[str(fields["type"])]
        if kind == "REASONING_START":
            self._block_id = self.ctx.new_id()
        elif kind == "REASONING_MESSAGE_START":
            self._message_id = self.ctx.new_id()
        id_ = self._message_id if "MESSAGE" in kind else self._block_id
        return {**fields, "type": kind, "messageId": id_}

    def _report(self, kind: str) -> None:
        if kind not in self._dropped:
            self._dropped.add(kind)
            values = {"run": self.ctx.run_id, "type": kind[:64]}
            self.ctx.logger.warning("upstream event of unknown type dropped %s", format_fields(values))
