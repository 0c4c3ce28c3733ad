"""Endpoints of Roboto's sessions. Each reads a request, calls ``Sessions``, and returns the data of the answer as JSON.

Sessions are serialised where they are built, which is a worker thread if they are large.
"""

from collections.abc import Awaitable, Callable, Mapping

from pydantic_core import from_json, to_json
from starlette.requests import Request

from agui_container.engine.service import Service
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.browser_policy import route_path
from agui_container.transports.caller_middleware import caller_of, quota_of
from agui_container.transports.request_body import read_fields
from agui_container.transports.roboto import OLD_PREFIX
from agui_container.transports.roboto.requests import PinRequest, VisibilityRequest, read
from agui_container.transports.roboto.sessions import Sessions
from agui_container.transports.roboto.views import SessionClient

CONTEXT_SINCE = "2026-09-30"
"""First version of Roboto's API whose clients know blocks of the type ``client_context``."""

API_VERSION, ORG_ID = "x-roboto-api-version", "x-roboto-org-id"
REQUESTER, COMMAND = "x-roboto-requester", "cli"
"""Header with the program that asks, and the name of the command ``roboto`` in it."""

MAX_ORG_ID = 128

NO_DATA = b"null"
"""Data of an answer that has none, as JSON."""


class Endpoints:
    """Implements ``routes.LoadedEndpoints``.

    Args:
        max_body: largest request in bytes.
    """

    def __init__(self, service: Service, max_body: int) -> None:
        self._service = service
        self._sessions = Sessions(service)
        self._max_body = max_body
        self.by_name: Mapping[str, Callable[[Request], Awaitable[bytes]]] = {
            "start": self.start,
            "get": self.get,
            "delta": self.delta,
            "send": self.send,
            "tool_results": self.tool_results,
            "feedback": self.feedback,
            "fork": self.fork,
            "visibility": self.visibility,
            "pin": self.pin,
        }

    async def aclose(self) -> None:
        """Stop following runs."""
        await self._sessions.reader.aclose()

    def _client(self, request: Request) -> SessionClient:
        knows_context = request.headers.get(API_VERSION, "") >= CONTEXT_SINCE  # versions are dates in ISO 8601
        knows_reset = not route_path(request.scope).startswith(OLD_PREFIX)
        is_command = tool_of(request.headers.get(REQUESTER, "")) == COMMAND
        return SessionClient(caller_of(request), quota_of(request), knows_context, knows_reset, is_command)

    async def _body(self, request: Request) -> tuple[dict[str, object], int]:
        return await read_fields(request, self._max_body, self._service)

    async def start(self, request: Request) -> bytes:
        """Begin a session."""
        body, size = await self._body(request)
        org_id = request.headers.get(ORG_ID, "")[:MAX_ORG_ID] or None
        return await self._sessions.start(self._client(request), body, size, org_id)

    async def get(self, request: Request) -> bytes:
        """Read a session."""
        with_messages = request.query_params.get("load_messages", "True").lower() != "false"
        return await self._sessions.get(self._client(request), session_id(request), with_messages=with_messages)

    async def delta(self, request: Request) -> bytes:
        """Read the changes of a session."""
        token = request.query_params.get("next_token")
        return await self._sessions.reader.delta(self._client(request), session_id(request), token)

    async def send(self, request: Request) -> bytes:
        """Send a message to a session."""
        await self._sessions.send(self._client(request), session_id(request), *await self._body(request))
        return NO_DATA

    async def tool_results(self, request: Request) -> bytes:
        """Add results of client tools."""
        await self._sessions.answer(self._client(request), session_id(request), *await self._body(request))
        return NO_DATA

    async def feedback(self, request: Request) -> bytes:
        """Store feedback on a message."""
        body, _ = await self._body(request)
        record = await self._sessions.give_feedback(self._client(request), session_id(request), index(request), body)
        return to_json(record)

    async def fork(self, request: Request) -> bytes:
        """Copy a session."""
        body, _ = await self._body(request)
        return await self._sessions.fork(self._client(request), session_id(request), body)

    async def visibility(self, request: Request) -> bytes:
        """Store the visibility of a session."""
        body, _ = await self._body(request)
        visibility = read(VisibilityRequest, body).visibility
        await self._sessions.annotate(caller_of(request), session_id(request), visibility=visibility)
        return NO_DATA

    async def pin(self, request: Request) -> bytes:
        """Pin a session, or unpin it."""
        body, _ = await self._body(request)
        is_pinned = read(PinRequest, body).pinned
        await self._sessions.pin(caller_of(request), session_id(request), is_pinned=is_pinned)
        return NO_DATA


def tool_of(requester: str) -> object:
    """Return the name of the program in the header of a request, or None."""
    try:
        fields = from_json(requester)
    except ValueError:
        return None
    return fields.get("roboto_tool") if isinstance(fields, dict) else None


def session_id(request: Request) -> str:
    """Return the session's id from the path."""
    return str(request.path_params["sessionId"])


def index(request: Request) -> int:
    """Return the index of a message from the path. Raises ``AppError`` THREAD_NOT_FOUND."""
    text = str(request.path_params["index"])
    if not (text.isascii() and text.isdigit() and len(text) < 10):  # noqa: PLR2004 - more digits than messages
        raise AppError(ErrorCode.THREAD_NOT_FOUND, "There is no such message in this session.")
    return int(text)
