"""``application/vnd.amazon.eventstream``, the encoding half: botocore has only the decoder."""

import json
import struct
from collections.abc import Mapping
from typing import Any
from zlib import crc32

STRING = 7
PRELUDE = struct.Struct("!II")
CRC = struct.Struct("!I")


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One frame: lengths, their checksum, headers, payload, checksum of all."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = PRELUDE.pack(16 + len(head) + len(payload), len(head))
    body = prelude + CRC.pack(crc32(prelude)) + head + payload
    return body + CRC.pack(crc32(body))


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return struct.pack("!B", len(key)) + key + struct.pack("!BH", STRING, len(text)) + text


def frame(event: Mapping[str, Any]) -> bytes:
    """An event of a scenario as Bedrock sends it.

    ``{"exception": NAME, …}`` is an exception with the other members as its body, ``{"error": CODE}`` a frame of type
    error, and anything else an event under its only key.
    """
    if "exception" in event:
        headers = {":exception-type": event["exception"], ":content-type": "application/json"}
        rest = {key: value for key, value in event.items() if key != "exception"}
        return message({**headers, ":message-type": "exception"}, json.dumps(rest).encode())
    if "error" in event:
        said = {":error-code": event["error"], ":error-message": event.get("message", "")}
        return message({**said, ":message-type": "error"}, b"")
    ((kind, body),) = event.items()
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return message(headers, json.dumps({**body, "p": "abcdefgh"}).encode())  # Bedrock pads, against eavesdroppers
