"""An event's JSON to its frame on the binary wire.

Rule: the same bytes as ``@ag-ui/proto`` 1.0.0 gives for the same JSON, for every event type. Source: AG-UI spec 1.1,
basic/transports/http-protobuf: four bytes of length, big-endian, and the message; frames abut.
"""

from pydantic_core import from_json

from app.core.proto.events import fill_event
from app.core.proto.schema import Event


def frame(data: bytes) -> bytes:
    """The frame of one event.

    Args:
        data: the event as ``core.encoder`` made it.
    """
    event = Event()
    fill_event(event, from_json(data))
    message = event.SerializeToString()
    return len(message).to_bytes(4, "big") + message
