"""The readers of input from clients: each returns a request, or raises an error of the caller that says why."""

from google.protobuf.message import Message

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import parse
from agui_container.transports.grpc.messages import decode

ALLOWED = frozenset({ErrorCode.VALIDATION_ERROR, ErrorCode.PAYLOAD_TOO_LARGE})
"""Codes with which input may be refused."""


def check_body(body: bytes) -> ErrorCode | None:
    """Read a body as SSE and WebSocket do. Return the code with which it is refused, or None."""
    try:
        parse(body)
    except AppError as error:
        assert error.code in ALLOWED, body
        assert error.message, body
        return error.code
    return None


def check_message(kind: type[Message], body: bytes) -> ErrorCode | None:
    """Decode a message as gRPC does. Return the code with which it is refused, or None."""
    try:
        decode(kind, body)
    except AppError as error:
        assert error.code in ALLOWED, body
        return error.code
    return None
