"""Admit requests and sockets: find the request id and the caller in the headers, and refuse forbidden web pages.

Rule: every request and socket passes here first. Identity comes from headers, never from a body. Source: AgentCore's
headers, and its bearer token in ``Sec-WebSocket-Protocol`` (docs/architecture.md).
"""

import base64
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from agui_container.ports import LOG_FIELDS, Caller
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.browser_policy import BrowserPolicy, Headers, route_path
from agui_container.transports.error_responses import error_response, reject_socket

INVOCATIONS = "/invocations"
SESSION_HEADER = "x-amzn-bedrock-agentcore-runtime-session-id"
QUERY_HEADERS = "x-amzn-bedrock-agentcore-runtime-"
REQUEST_ID_HEADERS = ("x-amzn-bedrock-agentcore-runtime-request-id", "x-amzn-requestid", "x-request-id")
BEARER_PROTOCOL = "base64UrlBearerAuthorization"
MAX_SESSION_ID = 256
PLAIN_ID = re.compile(r"[A-Za-z0-9_.:=@/+-]{1,128}")

NOT_FORWARDED = re.compile(
    r"accept|accept-.*|connection|content-.*|cookie|host|keep-alive|origin|proxy-.*|referer|sec-.*|te|trailer"
    r"|transfer-encoding|upgrade|user-agent|x-forwarded-.*|forwarded"
)
"""Headers an agent never sees: the transport's own and cookies, as in AgentCore's restricted table."""


OUTER_SEND = "agui.outer_send"
"""Key in the scope's state: ``send`` as this middleware was given it (``event_stream.chunk_writer``)."""


class CallerMiddleware:
    """ASGI middleware in front of every route.

    Args:
        browsers: decides which web pages may call.
        by_session: whether the session header says who owns threads and runs; otherwise everybody owns all.
        refused_status: status of a refused invocation instead of the error table's. AgentCore replaces the body of any
            4xx or 5xx, so behind it only a 200 can say what was wrong.
        ensure_open: opens the engine if no lifespan has done so. Raises ``AppError`` if it cannot.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        browsers: BrowserPolicy,
        by_session: bool,
        refused_status: int | None,
        ensure_open: Callable[[], Awaitable[None]],
    ) -> None:
        self._app = app
        self._browsers = browsers
        self._by_session = by_session
        self._refused_status = refused_status
        self._ensure_open = ensure_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the connection in, with its caller in ``request.state``, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        sent = connection.headers.items()
        caller = self._caller(connection, sent)
        state = scope.setdefault("state", {})  # what ``connection.state`` shows
        state["caller"] = caller
        state[OUTER_SEND] = send
        state["refused_status"] = self._refused_status if route_path(scope) == INVOCATIONS else None
        LOG_FIELDS.set({"requestId": caller.request_id})
        try:
            self._browsers.check(sent, scope)
            check_session(sent, caller)
            await self._ensure_open()
        except AppError as error:
            if scope["type"] == "websocket":
                await reject_socket(error, send)
            else:
                await error_response(error, connection)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _caller(self, connection: HTTPConnection, sent: Headers) -> Caller:
        return identified(agent_headers(connection, sent), by_session=self._by_session)


def identified(headers: Mapping[str, str], *, by_session: bool) -> Caller:
    """The caller behind forwarded headers, which are lower-cased."""
    session_id = headers.get(SESSION_HEADER)
    given = next((headers[name] for name in REQUEST_ID_HEADERS if name in headers), "")
    return Caller(
        owner=f"session:{session_id}" if by_session and session_id else "everybody",
        request_id=given if PLAIN_ID.fullmatch(given) else str(uuid.uuid4()),
        session_id=session_id,
        headers=headers,
    )


def check_session(sent: Headers, caller: Caller) -> None:
    """Raises ``AppError`` VALIDATION_ERROR for a session id that is longer than AgentCore makes them, and for several.

    Of several one may be a gateway's and another its caller's, and nobody says which.
    """
    if sum(name == SESSION_HEADER for name, _ in sent) > 1:
        raise AppError(ErrorCode.VALIDATION_ERROR, "The session header may be sent once.")
    if caller.session_id is not None and len(caller.session_id) > MAX_SESSION_ID:
        raise AppError(ErrorCode.VALIDATION_ERROR, f"The session id has more than {MAX_SESSION_ID} characters.")


def caller_of(connection: HTTPConnection) -> Caller:
    """The caller that the gate found."""
    caller: Caller = connection.scope["state"]["caller"]
    return caller


def agent_headers(connection: HTTPConnection, sent: Headers) -> Mapping[str, str]:
    """The headers an agent may see, lower-cased. A socket's may also come as its query or its subprotocol."""
    headers = {name: value for name, value in sent if not NOT_FORWARDED.fullmatch(name)}
    if connection.scope["type"] == "websocket":
        for name, value in connection.query_params.items():
            if name.lower().startswith(QUERY_HEADERS):
                headers.setdefault(name.lower(), value)
        token = protocol_token(connection)
        if token is not None:
            headers.setdefault("authorization", f"Bearer {token}")
    return headers


def protocol_token(connection: HTTPConnection) -> str | None:
    """The bearer token that a browser puts into ``Sec-WebSocket-Protocol``; it can set no other header."""
    for offered in connection.scope.get("subprotocols", ()):
        name, _, encoded = offered.partition(".")
        if name == BEARER_PROTOCOL and encoded:
            try:
                return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
            except ValueError:  # not ASCII, not base64, not UTF-8
                return None
    return None
