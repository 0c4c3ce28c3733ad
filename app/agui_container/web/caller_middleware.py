"""Middleware that identifies the caller of each request and WebSocket, and refuses forbidden web pages and callers.

Rule: every request and WebSocket passes this middleware first. Identity comes from headers, never from a body.

Source: AgentCore's headers, and its bearer token in ``Sec-WebSocket-Protocol`` (docs/websocket.md).
"""

import base64
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agui_container.ports import EVERYBODY, LOG_FIELDS, Caller, session_label
from agui_container.protocol.errors import AppError, validation_error
from agui_container.web.authentication import METADATA_PATH, CallerAuthentication, url_of
from agui_container.web.browser_policy import BrowserPolicy, Headers, route_path
from agui_container.web.direct_writes import OUTER_SEND
from agui_container.web.error_responses import error_response, send_refusal

INVOCATIONS = "/invocations"
AGENT = "/agents/{agent}"
"""Prefix of the paths of one agent, where a server has several."""
INVOCATIONS_PATH = re.compile(rf"(/agents/[^/]+)?{INVOCATIONS}")
PING = "/ping"
SESSION_HEADER = "x-amzn-bedrock-agentcore-runtime-session-id"
QUERY_HEADER_PREFIX = "x-amzn-bedrock-agentcore-runtime-"
REQUEST_ID_HEADERS = ("x-amzn-bedrock-agentcore-runtime-request-id", "x-amzn-requestid", "x-request-id")
BEARER_PROTOCOL = "base64UrlBearerAuthorization"
MAX_SESSION_ID = 256
PLAIN_ID = re.compile(r"[A-Za-z0-9_.:=@/+-]{1,128}")

NOT_FORWARDED = re.compile(
    r"accept|accept-.*|connection|content-.*|cookie|host|keep-alive|origin|proxy-.*|referer|sec-.*|te|trailer"
    r"|transfer-encoding|upgrade|user-agent|x-forwarded-.*|forwarded"
)
"""Headers that an agent never sees: those of the transport, and cookies. Source: AgentCore's restricted headers."""

OPEN_PATHS = frozenset({"/", PING, "/openapi.json", "/docs", METADATA_PATH})
OPEN_PREFIX = "/console/"
"""Paths that need no token: health, metadata, descriptions of the API and the files of the chat page. None of them
shows or changes anything of a caller. Every other path needs one, also a path that does not exist."""

ErrorForm = Callable[[AppError], bytes]
"""Function that writes an error as JSON."""


class CallerMiddleware:
    """ASGI middleware in front of every route.

    Args:
        browsers: decides which web pages may call.
        authentication: verifies the tokens of callers.
        by_session: True if the session header names the owner of threads and runs. Otherwise all callers share them.
            The principal of a token comes before both.
        limits_by_session: True if a gateway sets the session header, so that it names an identity.
        refused_status: status of a refused invocation instead of the error table's. AgentCore replaces the body of any
            4xx or 5xx, so behind AgentCore only a 200 can carry the error.
        ensure_open: opens the engine if no lifespan has done so. Raises ``AppError`` if it cannot.
        error_forms: forms of errors below a path prefix, if they differ from AG-UI's.
    """

    def __init__(  # noqa: PLR0913 - the composition root hands over each part by name
        self,
        app: ASGIApp,
        *,
        browsers: BrowserPolicy,
        authentication: CallerAuthentication,
        by_session: bool,
        limits_by_session: bool,
        refused_status: int | None,
        ensure_open: Callable[[], Awaitable[None]],
        error_forms: Mapping[str, ErrorForm],
    ) -> None:
        self._app = app
        self._browsers = browsers
        self._authentication = authentication
        self._by_session = by_session
        self._limits_by_session = limits_by_session
        self._refused_status = refused_status
        self._ensure_open = ensure_open
        self._error_forms = error_forms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        forwarded = agent_headers(scope, headers)
        caller = make_caller(forwarded, by_session=self._by_session, limits_by_session=self._limits_by_session)
        state = scope.setdefault("state", {})  # the data of ``request.state``
        state["caller"] = caller
        state[OUTER_SEND] = send
        path = route_path(scope)
        state["refused_status"] = self._refused_status if INVOCATIONS_PATH.fullmatch(path) else None
        forms = self._error_forms.items()
        state["error_form"] = next((form for prefix, form in forms if path.startswith(prefix)), None)
        LOG_FIELDS.set({"requestId": caller.request_id})
        try:
            self._browsers.check(headers, scope)
            check_session(headers, caller)
            if path not in OPEN_PATHS and not path.startswith(OPEN_PREFIX):
                state["caller"] = await self._authentication.authenticate(caller, headers)
            await self._ensure_open()
        except AppError as error:
            await send_refusal(error, self._refusal(error, HTTPConnection(scope)), scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, error: AppError, connection: HTTPConnection) -> Response:
        response = error_response(error, connection)
        challenge = self._authentication.challenge(error, url_of(connection))
        if challenge is not None:
            response.headers["WWW-Authenticate"] = challenge
        return response


def make_caller(headers: Mapping[str, str], *, by_session: bool, limits_by_session: bool) -> Caller:
    """Return the caller that forwarded headers describe, with names in lower case."""
    session_id = headers.get(SESSION_HEADER)
    request_id = next((headers[name] for name in REQUEST_ID_HEADERS if name in headers), "")
    return Caller(
        owner=f"session:{session_id}" if by_session and session_id else EVERYBODY,
        request_id=request_id if PLAIN_ID.fullmatch(request_id) else secrets.token_hex(16),
        session_id=session_id,
        headers=headers,
        identity=f"session:{session_label(session_id)}" if limits_by_session and session_id else "",
    )


def check_session(headers: Headers, caller: Caller) -> None:
    """Raise ``AppError`` for a long id, or for two, of which one could be a gateway's and one its client's."""
    if caller.session_id is not None and sum(name == SESSION_HEADER for name, _ in headers) > 1:
        raise validation_error("The session header may be sent once.")
    if caller.session_id is not None and len(caller.session_id) > MAX_SESSION_ID:
        raise validation_error(f"The session id has more than {MAX_SESSION_ID} characters.")


def caller_of(connection: HTTPConnection) -> Caller:
    caller: Caller = connection.scope["state"]["caller"]
    return caller


def agent_headers(scope: Scope, headers: Headers) -> Mapping[str, str]:
    """Read the query and subprotocol of a WebSocket, too, because browsers cannot set headers there."""
    forwarded = {name: value for name, value in headers if not NOT_FORWARDED.fullmatch(name)}
    if scope["type"] == "websocket":
        for name, value in HTTPConnection(scope).query_params.items():
            if name.lower().startswith(QUERY_HEADER_PREFIX):
                forwarded.setdefault(name.lower(), value)
        token = protocol_token(scope)
        if token is not None:
            forwarded.setdefault("authorization", f"Bearer {token}")
    return forwarded


def protocol_token(scope: Scope) -> str | None:
    """Return the bearer token in ``Sec-WebSocket-Protocol``, or None. Browsers cannot set ``Authorization`` there."""
    for subprotocol in scope.get("subprotocols", ()):
        name, _, encoded = subprotocol.partition(".")
        if name == BEARER_PROTOCOL and encoded:
            try:
                return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
            except ValueError:  # not ASCII, not base64, not UTF-8
                return None
    return None
