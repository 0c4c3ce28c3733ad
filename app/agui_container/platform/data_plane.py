"""Operations of the data plane on the sessions of one runtime.

Rule: a request passes in one order: rate, scripted error, broken rules, runtime, authorization, session, container.
So AgentCore's own errors come before a container is started.

Source: ``bedrock-agentcore`` of botocore for paths and headers.
"""

import asyncio
import logging
import re
import secrets
import ssl
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

import httpx
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket

from agui_container.platform.authorizer import (
    BEARER_PROTOCOL,
    InboundAuthorizer,
    InboundCall,
    JwtAuthorizer,
    offered_protocols,
)
from agui_container.platform.containers import ContainerFactory, ContainerFailure
from agui_container.platform.errors import PlatformError, PlatformRefusal, rest_error, run_error
from agui_container.platform.exchange import ContainerExchange, ExchangeResponse
from agui_container.platform.headers import (
    REQUEST_ID,
    SESSION_ID,
    WORKLOAD_TOKEN,
    container_headers,
    headers_in_query,
    returned_headers,
)
from agui_container.platform.limits import PlatformClock, PlatformLimits
from agui_container.platform.rules import RULES, RuleFindings
from agui_container.platform.session import ContainerSession, PlatformContext
from agui_container.platform.sessions import ContainerSessions, session_id_of
from agui_container.platform.sockets import SocketRelay
from agui_container.runtime.token_bucket import TokenBucket

RUNTIME = re.compile(r"arn:aws[a-z-]*:bedrock-agentcore:[a-z0-9-]+:\d{12}:runtime/[A-Za-z0-9_-]+|[A-Za-z0-9_-]+")
"""ARN of a runtime, or its id. Every one of them means the runtime that is here."""

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Never used, because containers are on loopback. httpx would load all certificates of the machine instead."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlatformOptions:
    """Configuration of a runtime, and of the platform around it.

    Attributes:
        make_container: makes the container of a new session.
        authorizer: decides who may call.
        limits: figures of the platform.
        clock: the platform's clock.
        allowed_headers: ``requestHeaderAllowlist``, in lower case.
        path: ``protocolConfiguration.path``.
        freezes: False leaves idle containers running.
        is_strict: True answers no request once a rule was broken.
    """

    make_container: ContainerFactory
    authorizer: InboundAuthorizer
    limits: PlatformLimits = field(default_factory=PlatformLimits)
    clock: PlatformClock = field(default_factory=PlatformClock)
    allowed_headers: frozenset[str] = frozenset()
    path: str = "/invocations"
    freezes: bool = True
    is_strict: bool = False


class DataPlane:
    """AgentCore's operations for one runtime.

    Args:
        options: configuration of the runtime and of the platform.
    """

    def __init__(self, options: PlatformOptions) -> None:
        self.options = options
        self.findings = RuleFindings()
        self._context = PlatformContext(
            container_client(), options.limits, options.clock, self.findings, options.freezes
        )
        self.sessions = ContainerSessions(options.make_container, self._context)
        self._exchanges: set[asyncio.Task[None]] = set()
        self._scripted: PlatformError | None = None
        rate = options.limits.requests_per_second
        self._requests = TokenBucket(rate, rate, time.monotonic)

    async def aclose(self) -> None:
        """End all sessions, and the exchanges with their containers."""
        await self.sessions.aclose()
        if self._exchanges:
            await asyncio.wait(self._exchanges)
        await self._context.http.aclose()
        await self.options.authorizer.aclose()

    # --- operations ---

    async def invoke(self, request: Request) -> Response:
        """InvokeAgentRuntime: hand a body to the session's container and stream its answer."""
        request_id = str(uuid.uuid4())
        try:
            call = inbound_call(request, await self._read(request))
            has_user = await self._admit(call)
            session = await self._open(call)
            exchange = self._send(session, call, self._headers(call, session, request_id, has_user=has_user))
            head = await exchange.head()
        except PlatformRefusal as refusal:
            return run_error(self._log(refusal), request_id)
        except Exception:
            logger.exception("request failed in the platform itself")
            return run_error(PlatformRefusal(PlatformError.INTERNAL_ERROR), request_id)
        own = {SESSION_ID: session.id, REQUEST_ID: request_id}
        return ExchangeResponse(exchange, head.status_code, {**returned_headers(head.headers), **own})

    async def connect(self, websocket: WebSocket) -> None:
        """InvokeAgentRuntimeWithWebSocketStream: open a socket to the session's container."""
        request_id = str(uuid.uuid4())
        call = inbound_call(websocket, b"")
        try:
            has_user = await self._admit(call)
            session = await self._open(call)
            async with session.use(socket=True):
                relay = SocketRelay(session, self._context)
                connection = await relay.connect(self._headers(call, session, request_id, has_user=has_user))
                protocol = BEARER_PROTOCOL if BEARER_PROTOCOL in offered_protocols(call.headers) else None
                await websocket.accept(protocol, [(SESSION_ID.encode(), session.id.encode())])
                await relay.run(websocket, connection)
        except PlatformRefusal as refusal:
            await self._deny(websocket, refusal, request_id)
        except ContainerFailure:
            logger.exception("request failed in the platform itself")
            await self._deny(websocket, PlatformRefusal(PlatformError.INTERNAL_ERROR), request_id)

    async def stop(self, request: Request) -> Response:
        """StopRuntimeSession: end a session, without waiting for the end."""
        request_id = str(uuid.uuid4())
        try:
            call = inbound_call(request, await self._read(request))
            await self._admit(call)
            session_id = session_id_of(call.headers)
            self.sessions.stop(session_id)
        except PlatformRefusal as refusal:
            return rest_error(self._log(refusal), request_id)
        return JSONResponse({}, headers={SESSION_ID: session_id, REQUEST_ID: request_id})

    async def refuse_operation(self, request: Request) -> Response:
        """GetAgentCard and InvokeAgentRuntimeCommand: say that they are not here."""
        request_id = str(uuid.uuid4())
        try:
            await self._admit(inbound_call(request, await self._read(request)))
        except PlatformRefusal as refusal:
            return rest_error(self._log(refusal), request_id)
        name = "GetAgentCard" if request.method == "GET" else "InvokeAgentRuntimeCommand"
        reason = "belongs to runtimes of protocol A2A" if request.method == "GET" else "is not part of this platform"
        absent = PlatformRefusal(PlatformError.VALIDATION_ERROR, f"{name} {reason}.")
        return rest_error(self._log(absent), request_id)

    async def protected_resource(self, request: Request) -> Response:
        """GetRuntimeProtectedResourceMetadata: tell clients where tokens for this runtime come from (RFC 9728)."""
        request_id = str(uuid.uuid4())
        authorizer = self.options.authorizer
        if not isinstance(authorizer, JwtAuthorizer):
            refusal = PlatformRefusal(PlatformError.NOT_FOUND, "This runtime has no customJWTAuthorizer.")
            return rest_error(self._log(refusal), request_id)
        resource = str(request.url).partition("/.well-known/")[0]
        issuer = authorizer.discovery_url.partition("/.well-known/")[0]
        document = {
            "resource": resource,
            "authorization_servers": [issuer],
            "bearer_methods_supported": ["header"],
            **({"scopes_supported": list(authorizer.scopes)} if authorizer.scopes else {}),
        }
        return JSONResponse(document, headers={REQUEST_ID: request_id})

    def script_error(self, error: PlatformError) -> None:
        """Answer the next request with an error of the table, whatever it is."""
        self._scripted = error

    # --- steps ---

    async def _read(self, request: Request) -> bytes:
        """Read the body, up to the quota."""
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > self.options.limits.payload_bytes:
                message = f"The payload has more than {self.options.limits.payload_bytes} bytes."
                raise PlatformRefusal(PlatformError.VALIDATION_ERROR, message)
        return bytes(body)

    async def _admit(self, call: InboundCall) -> bool:
        """Decide about a request before its session. Returns True if it has a user."""
        if self._requests.delay():
            raise PlatformRefusal(PlatformError.RATE_LIMIT_EXCEEDED)
        if self._scripted is not None:
            scripted, self._scripted = self._scripted, None
            raise PlatformRefusal(scripted, f"{scripted.value.message} (as POST /_platform/next-error asked for)")
        self._check_rules()
        runtime = unquote(call.path.split("/")[2])
        if not RUNTIME.fullmatch(runtime):
            message = f"{runtime!r} is no agentRuntimeArn. In a path its slash is written as %2F."
            raise PlatformRefusal(PlatformError.VALIDATION_ERROR, message)
        return await self.options.authorizer.authorize(call)

    async def _open(self, call: InboundCall) -> ContainerSession:
        """Return the running session of a call. Its start may break a rule."""
        try:
            session = await self.sessions.open(session_id_of(call.headers))
        except PlatformRefusal:
            self._check_rules()
            raise
        self._check_rules()
        return session

    def _check_rules(self) -> None:
        """Raise ``PlatformRefusal`` INTERNAL_ERROR if the platform is strict and a rule was broken."""
        broken = self.findings.broken()
        if self.options.is_strict and broken:
            rule, found = next(iter(broken.items()))
            message = f"Strict: the container broke {rule}: {RULES[rule].sentence} Seen: {found.detail}"
            raise PlatformRefusal(PlatformError.INTERNAL_ERROR, message)

    def _headers(
        self, call: InboundCall, session: ContainerSession, request_id: str, *, has_user: bool
    ) -> list[tuple[str, str]]:
        own = {SESSION_ID: session.id, REQUEST_ID: request_id}
        if has_user:
            own[WORKLOAD_TOKEN] = secrets.token_urlsafe(48)
        if "x-amzn-trace-id" not in call.headers:
            own["x-amzn-trace-id"] = f"Root=1-{int(time.time()):08x}-{secrets.token_hex(12)};Sampled=1"
        authorizer = self.options.authorizer
        return container_headers(
            call.headers, self.options.allowed_headers, own, forwards_token=authorizer.forwards_token
        )

    def _send(self, session: ContainerSession, call: InboundCall, headers: list[tuple[str, str]]) -> ContainerExchange:
        """Begin an exchange, which belongs to the platform from now on."""
        request = httpx.Request("POST", f"{session.url}{self.options.path}", headers=headers, content=call.body)
        exchange = ContainerExchange(session, request, self._context)
        task = asyncio.create_task(exchange.run(), name=f"exchange of session {session.id}")
        self._exchanges.add(task)
        task.add_done_callback(self._exchanges.discard)
        return exchange

    async def _deny(self, websocket: WebSocket, refusal: PlatformRefusal, request_id: str) -> None:
        """Refuse a socket that is not open yet."""
        status = refusal.error.value.rest_status
        await websocket.send_denial_response(run_error(self._log(refusal), request_id, status))

    def _log(self, refusal: PlatformRefusal) -> PlatformRefusal:
        logger.info("request refused: %s %s", refusal.error.name, refusal.message)
        return refusal


def container_client() -> httpx.AsyncClient:
    """Return the client of all containers.

    A request has a connection of its own, because none would outlive a freeze. The platform's clock limits its time.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    return httpx.AsyncClient(timeout=None, limits=limits, verify=NO_TLS, trust_env=False)  # noqa: S113 - see above


def inbound_call(connection: HTTPConnection, body: bytes) -> InboundCall:
    """Return a request as it came. A socket's query may carry headers."""
    scope = connection.scope
    query = scope["query_string"].decode("latin-1")
    headers = {**dict(connection.headers), **(headers_in_query(query) if scope["type"] == "websocket" else {})}
    return InboundCall(scope.get("method", "GET"), scope["raw_path"].decode("latin-1"), query, headers, body)


def describe_findings(findings: RuleFindings) -> list[Mapping[str, str]]:
    """Return the findings about all rules, for ``/_platform`` and reports."""
    return [
        {"rule": rule, "state": found.state, "sentence": RULES[rule].sentence, "detail": found.detail}
        for rule, found in findings.all().items()
    ]
