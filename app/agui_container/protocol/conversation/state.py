"""The state that agent and application share, as a run's events make it: a value that is replaced and patched.

Rule: what is handed in is copied and what is handed out is a copy, so nobody changes it but by events. A run that never
touches its state pays for nothing but keeping its JSON. Source: AG-UI spec 1.1, events/state.
"""

from ag_ui.core import BaseEvent, StateDeltaEvent, StateSnapshotEvent
from pydantic_core import from_json, to_json

from agui_container.protocol.conversation.json_patch import Json, JsonDocument
from agui_container.protocol.strict_json import without_large_integers


class SharedState:
    """The state of one run.

    Args:
        value: what the run starts from: the input's ``state``; None, which is none, stands for the empty object.
    """

    __slots__ = ("_document", "_json", "is_new")

    def __init__(self, value: Json) -> None:
        self._json: bytes | None = None
        self._document: JsonDocument | None = None
        self.replace({} if value is None else value)
        self.is_new = False
        """Whether it has been replaced or patched."""

    def value(self) -> Json:
        """The state now, as the caller's own copy."""
        return from_json(self.json())

    def json(self) -> bytes:
        """The state now, as ``dumped`` writes it."""
        if self._json is None:
            self._json = dump_state(self._parsed().value)
        return self._json

    def replace(self, value: Json) -> None:
        """Start over from this value."""
        self._json = dump_state(value)
        self._document = None
        self.is_new = True

    def patch(self, event: StateDeltaEvent) -> None:
        """Apply a delta, all of it. Raises ``PatchError``; then the state is as it was."""
        self._parsed().apply(event)
        self._json = None
        self.is_new = True

    def feed(self, event: BaseEvent) -> None:
        """Take one event of a run; those that say nothing of the state change nothing.

        Raises:
            ValueError: a delta that does not apply (``PatchError``) or is too deep to be read. Clients skip it.
        """
        if isinstance(event, StateSnapshotEvent):
            self.replace(event.snapshot)
        elif isinstance(event, StateDeltaEvent):
            self.patch(event)

    def check(self, event: StateDeltaEvent) -> None:
        """Raises ``PatchError`` where ``patch`` would; changes nothing."""
        self._parsed().check(event)

    def _parsed(self) -> JsonDocument:
        if self._document is None:
            self._document = JsonDocument(self.value())
        return self._document


def dump_state(value: Json) -> bytes:
    """JSON bytes that ``from_json`` gives back as they were; null for an integer that clients cannot read."""
    return without_large_integers(to_json(value, inf_nan_mode="constants", by_alias=True))
