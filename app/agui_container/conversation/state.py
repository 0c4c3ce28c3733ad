"""Shared state of agent and application, as the events of a run change it.

Rule: values are copied on the way in and out, so that only events change the state. The JSON is parsed only when it is
needed, so a run that does not use its state has almost no cost. Source: AG-UI spec 1.1, events/state.
"""

from ag_ui.core import BaseEvent, StateDeltaEvent, StateSnapshotEvent
from pydantic_core import from_json, to_json

from agui_container.protocol.strict_json import without_large_integers
from agui_core.json_patch import Json, apply_patch


class SharedState:
    """The state of one run.

    Args:
        value: the input's ``state``. None stands for the empty object.
    """

    __slots__ = ("_document", "_is_parsed", "_json", "is_new")

    def __init__(self, value: Json) -> None:
        self._json: bytes | None = None
        self._document: Json = None
        self._is_parsed = False
        self.replace({} if value is None else value)
        self.is_new = False
        """True if an event has replaced or patched the state."""

    def value(self) -> Json:
        return load_state(self.json())

    def changed_json(self) -> bytes | None:
        """Return what the thread keeps, None if no event has changed the state. Null is kept as the empty object."""
        if not self.is_new:
            return None
        data = self.json()
        return b"{}" if data == b"null" else data

    def json(self) -> bytes:
        if self._json is None:
            self._json = dump_state(self._document)
        return self._json

    def replace(self, value: Json) -> None:
        self._json = dump_state(value)
        self._document, self._is_parsed = None, False
        self.is_new = True

    def patch(self, event: StateDeltaEvent) -> None:
        """Apply all operations of a delta. Raises ``PatchError``; the state is unchanged then."""
        if not self._is_parsed:
            self._document, self._is_parsed = self.value(), True
        self._document = apply_patch(self._document, event)
        self._json = None
        self.is_new = True

    def feed(self, event: BaseEvent) -> None:
        """Apply an event of the run. Events that do not change the state are ignored.

        Raises:
            ValueError: a delta does not apply (``PatchError``) or is nested too deeply. Clients skip such a delta.
        """
        if isinstance(event, StateSnapshotEvent):
            self.replace(event.snapshot)
        elif isinstance(event, StateDeltaEvent):
            self.patch(event)

    def check(self, event: StateDeltaEvent) -> None:
        """Raise ``PatchError`` if ``patch`` would. The state is not changed."""
        apply_patch(self.value(), event)


def load_state(data: bytes) -> Json:
    """Parse a state. Values are not looked up in a cache of strings: that would take four times as long."""
    return from_json(data, cache_strings="keys")


def dump_state(value: Json) -> bytes:
    """Encode a state so that ``from_json`` returns the same value. Integers that are too large become null."""
    return without_large_integers(to_json(value, inf_nan_mode="constants", by_alias=True))
