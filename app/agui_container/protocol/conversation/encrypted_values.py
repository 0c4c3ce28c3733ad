"""Encrypted values of messages and calls. Each belongs together with its type.

Source: AG-UI spec 1.1, events/reasoning. The classes of ``ag_ui.core`` 1.0 keep the type as an unknown field.
"""

from typing import TypeVar

from ag_ui.core import ActivityMessage, Message, ReasoningEncryptedValueEvent, ToolCall

ENCRYPTED_TYPE = "encryptedValueType"

Holder = TypeVar("Holder", Message, ToolCall)


def with_encrypted_value(holder: Holder, event: ReasoningEncryptedValueEvent) -> Holder:
    """Return a message or call with the event's encrypted value. The type of an earlier value is replaced with it."""
    return _with_value(holder, event.encrypted_value, (event.model_extra or {}).get(ENCRYPTED_TYPE))


def restore_value(sent: Holder, stored: Holder) -> Holder:
    """Return a message or call with the stored encrypted value and its type, unless the client has sent its own."""
    value = _value(stored)
    if value is None or _value(sent) not in {None, value} or ENCRYPTED_TYPE in (sent.model_extra or {}):
        return sent
    return _with_value(sent, value, (stored.model_extra or {}).get(ENCRYPTED_TYPE))


def _value(holder: Message | ToolCall) -> str | None:
    return None if isinstance(holder, ActivityMessage) else holder.encrypted_value


def _with_value(holder: Holder, value: str, kind: object) -> Holder:
    changed = holder.model_copy(update={"encrypted_value": value})
    extra = {name: each for name, each in (holder.model_extra or {}).items() if name != ENCRYPTED_TYPE}
    changed.__pydantic_extra__ = extra if kind is None else {**extra, ENCRYPTED_TYPE: kind}
    return changed
