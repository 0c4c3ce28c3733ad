"""One gRPC call: bounded messages in, messages out in one write, and errors from the error table.

Rule: a message larger than the limit is refused before it is read, compressed or not. A client that does not read for a
minute loses its call; other calls are not affected. Exception text stays in the log.

Sources: gRPC over HTTP/2, and its compression specification.
"""

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from struct import Struct as Layout
from typing import Generic, Protocol, TypeVar

from google.protobuf.message import DecodeError, Message
from grpclib.const import Cardinality, Status
from grpclib.const import Handler as Method
from grpclib.exceptions import GRPCError
from grpclib.server import Stream
from h2.exceptions import ProtocolError

from agui_container.engine.caller_usage import CallerUsages, Resource
from agui_container.engine.log.subscription import Subscription
from agui_container.ports import LOG_FIELDS, Caller
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.log_values import format_fields
from agui_container.transports.accounts import Accounts
from agui_container.transports.authentication import CallerAuthentication
from agui_container.transports.browser_policy import FOREIGN_ORIGIN, RefusedPages
from agui_container.transports.bytes_in_flight import ByteBudget, Reservation
from agui_container.transports.caller_middleware import NOT_FORWARDED, check_session, make_caller
from agui_container.transports.grpc.status import status_of

SEND_SECONDS = 60.0
"""Seconds that a client may take for one piece of a write until its call is ended."""

PIECE_BYTES = 64 * 1024
"""Bytes that are read or written at once, so that a slow client can be distinguished from a stalled one."""

READ_SECONDS = 60.0
"""Seconds in which a client must have sent a message whose first bytes have arrived."""

CLOCK_SLACK, CLOCK_SLACK_PART = 0.1, 0.02
"""Seconds, and part of the timeout, by which a client's clock may reach the deadline of a call before the server's. A
client cancels its call at its own deadline, and rounds the timeout that it sends."""

PREFIX = Layout(">?I")
"""Prefix of a message: a flag for compression, and the length in bytes."""

GZIP = 31
"""``wbits`` by which zlib expects a gzip header."""

INTERNAL_ERROR_MESSAGE = "The server failed; its log has the cause."

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)

logger = logging.getLogger(__name__)


class Servable(Protocol):
    """A gRPC service: its methods by path."""

    def __mapping__(self) -> dict[str, Method]: ...


@dataclass(frozen=True, slots=True)
class CallAdmission:
    """The rules for every call.

    Attributes:
        max_bytes: largest message in bytes, before and after decompression.
        by_session: True if the session header names the owner of threads and runs.
        origins: web origins that may call.
        authentication: verifies the tokens of callers.
        accounts: chooses the account that the limits per caller are counted under.
        usages: resources in use by each caller, which count its open calls.
        budget: bytes in flight of the process, of which each caller gets a share.
        refused_pages: logs the others.
    """

    max_bytes: int
    by_session: bool
    origins: Collection[str]
    authentication: CallerAuthentication
    accounts: Accounts
    usages: CallerUsages
    budget: ByteBudget
    refused_pages: RefusedPages = field(default_factory=RefusedPages)

    async def caller(self, stream: "Stream[In, Out]") -> Caller:
        """Return the caller that a call's metadata describe.

        Raises:
            AppError: ACCESS_DENIED for a foreign origin, VALIDATION_ERROR for a bad session header; UNAUTHORIZED,
                ACCESS_DENIED or AUTH_UNAVAILABLE for a token.
        """
        headers = [(name, value) for name, value in stream._stream.headers or () if not name.startswith((":", "grpc-"))]
        origin = next((value for name, value in headers if name == "origin"), None)
        forwarded = {name: value for name, value in headers if not NOT_FORWARDED.fullmatch(name)}
        caller = make_caller(forwarded, address_of(stream), self.accounts, by_session=self.by_session)
        LOG_FIELDS.set({"requestId": caller.request_id})
        if origin is not None and origin not in self.origins:
            authority = next((value for name, value in stream._stream.headers or () if name == ":authority"), "")
            self.refused_pages.log(origin, authority)
            raise AppError(ErrorCode.ACCESS_DENIED, FOREIGN_ORIGIN)
        check_session(headers, caller)
        return await self.authentication.authenticate(caller, headers)


def address_of(stream: "Stream[In, Out]") -> str | None:
    """Return the network address of a call's client, or None for a Unix socket."""
    address: object = stream._stream._transport.get_extra_info("peername")
    return str(address[0]) if isinstance(address, tuple) else None


class Call(Generic[In, Out]):
    """A call in progress.

    Attributes:
        caller: the client.
        metadata: the request's headers by name, lower-cased.
    """

    def __init__(self, stream: "Stream[In, Out]", caller: Caller, admission: CallAdmission) -> None:
        self.caller = caller
        self._share = admission.budget.share_of(caller)
        self.metadata = dict(stream._stream.headers or ())
        self._stream = stream
        deadline = stream.deadline
        self._clock_slack = max(CLOCK_SLACK, CLOCK_SLACK_PART * deadline.time_remaining()) if deadline else 0.0
        self._max_bytes = admission.max_bytes
        self._check_expiry = partial(admission.authentication.check_expiry, caller)
        self._send_lock = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """True while the client can receive messages."""
        return self._stream._stream.closable

    def leave(self, subscription: Subscription) -> None:
        """Stop reading a run. If the deadline of the call has passed, the run goes on without readers."""
        if self._has_reached_deadline():
            subscription.run.presence.may_be_unread = True
        subscription.close()

    def _has_reached_deadline(self) -> bool:
        deadline = self._stream.deadline
        return deadline is not None and deadline.time_remaining() <= self._clock_slack

    @property
    def port(self) -> int:
        """Port of the server that the client is connected to."""
        address: tuple[str, int] = self._stream._stream._transport.get_extra_info("sockname")
        return address[1]

    async def receive(self) -> In | None:
        """Return the next message, or None after the client's last one.

        Raises:
            AppError: PAYLOAD_TOO_LARGE; RATE_LIMIT_EXCEEDED if too many bytes are in flight; VALIDATION_ERROR for a
                message that cannot be decoded or does not arrive in time; UNAUTHORIZED for one that arrives after the
                caller's token has expired.
            GRPCError: UNIMPLEMENTED for a compression that is not gzip.
        """
        limit = asyncio.timeout(READ_SECONDS)
        try:
            head = await self._stream._stream.recv_data(PREFIX.size)
            if not head:
                return None
            self._check_expiry()
            compressed, size = PREFIX.unpack(head)
            self._check_size(size)
            with self._share.reserve() as reservation:
                async with limit:
                    body = await self._read(size, reservation)
                return self._decode(self._decompress(body) if compressed else body)
        except TimeoutError:
            if not limit.expired():
                raise
            raise incomplete_message() from None
        except AssertionError:  # raised by grpclib if the stream ends inside a message
            raise incomplete_message() from None

    async def _read(self, size: int, reservation: Reservation) -> bytes:
        """Read a message in pieces, so that only bytes that have arrived count as in flight."""
        body = bytearray()
        while len(body) < size:
            piece = await self._stream._stream.recv_data(min(PIECE_BYTES, size - len(body)))
            if not piece:
                raise incomplete_message()
            body += piece
            reservation.resize(len(body))
        return bytes(body)

    def _decode(self, body: bytes) -> In:
        try:
            message: In = self._stream._recv_type.FromString(body)
        except DecodeError:
            raise AppError(ErrorCode.VALIDATION_ERROR, "The message cannot be decoded.") from None
        return message

    async def send(self, messages: Iterable[Out]) -> None:
        """Send messages in one write, after the messages that are already being sent.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED if the client does not read, or if too many bytes are unread.
        """
        data = b"".join([PREFIX.pack(0, len(body)) + body for body in map(_encode, messages)])
        if not data:
            return
        with await self._share.reserve_later(len(data)):
            await self._send_in_order(data)

    async def _send_in_order(self, data: bytes) -> None:
        async with self._send_lock:
            try:
                for at in range(0, len(data), PIECE_BYTES):
                    async with asyncio.timeout(SEND_SECONDS):
                        await self._send_piece(data[at : at + PIECE_BYTES])
            except TimeoutError:
                logger.info("slow gRPC reader disconnected %s", format_fields({"idle_seconds": SEND_SECONDS}))
                raise AppError(ErrorCode.RATE_LIMIT_EXCEEDED, "The client reads too slowly.") from None
            self._stream._send_message_done = True

    async def _send_piece(self, data: bytes) -> None:
        if not self._stream._send_initial_metadata_done:
            await self._stream.send_initial_metadata(metadata={"x-request-id": self.caller.request_id})
        await self._stream._stream.send_data(data)

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise AppError(ErrorCode.PAYLOAD_TOO_LARGE, f"A message may have {self._max_bytes} bytes at most.")

    def _decompress(self, body: bytes) -> bytes:
        encoding = self.metadata.get("grpc-encoding", "identity")
        if encoding != "gzip":
            raise GRPCError(Status.UNIMPLEMENTED, "Compressed messages must use gzip.")
        inflater = zlib.decompressobj(GZIP)
        try:
            data = inflater.decompress(body, self._max_bytes + 1)
        except zlib.error:
            raise AppError(ErrorCode.VALIDATION_ERROR, "The message is not gzip.") from None
        self._check_size(len(data))
        if not inflater.eof:
            raise AppError(ErrorCode.VALIDATION_ERROR, "The message is not complete.")
        return data


def incomplete_message() -> AppError:
    """Return the error for a message that ends early or does not arrive in time."""
    return AppError(ErrorCode.VALIDATION_ERROR, "The stream ended inside a message.")


def _encode(message: Message) -> bytes:
    return message.SerializeToString()


CallHandler = Callable[[Call[In, Out]], Awaitable[None]]


def method(
    handler: CallHandler[In, Out],
    admission: CallAdmission,
    request_type: type[In],
    reply_type: type[Out],
    cardinality: Cardinality = Cardinality.STREAM_STREAM,
) -> Method:
    """Make a method for grpclib. Every failure of ``handler`` becomes a status with a safe message.

    A method with one request and one reply, such as a health check, does not count as an open call.
    """
    is_brief = cardinality is Cardinality.UNARY_UNARY

    async def handle(stream: "Stream[In, Out]") -> None:
        try:
            caller = await admission.caller(stream)
            with nullcontext() if is_brief else admission.usages.of(caller.account).use(Resource.SOCKETS):
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
            await end_with_error(stream, status_of(error), error, LOG_FIELDS.get().get("requestId", ""))

    return Method(handle, cardinality, request_type, reply_type)


def find_app_error(failure: Exception) -> AppError | None:
    """Return the first ``AppError`` in a failure or its exception groups, or None."""
    if isinstance(failure, ExceptionGroup):
        return next((error for each in failure.exceptions if (error := find_app_error(each)) is not None), None)
    return failure if isinstance(failure, AppError) else None


def is_disconnect(failure: Exception) -> bool:
    """True if a failure has no other cause than a client that disconnected. h2 refuses to write to a closed stream."""
    if isinstance(failure, ExceptionGroup):
        return all(map(is_disconnect, failure.exceptions))
    return isinstance(failure, (ProtocolError, ConnectionError))


async def end_with_error(stream: "Stream[In, Out]", status: Status, error: AppError, request_id: str) -> None:
    """End a call with an error. The trailers carry the error code and the request id."""
    retry_after = "" if error.wait_seconds is None else str(error.wait_seconds)
    trailers = {"agui-code": error.code.value, "x-request-id": request_id, "retry-after": retry_after}
    metadata = {name: value for name, value in trailers.items() if value}
    await stream.send_trailing_metadata(status=status, status_message=error.message, metadata=metadata)
