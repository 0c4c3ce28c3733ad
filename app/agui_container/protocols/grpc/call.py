"""One gRPC call: bounded messages in, messages out in one write, and errors from the error table.

Rule: a message larger than the limit is refused before it is read, compressed or not. A client that does not read for a
minute loses its call; other calls are not affected. Exception text stays in the log.

Sources: gRPC over HTTP/2; its compression specification.
"""

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from struct import Struct as Layout
from typing import Generic, Protocol, TypeVar

from google.protobuf.message import DecodeError, Message
from grpclib.const import Cardinality, Status
from grpclib.const import Handler as Method
from grpclib.exceptions import GRPCError
from grpclib.server import Stream
from h2.exceptions import ProtocolError

from agui_container.log_values import format_fields
from agui_container.ports import LOG_FIELDS, Caller
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_container.protocols.conversation.translator import ClientConnection
from agui_container.protocols.grpc.options import GrpcOptions
from agui_container.threads import offload, offload_if_large
from agui_container.web.authentication import server_url
from agui_container.web.browser_policy import FOREIGN_ORIGIN, log_refused_page
from agui_container.web.caller_middleware import NOT_FORWARDED, check_session, make_caller
from agui_container.web.event_stream import STALLED_SECONDS
from agui_core.commands import MAX_ID

PIECE_BYTES = 64 * 1024
"""Bytes that are written at once, so that a slow client can be distinguished from a stalled one."""

READ_SECONDS = 60.0
"""Seconds in which a client must have sent a message whose first bytes have arrived."""

PREFIX = Layout(">?I")
"""Prefix of a message: a flag for compression, and the length in bytes."""

GZIP = 31
"""``wbits`` by which zlib expects a gzip header."""

INTERNAL_ERROR_MESSAGE = "The server failed; its log has the cause."

M = TypeVar("M", bound=Message)
In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)

logger = logging.getLogger(__name__)


class Servable(Protocol):
    """A gRPC service: its methods by path."""

    def __mapping__(self) -> dict[str, Method]: ...


@dataclass(frozen=True, slots=True)
class CallAdmission:
    options: GrpcOptions

    async def caller(self, stream: "Stream[In, Out]") -> Caller:
        """Raise ``AppError`` for a foreign origin, a bad session header or a token."""
        headers = [(name, value) for name, value in stream._stream.headers or () if not name.startswith((":", "grpc-"))]
        origin = next((value for name, value in headers if name == "origin"), None)
        forwarded = {name: value for name, value in headers if not NOT_FORWARDED.fullmatch(name)}
        caller = make_caller(
            forwarded, by_session=self.options.by_session, limits_by_session=self.options.limits_by_session
        )
        LOG_FIELDS.set({"requestId": caller.request_id})
        if origin is not None and origin not in self.options.origins:
            authority = next((value for name, value in stream._stream.headers or () if name == ":authority"), "")
            log_refused_page(origin, authority)
            raise AppError(ErrorCode.ACCESS_DENIED, FOREIGN_ORIGIN)
        check_session(headers, caller)
        return await self.options.authentication.authenticate(caller, headers)

    def challenge(self, stream: "Stream[In, Out]", error: AppError) -> str | None:
        headers = dict(stream._stream.headers or ())
        return self.options.authentication.challenge(
            error, server_url(headers.get(":scheme", ""), headers.get(":authority", ""))
        )


class Call(ClientConnection[In, Out], Generic[In, Out]):
    def __init__(self, stream: "Stream[In, Out]", caller: Caller, admission: CallAdmission) -> None:
        self.caller = caller
        self.metadata = dict(stream._stream.headers or ())
        self._stream = stream
        self._admission = admission
        self._send_lock = asyncio.Lock()
        self._is_cut_off = False
        """True if the client has taken a part of a message, and does not get the rest."""
        self.last_sent_at = asyncio.get_running_loop().time()

    @property
    def is_open(self) -> bool:
        """True while the client can receive messages. None can follow a part of a message."""
        return self._stream._stream.closable and not self._is_cut_off

    @property
    def port(self) -> int:
        address: tuple[str, int] = self._stream._stream._transport.get_extra_info("sockname")
        return address[1]

    # --- in ---

    async def receive_request(self) -> In:
        """Return the message of a client that sends no more. Raises VALIDATION_ERROR without one in time."""
        async with in_time():
            request = await self.receive()
        if request is None:
            raise incomplete_message()
        return request

    async def receive(self) -> In | None:
        """Return the next message, or None after the client's last one.

        Raises:
            AppError: PAYLOAD_TOO_LARGE; VALIDATION_ERROR for a message that cannot be decoded or does not arrive in
                time; UNAUTHORIZED for one that arrives after the caller's token has expired.
            GRPCError: UNIMPLEMENTED for a compression that is not gzip.
        """
        try:
            head = await self._stream._stream.recv_data(PREFIX.size)
            if not head:
                return None
            is_compressed, size = PREFIX.unpack(head)
            self._admission.options.authentication.check_expiry(self.caller)
            check_size(size, self._admission.options.max_bytes)
            async with in_time():
                body = await self._stream._stream.recv_data(size)
        except AssertionError:  # raised by grpclib if the stream ends inside a message
            raise incomplete_message() from None
        if len(body) < size:
            raise incomplete_message()
        return await self._decode(body, is_compressed=is_compressed)

    async def _decode(self, body: bytes, *, is_compressed: bool) -> In:
        message_type: type[In] = self._stream._recv_type
        if not is_compressed:
            return await offload_if_large(len(body), decode, message_type, body)
        if self.metadata.get("grpc-encoding") != "gzip":
            raise GRPCError(Status.UNIMPLEMENTED, "Compressed messages must use gzip.")
        return await offload(decode_compressed, message_type, body, self._admission.options.max_bytes)

    # --- out ---

    async def send(self, messages: Sequence[Out]) -> None:
        """Send in one write, after earlier messages. Raises RATE_LIMIT_EXCEEDED if the client does not read."""
        data = b"".join([PREFIX.pack(0, len(body := it.SerializeToString())) + body for it in messages])
        if not data:
            return
        self.last_sent_at = asyncio.get_running_loop().time()
        async with self._send_lock:
            if self._is_cut_off:
                raise slow_reader()
            sent = self._stream._stream.data_sent
            try:
                for at in range(0, len(data), PIECE_BYTES):
                    async with asyncio.timeout(STALLED_SECONDS):
                        if not self._stream._send_initial_metadata_done:
                            await self._stream.send_initial_metadata(metadata={"x-request-id": self.caller.request_id})
                        await self._stream._stream.send_data(data[at : at + PIECE_BYTES])
            except TimeoutError:
                self._is_cut_off = True
                logger.info("slow gRPC reader disconnected %s", format_fields({"idle_seconds": STALLED_SECONDS}))
                raise slow_reader() from None
            except asyncio.CancelledError:
                self._is_cut_off = self._stream._stream.data_sent > sent
                raise
            self._stream._send_message_done = True


def check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, f"A message may have {max_bytes} bytes at most.")


def check_id(field: str, value: str) -> None:
    if not 0 < len(value) <= MAX_ID:
        raise validation_error(f"{field}: must have 1 to {MAX_ID} characters.")


def decode(message_type: type[M], body: bytes) -> M:
    """Raise ``AppError`` VALIDATION_ERROR for a message that cannot be decoded."""
    try:
        return message_type.FromString(body)
    except DecodeError:
        raise validation_error("The message cannot be decoded.") from None


def decode_compressed(message_type: type[M], body: bytes, max_bytes: int) -> M:
    """Raise ``AppError`` PAYLOAD_TOO_LARGE above ``max_bytes``, VALIDATION_ERROR for a body that is not gzip."""
    inflater = zlib.decompressobj(GZIP)
    try:
        data = inflater.decompress(body, max_bytes + 1)
    except zlib.error:
        raise validation_error("The message is not gzip.") from None
    check_size(len(data), max_bytes)
    if not inflater.eof:
        raise validation_error("The message is not complete.")
    return decode(message_type, data)


def slow_reader() -> AppError:
    return AppError(ErrorCode.RATE_LIMIT_EXCEEDED, "The client reads too slowly.")


def incomplete_message() -> AppError:
    return validation_error("The message did not arrive in full.")


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Limit the time for the message of a client. Raises ``AppError`` VALIDATION_ERROR after ``READ_SECONDS``."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            yield
    except TimeoutError:
        raise incomplete_message() from None


CallHandler = Callable[[Call[In, Out]], Awaitable[None]]


def method(
    handler: CallHandler[In, Out],
    admission: CallAdmission,
    request_type: type[In],
    reply_type: type[Out],
    cardinality: Cardinality = Cardinality.STREAM_STREAM,
) -> Method:
    """Make a method for grpclib. Every failure of ``handler`` becomes a status with a safe message."""

    async def handle(stream: "Stream[In, Out]") -> None:
        try:
            caller = await admission.caller(stream)
            await handler(Call(stream, caller, admission))
        except GRPCError:
            raise
        except Exception as failure:
            if is_disconnect(failure):
                logger.debug("gRPC client disconnected %s", format_fields({"method": stream._method_name}))
                return
            error = find_app_error(failure)
            if error is None:
                logger.exception("gRPC call failed %s", format_fields({"method": stream._method_name}))
                error = AppError(ErrorCode.INTERNAL_ERROR, INTERNAL_ERROR_MESSAGE)
            logger.info("request refused %s", format_fields({"code": error.code, "message": error.message}))
            await end_with_error(stream, error, admission.challenge(stream, error))

    return Method(handle, cardinality, request_type, reply_type)


def find_app_error(failure: Exception) -> AppError | None:
    if isinstance(failure, ExceptionGroup):
        return next((error for each in failure.exceptions if (error := find_app_error(each)) is not None), None)
    return failure if isinstance(failure, AppError) else None


def is_disconnect(failure: Exception) -> bool:
    """True if a failure has no other cause than a client that disconnected. h2 refuses to write to a closed stream."""
    if isinstance(failure, ExceptionGroup):
        return all(map(is_disconnect, failure.exceptions))
    return isinstance(failure, (ProtocolError, ConnectionError))


async def end_with_error(stream: "Stream[In, Out]", error: AppError, challenge: str | None) -> None:
    """End a call with an error. The trailers carry the error code, the request id and what HTTP has in headers."""
    known = {
        "agui-code": error.code.value,
        "x-request-id": LOG_FIELDS.get().get("requestId"),
        "retry-after": None if error.wait_seconds is None else str(error.wait_seconds),
        "www-authenticate": challenge,
    }
    metadata = {name: value for name, value in known.items() if value}
    await stream.send_trailing_metadata(status=Status[error.code.grpc], status_message=error.message, metadata=metadata)
