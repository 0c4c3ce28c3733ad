"""The binary wire as a test reads it: frames apart, and which event a message is."""

from typing import Any

from agui_container.protocol.wire.protobuf.encoder import Event

HEADER = 4


def messages(body: bytes) -> list[bytes]:
    """Return the messages of a whole body."""
    found: list[bytes] = []
    while body:
        end = HEADER + int.from_bytes(body[:HEADER], "big")
        assert len(body) >= end
        found.append(body[HEADER:end])
        body = body[end:]
    return found


def event(message: bytes) -> Any:  # noqa: ANN401 - the message of the event's type
    """Return the event in a message."""
    envelope = Event.FromString(message)
    return getattr(envelope, envelope.WhichOneof("event") or "")


def kind(message: bytes) -> str:
    """The event's type, which the envelope and the event itself must agree on."""
    name = Event.FromString(message).WhichOneof("event") or ""
    number = event(message).base_event.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_name[name.upper()].number
    assert event(message).base_event.type == number
    return name.upper()
