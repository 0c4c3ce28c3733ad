"""Events as the server sends them: JSON objects become the official models of ``ag_ui.core``.

Rule: nothing is lost. An event of a type that the models do not know is handed on as ``RawEvent`` with the object as it
came. A known event that breaks its model is an error, because its effect on the conversation would be lost.
"""

import json
from collections.abc import Mapping

from ag_ui.core import BaseEvent, Event, EventType, RawEvent, ToolCall, ToolCallEndEvent
from pydantic import ConfigDict, PrivateAttr, TypeAdapter, ValidationError

from agui_client.errors import AgentClientError

EVENT: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))
KNOWN = frozenset(EventType)
TERMINAL = frozenset({EventType.RUN_FINISHED, EventType.RUN_ERROR})
"""Types of the events that end a run."""


class ToolCallEvent(ToolCallEndEvent):
    """TOOL_CALL_END, together with the call that it completes."""

    _call: ToolCall = PrivateAttr()

    @classmethod
    def of(cls, event: ToolCallEndEvent, call: ToolCall) -> "ToolCallEvent":
        """Make the event of a call whose arguments have arrived."""
        made = cls.model_construct(event.model_fields_set, **dict(event))
        made._call = call  # noqa: SLF001 - its own
        return made

    @property
    def name(self) -> str:
        """Name of the tool."""
        return self._call.function.name

    @property
    def input(self) -> dict[str, object] | None:
        """The arguments. None if the model wrote no JSON object."""
        return arguments_of(self._call)


def arguments_of(call: ToolCall) -> dict[str, object] | None:
    """Return the arguments of a call, or None if they are no JSON object. No text means no arguments."""
    return parse_object(call.function.arguments or "{}")


def parse_object(text: str) -> dict[str, object] | None:
    """Return a JSON object, or None for any other text."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def parse_frame(data: str) -> dict[str, object]:
    """Parse a frame, which must be a JSON object. Raises ``AgentClientError`` for any other text."""
    frame = parse_object(data)
    if frame is None:
        raise AgentClientError("The server sent a frame that is no JSON object.")
    return frame


def parse_event(frame: Mapping[str, object]) -> BaseEvent:
    """Return the event of a frame. Raises ``AgentClientError`` for a known type that breaks its model."""
    if frame.get("type") not in KNOWN:
        return RawEvent(type=EventType.RAW, event=frame)
    try:
        return EVENT.validate_python(frame)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors())
        raise AgentClientError(f"The server sent {frame['type']} with wrong fields: {wrong}") from error
