"""Routes of Roboto's sessions. Each reads a request, calls ``Sessions``, and writes JSON.

Rule: every result is ``{"data": …}``, and every error is ``{"error": …}`` with the status of the error table.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping

from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from agui_container.engine.service import Service
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.log_values import format_fields
from agui_container.transports.caller_middleware import caller_of
from agui_container.transports.plain_response import PlainResponse
from agui_container.transports.raw_path_route import RawPathRoute
from agui_container.transports.request_body import read_fields
from agui_container.transports.roboto.requests import PinRequest, VisibilityRequest, read
from agui_container.transports.roboto.sessions import Sessions

PREFIX = "/v1/ai/"
"""Prefix of all paths."""

OLD_PREFIX, NEW_PREFIX = "/v1/ai/chats", "/v1/ai/threads"
"""Prefixes of the paths for clients before 0.46, and for clients since then."""

CONTEXT_SINCE = "2026-09-30"
"""First version of Roboto's API whose clients know blocks of the type ``client_context``."""

API_VERSION, ORG_ID = "x-roboto-api-version", "x-roboto-org-id"
MAX_ORG_ID = 128

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

Handler = Callable[[Request], Awaitable[object]]

logger = logging.getLogger(__name__)


class Endpoints:
    """Endpoints for one generation of clients."""

    def __init__(self, service: Service, sessions: Sessions, *, max_body: int, knows_reset: bool) -> None:
        self._service = service
        self._sessions = sessions
        self._max_body = max_body
        self._knows_reset = knows_reset

    async def _body(self, request: Request) -> tuple[dict[str, object], int]:
        return await read_fields(request, self._max_body, self._service)

    async def start(self, request: Request) -> object:
        """Begin a session."""
        body, size = await self._body(request)
        org_id = request.headers.get(ORG_ID, "")[:MAX_ORG_ID] or None
        return await self._sessions.start(caller_of(request), body, size, org_id, with_context=knows_context(request))

    async def get(self, request: Request) -> object:
        """Read a session."""
        with_messages = request.query_params.get("load_messages", "True").lower() != "false"
        return await self._sessions.get(
            caller_of(request), session_id(request), with_messages=with_messages, with_context=knows_context(request)
        )

    async def delta(self, request: Request) -> object:
        """Read the changes of a session."""
        return await self._sessions.views.delta(
            caller_of(request),
            session_id(request),
            request.query_params.get("next_token"),
            knows_reset=self._knows_reset,
            with_context=knows_context(request),
        )

    async def send(self, request: Request) -> object:
        """Send a message to a session."""
        await self._sessions.send(caller_of(request), session_id(request), *await self._body(request))
        return None

    async def tool_results(self, request: Request) -> object:
        """Add results of client tools."""
        await self._sessions.answer(caller_of(request), session_id(request), *await self._body(request))
        return None

    async def feedback(self, request: Request) -> object:
        """Store feedback on a message."""
        body, _ = await self._body(request)
        return await self._sessions.give_feedback(caller_of(request), session_id(request), index(request), body)

    async def fork(self, request: Request) -> object:
        """Copy a session."""
        body, _ = await self._body(request)
        return await self._sessions.fork(
            caller_of(request), session_id(request), body, with_context=knows_context(request)
        )

    async def visibility(self, request: Request) -> object:
        """Store the visibility of a session."""
        body, _ = await self._body(request)
        visibility = read(VisibilityRequest, body).visibility
        await self._sessions.annotate(caller_of(request), session_id(request), visibility=visibility)
        return None

    async def pin(self, request: Request) -> object:
        """Pin a session, or unpin it."""
        body, _ = await self._body(request)
        is_pinned = read(PinRequest, body).pinned
        await self._sessions.pin(caller_of(request), session_id(request), is_pinned=is_pinned)
        return None


def routes(service: Service, sessions: Sessions, *, max_body: int) -> list[BaseRoute]:
    """Return the routes. ``max_body`` bounds a request in bytes."""
    old, new = (
        Endpoints(service, sessions, max_body=max_body, knows_reset=knows_reset) for knows_reset in (False, True)
    )
    return [
        *_routes(OLD_PREFIX, old),
        *_routes(NEW_PREFIX, new),
        Route("/v1/ai/{path:path}", json_endpoint(_not_served), methods=["GET", "POST", "PUT", "DELETE"]),
    ]


def _routes(prefix: str, endpoints: Endpoints) -> list[BaseRoute]:
    session = f"{prefix}/{{sessionId}}"
    return [
        RawPathRoute(prefix, json_endpoint(endpoints.start), methods=["POST"]),
        RawPathRoute(session, json_endpoint(endpoints.get), methods=["GET"]),
        RawPathRoute(f"{session}/delta", json_endpoint(endpoints.delta), methods=["GET"]),
        RawPathRoute(f"{session}/messages", json_endpoint(endpoints.send), methods=["POST"]),
        RawPathRoute(f"{session}/tool-results", json_endpoint(endpoints.tool_results), methods=["POST"]),
        RawPathRoute(f"{session}/messages/{{index}}/feedback", json_endpoint(endpoints.feedback), methods=["POST"]),
        RawPathRoute(f"{session}/fork", json_endpoint(endpoints.fork), methods=["POST"]),
        RawPathRoute(f"{session}/visibility", json_endpoint(endpoints.visibility), methods=["POST"]),
        RawPathRoute(f"{session}/pin", json_endpoint(endpoints.pin), methods=["POST"]),
    ]


async def _not_served(_: Request) -> object:
    raise AppError(ErrorCode.THREAD_NOT_FOUND, "This server does not serve this part of Roboto's API.")


def json_endpoint(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that writes the result of a handler as ``data``, and an exception as ``error``."""

    async def endpoint(request: Request) -> Response:
        try:
            return json_response(request, {"data": await handler(request)}, 200)
        except AppError as error:
            return refusal(error, request)
        except HTTPException:
            raise
        except Exception:
            logger.exception("roboto request failed %s", format_fields({"path": request.url.path}))
            return error_response(
                request, AppError(ErrorCode.INTERNAL_ERROR, "The server failed; its log has the cause.")
            )

    return endpoint


def refusal(error: AppError, request: HTTPConnection) -> Response:
    """Return an error that occurs before a route is found, in Roboto's form."""
    logger.info("request refused %s", format_fields({"code": error.code, "message": error.message}))
    return error_response(request, error)


def error_response(request: HTTPConnection, error: AppError) -> Response:
    """Return an error in Roboto's form. The client raises the exception of the status in the error table."""
    name = CLASSES.get(error.spec.http, "RobotoInternalException")
    return json_response(request, {"error": {"error_code": name, "message": error.message}}, error.spec.http)


def json_response(request: HTTPConnection, body: object, status: int) -> Response:
    """Return a response of JSON."""
    headers = {"Cache-Control": "no-store", "X-Request-Id": caller_of(request).request_id}
    return PlainResponse(to_json(body), status, headers, media_type="application/json")


def session_id(request: Request) -> str:
    """Return the session's id from the path."""
    return str(request.path_params["sessionId"])


def index(request: Request) -> int:
    """Return the index of a message from the path. Raises ``AppError`` THREAD_NOT_FOUND."""
    text = str(request.path_params["index"])
    if not (text.isascii() and text.isdigit() and len(text) < 10):  # noqa: PLR2004 - more digits than messages
        raise AppError(ErrorCode.THREAD_NOT_FOUND, "There is no such message in this session.")
    return int(text)


def knows_context(request: Request) -> bool:
    """True if the client knows blocks of the type ``client_context``. Versions are dates in ISO 8601."""
    return request.headers.get(API_VERSION, "") >= CONTEXT_SINCE
