"""The readers of input from clients: each returns a request, or raises an error of the caller that says why."""

from collections.abc import Callable

from google.protobuf.message import Message

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import parse
from agui_container.transports.grpc.messages import decode

ALLOWED = frozenset({ErrorCode.VALIDATION_ERROR, ErrorCode.PAYLOAD_TOO_LARGE})
"""Codes with which input may be refused."""


def check_body(body: bytes) -> ErrorCode | None:
    """Read a body as SSE and WebSocket do. Return the code with which it is refused, or None."""
    return code_of(lambda: parse(body))


def check_message(kind: type[Message], body: bytes) -> ErrorCode | None:
    """Decode a message as gRPC does. Return the code with which it is refused, or None."""
    return code_of(lambda: decode(kind, body))


def code_of(read: Callable[[], object]) -> ErrorCode | None:
    """Return the code with which input is refused, or None. Raises ``ValueError`` for a refusal that is no refusal."""
    try:
        read()
    except AppError as error:
        if error.code not in ALLOWED or not error.message:
            raise ValueError(error.code) from error
        return error.code
    return None
