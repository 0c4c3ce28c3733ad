"""JSON of messages, as stores have it. That of texts is kept, so that the next turn does not encode its history again.

Rule: what is kept for a message is what encoding it would give now. Agents may change the messages that they get, so a
message is known by its class and a copy of its fields, and only if all of these are text: a copy of other fields would
share values with the agent.
"""

import orjson
from ag_ui.core import Message
from msgspec import Struct

from agui_container.protocol.encoder import COPY, PLANS
from agui_container.protocol.parser import MESSAGE
from agui_container.protocol.strict_json import without_large_integers

MAX_KEPT_BYTES = 2_000_000
"""Maximum number of bytes of all messages that are kept. At it they are all forgotten."""

ENTRY_BYTES = 600
"""Bytes in memory of a message that is kept, besides its JSON and its texts."""

TEXT_OR_NONE = frozenset({str, type(None)})


class KeptMessage(Struct, frozen=True):
    kind: type[Message]
    fields: dict[str, object]
    data: bytes


class MessageEncoder:
    """Encoder that keeps the JSON of the last messages by their ids."""

    def __init__(self) -> None:
        self._kept: dict[str, KeptMessage] = {}
        self._bytes = 0

    def encode(self, message: Message) -> bytes:
        if message.__pydantic_extra__:
            return encode_message(message)
        fields, kept = message.__dict__, self._kept.get(message.id)
        if kept is not None and kept.fields == fields and kept.kind is type(message):
            return kept.data
        data = encode_message(message)
        if TEXT_OR_NONE.issuperset(map(type, fields.values())):
            self._keep(message.id, KeptMessage(type(message), fields.copy(), data))
        return data

    def _keep(self, message_id: str, message: KeptMessage) -> None:
        size = ENTRY_BYTES + 2 * len(message.data)
        if self._bytes + size > MAX_KEPT_BYTES:
            self._kept, self._bytes = {}, 0
        if size <= MAX_KEPT_BYTES:
            self._kept[message_id] = message
            self._bytes += size


def encode_message(message: Message) -> bytes:
    try:
        return COPY % orjson.dumps(PLANS[type(message)](message))
    except (TypeError, KeyError):
        return without_large_integers(MESSAGE.dump_json(message, by_alias=True))


dump_message = MessageEncoder().encode
