"""Decoding of the messages of clients, within limits of size and of number.

Rule: protobuf reads a message in one step, which stops all threads. So the fields of a large message are counted
before, and a message with too many is refused. Otherwise ten megabytes of empty fields would take a fifth of a second,
and half a gigabyte of memory.

Sources: the encoding of protobuf; gRPC's compression specification.
"""

import zlib
from collections.abc import Mapping
from functools import cache
from struct import Struct as Layout
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.threads import LARGE_BYTES
from agui_core.commands import MAX_ID

PREFIX = Layout(">?I")
"""Prefix of a message: a flag for compression, and the length in bytes."""

MAX_FIELDS = 250_000
"""Fields of a message, with those of the messages in it."""

GZIP = 31
"""``wbits`` by which zlib expects a gzip header."""

VARINT, FIXED_64, DELIMITED, FIXED_32 = 0, 1, 2, 5
"""Wire types of proto3."""

WIRE_TYPE = 7
"""Mask of those bits of a tag that are the wire type. The other ones are the number of the field."""

FIXED_SIZES = {FIXED_64: 8, FIXED_32: 4}

VARINT_BITS = 64
"""Bits of the longest varint."""

LAST_7_BITS = 0x7F
"""Mask of those bits of a varint's byte that are its value."""

Descriptor = Any
"""A type of messages, as protobuf describes it. Protobuf's class has a private name."""

M = TypeVar("M", bound=Message)


def check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, f"A message may have {max_bytes} bytes at most.")


def check_id(field: str, value: str) -> None:
    if not 0 < len(value) <= MAX_ID:
        raise AppError(ErrorCode.VALIDATION_ERROR, f"{field}: must have 1 to {MAX_ID} characters.")


def decompress(body: bytes, max_bytes: int) -> bytes:
    """Raise ``AppError`` PAYLOAD_TOO_LARGE above ``max_bytes``, VALIDATION_ERROR for a body that is not gzip."""
    inflater = zlib.decompressobj(GZIP)
    try:
        data = inflater.decompress(body, max_bytes + 1)
    except zlib.error:
        raise AppError(ErrorCode.VALIDATION_ERROR, "The message is not gzip.") from None
    check_size(len(data), max_bytes)
    if not inflater.eof:
        raise AppError(ErrorCode.VALIDATION_ERROR, "The message is not complete.")
    return data


def decode(message_type: type[M], body: bytes) -> M:
    """Raise ``AppError`` VALIDATION_ERROR for a message that cannot be decoded or has too many fields."""
    if len(body) > LARGE_BYTES:
        check_fields(body, message_type.DESCRIPTOR)
    try:
        return message_type.FromString(body)
    except DecodeError:
        raise undecodable() from None


def decode_compressed(message_type: type[M], body: bytes, max_bytes: int) -> M:
    return decode(message_type, decompress(body, max_bytes))


def check_fields(body: bytes, descriptor: Descriptor) -> None:
    """Raise ``AppError`` VALIDATION_ERROR for more than ``MAX_FIELDS``, or if the bytes are not an encoded message."""
    parts = [(0, len(body), descriptor)]
    count = 0
    try:
        while parts:
            at, end, descriptor = parts.pop()
            submessages = _submessages(descriptor)
            while at < end:
                count += 1
                if count > MAX_FIELDS:
                    raise AppError(ErrorCode.VALIDATION_ERROR, f"A message may have {MAX_FIELDS} fields at most.")
                tag, at = _read_varint(body, at)
                size, at = _read_size(body, at, tag & WIRE_TYPE)
                if size and tag & WIRE_TYPE == DELIMITED and (submessage := submessages.get(tag >> 3)) is not None:
                    parts.append((at, min(at + size, end), submessage))
                at += size
    except (IndexError, KeyError):
        raise undecodable() from None


def _read_size(body: bytes, at: int, wire_type: int) -> tuple[int, int]:
    """Return the size of a field's value, and the position where it begins. Raises ``KeyError`` for other types."""
    if wire_type == DELIMITED:
        return _read_varint(body, at)
    if wire_type == VARINT:
        return 0, _read_varint(body, at)[1]
    return FIXED_SIZES[wire_type], at


@cache
def _submessages(descriptor: Descriptor) -> Mapping[int, Descriptor]:
    return {field.number: field.message_type for field in descriptor.fields if field.message_type is not None}


def _read_varint(body: bytes, at: int) -> tuple[int, int]:
    """Return the integer and the position behind it. Raises VALIDATION_ERROR above 64 bits, IndexError at the end."""
    value = shift = 0
    while (byte := body[at]) > LAST_7_BITS:
        if shift >= VARINT_BITS:
            raise undecodable()
        value |= (byte & LAST_7_BITS) << shift
        shift += 7
        at += 1
    return value | byte << shift, at + 1


def undecodable() -> AppError:
    return AppError(ErrorCode.VALIDATION_ERROR, "The message cannot be decoded.")
