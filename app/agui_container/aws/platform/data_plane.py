"""The data plane of one runtime as an application: its operations on sessions, and errors that a test asks for.

Rule: a request passes in one order: scripted errors, runtime, authorization, session, container.
So AgentCore's own errors come before a container is started.

Source: ``bedrock-agentcore`` of botocore for paths and headers.
"""

import logging
import re
import secrets
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any
from urllib.parse import unquote

import httpx
import uvicorn
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.exceptions import InvalidHandshake

from agui_container.aws.platform.authorizer import InboundCall
from agui_container.aws.platform.containers import container_client
from agui_container.aws.platform.errors import PlatformError, PlatformRefusal, rest_error, run_error
from agui_container.aws.platform.headers import (
    REQUEST_ID,
    SESSION_ID,
    TRACE_ID,
    WORKLOAD_TOKEN,
    container_headers,
    headers_in_query,
)
from agui_container.aws.platform.options import PlatformOptions
from agui_container.aws.platform.relays import ContainerExchange, SocketRelay, connect_container
from agui_container.aws.platform.sessions import ContainerSession, ContainerSessions, session_id_of
from agui_container.server.protocol_classes import choose_protocols
from agui_container.web.caller_middleware import BEARER_PROTOCOL, protocol_token

RUNTIME = "/runtimes/{runtime:path}"
"""Path of the runtime. Its ARN has a slash, which clients write as %2F."""

ARN_OR_ID = re.compile(r"arn:aws[a-z-]*:bedrock-agentcore:[a-z0-9-]+:\d{12}:runtime/[A-Za-z0-9_-]+|[A-Za-z0-9_-]+")
"""ARN of a runtime, or its id. Every one of them means the runtime that is here."""

logger = logging.getLogger(__name__)


class NextError(BaseModel):
    """Body of ``POST /_platform/next-error``. AWS's clients try three times, so an error may come for ``count``."""

    code: str
    count: Annotated[int, Field(ge=1, le=100)] = 1


class DataPlane:
    def __init__(self, options: PlatformOptions) -> None:
        self.options = options
        self._http = container_client()
        self.sessions = ContainerSessions(options, self._http)
        hidden = () if options.authorizer.forwards_token else ("authorization",)
        self._allowed = options.allowed_headers.difference(hidden)
        self._scripted: list[PlatformError] = []

    async def aclose(self) -> None:
        await self.sessions.aclose()
        await self._http.aclose()

    # --- operations, which raise ``PlatformRefusal`` ---

    async def invoke(self, request: Request) -> ContainerExchange:
        """InvokeAgentRuntime: hand a body to the session's container and stream its answer."""
        call, own = await self._admit(request)
        session = await self._open(call, own)
        headers = container_headers(call.headers, self._allowed, own)
        sent = httpx.Request("POST", f"{session.container.url}{self.options.path}", headers=headers, content=call.body)
        return ContainerExchange(session, sent, {name: own[name] for name in (SESSION_ID, REQUEST_ID)})

    async def connect(self, websocket: WebSocket) -> None:
        """InvokeAgentRuntimeWithWebSocketStream: open a socket to the session's container."""
        call, own = await self._admit(websocket)
        session = await self._open(call, own)
        with session.use():
            headers = container_headers(call.headers, self._allowed, own)
            try:
                container = await connect_container(session.container, headers, self.options.limits)
            except (InvalidHandshake, OSError, TimeoutError) as error:
                logger.warning("session %s socket refused by the container: %s", session.id, error)
                raise PlatformRefusal(PlatformError.AGENT_ERROR) from None
            protocol = BEARER_PROTOCOL if BEARER_PROTOCOL in websocket.scope["subprotocols"] else None
            await websocket.accept(protocol, [(SESSION_ID.encode(), session.id.encode())])
            await SocketRelay(session, websocket, container).run()

    async def stop(self, request: Request) -> Response:
        """StopRuntimeSession: end a session, without waiting for the end."""
        call, own = await self._admit(request)
        session_id = session_id_of(call.headers)
        self.sessions.stop(session_id)
        return JSONResponse({}, headers={SESSION_ID: session_id, REQUEST_ID: own[REQUEST_ID]})

    async def set_next_error(self, request: Request) -> Response:
        """Answer the next requests with an error of the table, whatever they are."""
        try:
            chosen = NextError.model_validate_json(await request.body())
            error = PlatformError[chosen.code]
        except (ValidationError, KeyError):
            codes = ", ".join(PlatformError.__members__)
            message = f'The body must be {{"code": …, "count": 1 to 100}} with one of {codes}.'
            return JSONResponse({"message": message}, 400)
        self._scripted = [error] * chosen.count
        return JSONResponse({"code": error.name, "count": chosen.count})

    # --- steps ---

    async def _admit(self, connection: Request | WebSocket) -> tuple[InboundCall, dict[str, str]]:
        """Decide about a request before its session. Return it, and the headers that the platform adds to it."""
        body = await self._read(connection) if isinstance(connection, Request) else b""
        call = inbound_call(connection, body)
        if self._scripted:
            scripted = self._scripted.pop()
            raise PlatformRefusal(scripted, f"{scripted.value.message} (as POST /_platform/next-error asked for)")
        runtime = unquote(call.path.split("/")[2])
        if not ARN_OR_ID.fullmatch(runtime):
            message = f"{runtime!r} is no agentRuntimeArn. In a path its slash is written as %2F."
            raise PlatformRefusal(PlatformError.VALIDATION_ERROR, message)
        own = {REQUEST_ID: request_id_of(connection)}
        if await self.options.authorizer.authorize(call):
            own[WORKLOAD_TOKEN] = secrets.token_urlsafe(48)
        if TRACE_ID not in call.headers:
            own[TRACE_ID] = f"Root=1-{int(time.time()):08x}-{secrets.token_hex(12)};Sampled=1"
        return call, own

    async def _read(self, request: Request) -> bytes:
        body, limit = bytearray(), self.options.limits.payload_bytes
        async for piece in request.stream():
            body += piece
            if len(body) > limit:
                raise PlatformRefusal(PlatformError.VALIDATION_ERROR, f"The payload has more than {limit} bytes.")
        return bytes(body)

    async def _open(self, call: InboundCall, own: dict[str, str]) -> ContainerSession:
        """Return the running session of a call, and add its id to the headers."""
        own[SESSION_ID] = session_id_of(call.headers)
        return await self.sessions.open(own[SESSION_ID])


def request_id_of(connection: HTTPConnection) -> str:
    """Return the id of a request, which is made once."""
    state: dict[str, str] = connection.scope.setdefault("state", {})
    return state.setdefault("platform_request_id", str(uuid.uuid4()))


def inbound_call(connection: HTTPConnection, body: bytes) -> InboundCall:
    """Return a request as it came. A socket's query may carry headers."""
    scope = connection.scope
    query = scope["query_string"].decode("latin-1")
    headers = {name: ",".join(connection.headers.getlist(name)) for name in connection.headers}
    if scope["type"] == "websocket":
        headers |= headers_in_query(query)
    method, path = scope.get("method", "GET"), scope["raw_path"].decode("latin-1")
    return InboundCall(method, path, query, headers, body, protocol_token(connection.scope))


# --- application ------------------------------------------------------------------------------------------------------


def build_platform(options: PlatformOptions) -> Starlette:
    """Build the platform. ``app.state.plane`` is its data plane. All containers end with the application's lifespan."""
    plane = DataPlane(options)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await plane.aclose()

    routes = [
        Route(f"{RUNTIME}/invocations", plane.invoke, methods=["POST"]),
        WebSocketRoute(f"{RUNTIME}/ws", plane.connect),
        Route(f"{RUNTIME}/stopruntimesession", plane.stop, methods=["POST"]),
        Route("/_platform/next-error", plane.set_next_error, methods=["POST"]),
    ]
    handlers: dict[Any, Any] = dict.fromkeys((PlatformRefusal, Exception), answer_error)  # Starlette's are narrower
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    app.state.plane = plane
    return app


async def answer_error(connection: Request | WebSocket, error: Exception) -> Response | None:
    """Answer in the form of the operation, and log the reason. The server logs a mistake of the platform itself."""
    refusal = error if isinstance(error, PlatformRefusal) else PlatformRefusal(PlatformError.INTERNAL_ERROR)
    logger.info("request refused: %s %s", refusal.error.name, refusal.message)
    request_id = request_id_of(connection)
    if isinstance(connection, WebSocket):
        status = refusal.error.value.rest_status
        await connection.send_denial_response(run_error(refusal, request_id, status))
        return None
    is_invocation = connection.url.path.endswith("/invocations")
    return run_error(refusal, request_id) if is_invocation else rest_error(refusal, request_id)


def server_config(app: Starlette) -> uvicorn.Config:
    """Return uvicorn's configuration for the platform. uvicorn watches the size of the caller's frames."""
    return uvicorn.Config(
        app,
        **choose_protocols(),
        log_config=None,
        access_log=False,
        server_header=False,
        ws_max_size=app.state.plane.options.limits.frame_bytes,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=1,
        lifespan="on",
    )
