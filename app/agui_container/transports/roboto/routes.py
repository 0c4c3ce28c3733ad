"""Routes of Roboto's sessions. The first request imports their implementation.

Rule: every result is ``{"data": …}``, and every error is ``{"error": …}`` with the status of the error table.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol

from msgspec import Struct
from pydantic_core import to_json
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from agui_container.engine.service import Service
from agui_container.protocol.errors import AppError, ErrorCode, shutting_down
from agui_container.runtime.log_values import format_fields
from agui_container.transports.caller_middleware import caller_of
from agui_container.transports.error_responses import internal_error
from agui_container.transports.plain_response import PlainResponse
from agui_container.transports.raw_path_route import RawPathRoute
from agui_container.transports.registration import Closers, HttpRegistration, read_options
from agui_container.transports.roboto import NEW_PREFIX, OLD_PREFIX

PREFIX = "/v1/ai/"
"""Prefix of all paths."""

CLASSES: Mapping[int, str] = {
    400: "RobotoInvalidRequestException",
    401: "RobotoUnauthorizedException",
    403: "RobotoUnauthorizedException",
    404: "RobotoNotFoundException",
    409: "RobotoConflictException",
    413: "RobotoInvalidRequestException",
    429: "RobotoLimitExceededException",
    503: "RobotoServiceUnavailableException",
}
"""Exception that a client raises, by status of the error table."""

Handler = Callable[[Request], Awaitable[bytes]]
"""Returns the data of an answer as JSON."""

SESSION = "/{sessionId}"
OPERATIONS = (
    ("POST", "", "start"),
    ("GET", SESSION, "get"),
    ("GET", f"{SESSION}/delta", "delta"),
    ("POST", f"{SESSION}/messages", "send"),
    ("POST", f"{SESSION}/tool-results", "tool_results"),
    ("POST", f"{SESSION}/messages/{{index}}/feedback", "feedback"),
    ("POST", f"{SESSION}/fork", "fork"),
    ("POST", f"{SESSION}/visibility", "visibility"),
    ("POST", f"{SESSION}/pin", "pin"),
)
"""Method, path below the prefix, and name of each operation."""

logger = logging.getLogger(__name__)


class LoadedSessions(Protocol):
    """Operations on sessions by their names."""

    operations: Mapping[str, Handler]

    async def aclose(self) -> None:
        """Stop following runs."""


class LazySessions:
    """Sessions whose code is imported by the first request, in a thread, so that the import delays no run."""

    def __init__(self, service: Service, max_body: int) -> None:
        self._service = service
        self._max_body = max_body
        self._lock = asyncio.Lock()
        self._loaded: LoadedSessions | None = None

    async def _load(self) -> LoadedSessions:
        async with self._lock:
            if self._loaded is None:
                make = await asyncio.to_thread(_import)
                self._loaded = make(self._service, self._max_body)
            return self._loaded

    async def respond(self, name: str, request: Request) -> Response:
        """Respond to a request for an operation: with its ``data``, or with the ``error`` that it raises.

        A request that the server cancels while it drains gets SHUTTING_DOWN.
        """
        try:
            loaded = await self._load()
            return roboto_response(request, b'{"data":%b}' % await loaded.operations[name](request), 200)
        except AppError as error:
            return refusal(error, request)
        except asyncio.CancelledError:
            if not self._service.is_draining:
                raise
            return refusal(shutting_down(), request)
        except Exception:
            logger.exception("roboto request failed %s", format_fields({"path": request.url.path}))
            return refusal(internal_error(), request)

    async def aclose(self) -> None:
        """Close the sessions if a request has loaded them."""
        if self._loaded is not None:
            await self._loaded.aclose()


def _import() -> Callable[[Service, int], LoadedSessions]:
    from agui_container.transports.roboto.sessions import Sessions  # noqa: PLC0415 - see ``LazySessions``

    return Sessions


class RobotoOptions(Struct, frozen=True):
    """Settings that this protocol reads.

    Attributes:
        max_body_bytes: largest request in bytes.
    """

    max_body_bytes: int


def register(settings: object) -> HttpRegistration:
    """Return the registration with these settings."""
    options = read_options(settings, RobotoOptions)

    def build(service: Service, closers: Closers) -> list[BaseRoute]:
        sessions = LazySessions(service, options.max_body_bytes)
        closers.append(sessions.aclose)
        return [
            *(
                RawPathRoute(prefix + path, partial(sessions.respond, name), methods=[method])
                for prefix in (OLD_PREFIX, NEW_PREFIX)
                for method, path, name in OPERATIONS
            ),
            Route(f"{PREFIX}{{path:path}}", NotServed()),
        ]

    return HttpRegistration(PREFIX, {"roboto": PREFIX.rstrip("/")}, build, refusal)


class NotServed:
    """ASGI application that refuses every request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        error = AppError(ErrorCode.THREAD_NOT_FOUND, "This server does not serve this part of Roboto's API.")
        await refusal(error, HTTPConnection(scope))(scope, receive, send)


def refusal(error: AppError, request: HTTPConnection) -> Response:
    """Return an error in Roboto's form. The client raises the exception of the status in the error table."""
    logger.info("request refused %s", format_fields({"code": error.code, "message": error.message}))
    name = CLASSES.get(error.spec.http, "RobotoInternalException")
    body = to_json({"error": {"error_code": name, "message": error.message}})
    response = roboto_response(request, body, error.spec.http)
    if error.wait_seconds is not None:
        response.headers["Retry-After"] = str(error.wait_seconds)
    return response


def roboto_response(request: HTTPConnection, body: bytes, status: int) -> Response:
    """Return a response of JSON."""
    headers = {"Cache-Control": "no-store", "X-Request-Id": caller_of(request).request_id}
    return PlainResponse(body, status, headers, media_type="application/json")
