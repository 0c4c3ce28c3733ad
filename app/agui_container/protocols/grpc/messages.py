"""Decoding of the messages of clients, within limits of size.

Sources: gRPC's compression specification.
"""

import zlib
from struct import Struct as Layout
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from agui_container.protocol.errors import AppError, ErrorCode
from agui_core.commands import MAX_ID

PREFIX = Layout(">?I")
"""Prefix of a message: a flag for compression, and the length in bytes."""

GZIP = 31
"""``wbits`` by which zlib expects a gzip header."""

M = TypeVar("M", bound=Message)


def check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, f"A message may have {max_bytes} bytes at most.")


def check_id(field: str, value: str) -> None:
    if not 0 < len(value) <= MAX_ID:
        raise AppError(ErrorCode.VALIDATION_ERROR, f"{field}: must have 1 to {MAX_ID} characters.")


def decode(message_type: type[M], body: bytes) -> M:
    """Raise ``AppError`` VALIDATION_ERROR for a message that cannot be decoded."""
    try:
        return message_type.FromString(body)
    except DecodeError:
        raise AppError(ErrorCode.VALIDATION_ERROR, "The message cannot be decoded.") from None


def decode_compressed(message_type: type[M], body: bytes, max_bytes: int) -> M:
    """Raise ``AppError`` PAYLOAD_TOO_LARGE above ``max_bytes``, VALIDATION_ERROR for a body that is not gzip."""
    inflater = zlib.decompressobj(GZIP)
    try:
        data = inflater.decompress(body, max_bytes + 1)
    except zlib.error:
        raise AppError(ErrorCode.VALIDATION_ERROR, "The message is not gzip.") from None
    check_size(len(data), max_bytes)
    if not inflater.eof:
        raise AppError(ErrorCode.VALIDATION_ERROR, "The message is not complete.")
    return decode(message_type, data)
