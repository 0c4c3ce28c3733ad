"""Server reflection, v1 and v1alpha, by which clients such as grpcurl list the services.

Rule: grpclib makes the replies, and the calls have the same limits as all others.

Source: grpclib's implementation of the standard protocol.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from grpclib.const import Handler as Method
from grpclib.reflection.service import ServerReflection

from agui_container.transports.grpc.call import Call, CallAdmission, Servable, method

MAX_REQUEST = 64_000
"""Bytes of a request. It names one service or file."""


class ReflectionStream:
    """A call as grpclib's reflection reads and writes it."""

    def __init__(self, call: Call[Any, Any]) -> None:
        self._call = call

    async def __aiter__(self) -> AsyncIterator[object]:
        while (request := await self._call.receive()) is not None:
            yield request

    async def send_message(self, reply: object) -> None:
        """Send a reply."""
        await self._call.send([reply])


class LimitedService:
    """A service of grpclib whose calls have the limits of ``admission``."""

    def __init__(self, service: Servable, admission: CallAdmission) -> None:
        self._service = service
        self._admission = admission

    def __mapping__(self) -> dict[str, Method]:
        return {path: self._limited(raw) for path, raw in self._service.__mapping__().items()}

    def _limited(self, raw: Method) -> Method:
        handler = partial(_handle, raw.func)
        return method(handler, self._admission, raw.request_type, raw.reply_type, raw.cardinality)


async def _handle(handler: Callable[[Any], Awaitable[None]], call: Call[Any, Any]) -> None:
    await handler(ReflectionStream(call))


def with_reflection(services: Sequence[Servable], admission: CallAdmission) -> Sequence[Servable]:
    """Return the services and the two reflection services that describe them."""
    added: Sequence[Servable] = ServerReflection.extend(list(services))[len(services) :]  # type: ignore[assignment]
    small = replace(admission, options=replace(admission.options, max_bytes=MAX_REQUEST))
    return [*services, *(LimitedService(service, small) for service in added)]
