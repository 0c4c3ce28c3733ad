"""The chat page on this machine for an agent elsewhere: ``agui chat --web``.

Rules:

- Of the agent only ``/invocations`` and ``/ws`` are used, because AgentCore passes nothing else. Requests of the page
  to other routes become commands in a body.
- The page is for this machine alone. It listens on loopback, and requests of other web pages are refused.
- Requests are signed, or get the token, here. The browser has neither.
"""

import asyncio
import json
import socket
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial

import click
import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from agui_client.agentcore import SESSION_HEADER
from agui_client.backoff import Retry
from agui_client.caller import Caller
from agui_client.errors import AgentClientError, RunRefusedError
from agui_client.server import Server
from agui_container.cli.target import Target, with_transport
from agui_container.engine.admission.quota import Quota
from agui_container.engine.policy import CapacityLimits, IdentityLimits
from agui_container.runtime.clock import SystemClock
from agui_container.transports.authentication import NO_AUTHENTICATION
from agui_container.transports.browser_policy import BrowserPolicy
from agui_container.transports.caller_middleware import CallerMiddleware
from agui_container.transports.console import routes as console
from agui_container.transports.console.options import ConsoleOptions
from agui_container.transports.raw_path_route import RawPathRoute
from agui_container.transports.rest import THREAD_ROUTES

LOOPBACK = "127.0.0.1"
MAX_FRAME = 32_000_000
BAD_GATEWAY = 502
TRY_AGAIN = 1013
"""Close code of a socket whose agent cannot be reached."""

OPTIONS = ConsoleOptions("AG-UI Chat", "#4a5bd4")

COMMANDS = (("/runs", "GET", "runs.list"), *THREAD_ROUTES)
"""Routes of the page that are commands of the agent: path, method and type."""


class RemoteAgent:
    """The agent that the page talks to.

    Args:
        target: where it is. Without a session of its own, the session of the browser counts.
    """

    def __init__(self, target: Target) -> None:
        self._url = target.url
        self._token = target.options.get("token")
        self._sigv4 = target.options.get("sigv4")
        self._session_id = target.options.get("session_id")
        self._http = httpx.AsyncClient(timeout=httpx.Timeout(None, connect=30.0))

    def caller(self, connection: HTTPConnection, *, websocket: bool = False) -> Caller:
        """Return the caller of the agent for a request of the page."""
        own = connection.headers.get(SESSION_HEADER) or connection.query_params.get(SESSION_HEADER)
        url = with_transport(self._url, websocket=websocket)
        return Caller(url, self._token, self._session_id or own, sigv4=self._sigv4)

    async def command(self, request: Request, command: dict[str, object]) -> dict[str, object]:
        """Send a command, and return its result. AgentCore refuses requests for a while where a session begins.

        Raises:
            AgentClientError: as ``Server.retrying``.
        """
        server = Server(self.caller(request), Retry())
        try:
            return await server.retrying(partial(server.transport.command, command))
        finally:
            await server.transport.aclose()

    async def invoke(self, request: Request, body: bytes) -> Response:
        """Send a body to ``/invocations``, and pass the answer on as it arrives."""
        address = await self.caller(request).address()
        headers = {**address.headers, "Content-Type": "application/json", "Accept": "text/event-stream"}
        sent = self._http.build_request("POST", address.url, content=body, headers=headers)
        response = await self._http.send(sent, auth=address.sigv4, stream=True)

        async def chunks() -> AsyncIterator[bytes]:
            async with aclosing(response):
                async for chunk in response.aiter_bytes():
                    yield chunk

        kept = {name: value for name, value in response.headers.items() if name in {"content-type", "cache-control"}}
        return StreamingResponse(chunks(), response.status_code, kept)

    async def connect(self, websocket: WebSocket) -> ClientConnection:
        """Open a socket to the agent. Raises as ``websockets`` does."""
        address = await self.caller(websocket, websocket=True).address()
        headers = dict(address.headers)
        if address.sigv4 is not None:
            headers |= address.sigv4.headers("GET", address.url, headers)
        return await connect(address.url, additional_headers=headers, max_size=MAX_FRAME, compression=None)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()


def build_page(target: Target) -> Starlette:
    """Return the application: the page, and its way to the agent."""
    agent = RemoteAgent(target)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await agent.aclose()

    async def ping(_: Request) -> Response:
        return JSONResponse({"status": "Healthy"})

    async def capabilities(request: Request) -> Response:
        result = await agent.command(request, {"type": "capabilities"})
        return JSONResponse(result["capabilities"])

    async def invocations(request: Request) -> Response:
        return await agent.invoke(request, await request.body())

    async def events(request: Request) -> Response:
        named = {"runId": request.path_params["runId"], "threadId": request.query_params.get("threadId")}
        return await agent.invoke(request, json.dumps({"command": {"type": "attach", **named}}).encode())

    async def socket_of_page(websocket: WebSocket) -> None:
        await carry(websocket, agent)

    return Starlette(
        routes=[
            *console.routes(OPTIONS),
            Route("/ping", ping),
            Route("/capabilities", capabilities),
            Route("/invocations", invocations, methods=["POST"]),
            RawPathRoute("/runs/{runId}/events", events),
            *(RawPathRoute(path, execute(agent, kind), methods=[method]) for path, method, kind in COMMANDS),
            WebSocketRoute("/ws", socket_of_page),
        ],
        middleware=[admission()],
        exception_handlers={
            AgentClientError: on_client_error,
            httpx.TransportError: on_transport_error,
            ValueError: on_value_error,
        },
        lifespan=lifespan,
    )


def execute(agent: RemoteAgent, command_type: str) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that sends a request as a command of this type."""

    async def respond(request: Request) -> Response:
        body: object = await request.json() if request.method in {"POST", "PATCH"} else {}
        fields = {**request.query_params, **(body if isinstance(body, dict) else {}), **request.path_params}
        return JSONResponse(await agent.command(request, {**fields, "type": command_type}))

    return respond


def admission() -> Middleware:
    """Return the middleware that refuses other web pages, as the agent's own server has it."""
    return Middleware(
        CallerMiddleware,
        browsers=BrowserPolicy((), ()),
        authentication=NO_AUTHENTICATION,
        by_session=True,
        limits_by_session=False,
        refused_status=None,
        quota=Quota(CapacityLimits(), IdentityLimits(), SystemClock()),
        ensure_open=_nothing_to_open,
        error_forms={},
    )


async def _nothing_to_open() -> None:
    """Return at once: the page has no engine."""


def refusal(code: str, message: str, status: int, request_id: str | None = None) -> Response:
    """Return an answer of one RUN_ERROR, as the agent's own server refuses."""
    metadata = {} if request_id is None else {"metadata": {"requestId": request_id}}
    event = {"type": "RUN_ERROR", "code": code, "message": message, **metadata}
    return Response(f"data: {json.dumps(event)}\n\n", status, media_type="text/event-stream")


async def on_client_error(_: Request, error: Exception) -> Response:
    """Answer with what the agent, or AgentCore, has refused."""
    if isinstance(error, RunRefusedError):
        return refusal(error.code, str(error), BAD_GATEWAY, error.request_id)
    return refusal("UNREACHABLE", str(error), BAD_GATEWAY)


async def on_transport_error(_: Request, error: Exception) -> Response:
    """Answer that the agent cannot be reached."""
    return refusal("UNREACHABLE", f"The agent cannot be reached: {error}", BAD_GATEWAY)


async def on_value_error(_: Request, error: Exception) -> Response:
    """Answer that the request cannot be sent, for example without credentials."""
    return refusal("ACCESS_DENIED", str(error), BAD_GATEWAY)


async def carry(websocket: WebSocket, agent: RemoteAgent) -> None:
    """Pass frames on in both directions until one side closes."""
    await websocket.accept()
    try:
        remote = await agent.connect(websocket)
    except (OSError, TimeoutError, InvalidStatus, WebSocketException, AgentClientError, ValueError) as error:
        await websocket.close(TRY_AGAIN, f"The agent cannot be reached: {error}"[:100])
        return
    async with remote:
        to_agent = asyncio.create_task(_send_all(websocket, remote), name="frames of the page")
        try:
            with suppress(ConnectionClosed, WebSocketDisconnect):
                async for frame in remote:
                    await websocket.send_text(frame if isinstance(frame, str) else frame.decode())
        finally:
            to_agent.cancel()
            await asyncio.wait([to_agent])
    with suppress(RuntimeError, WebSocketDisconnect):  # the page has closed the socket
        await websocket.close(remote.close_code or 1000)


async def _send_all(websocket: WebSocket, remote: ClientConnection) -> None:
    with suppress(ConnectionClosed, WebSocketDisconnect):
        async for text in websocket.iter_text():
            await remote.send(text)
    await remote.close()


async def serve_page(target: Target, port: int, *, opens: bool) -> None:
    """Serve the page until Ctrl-C or a signal that ends the command. ``opens`` opens a browser."""
    with socket.create_server((LOOPBACK, port)) as listener:
        address = f"http://localhost:{listener.getsockname()[1]}/"
        click.echo(f"The page for {target.name} is at {address}. Ctrl-C ends it.")
        if opens:
            webbrowser.open(address)
        config = uvicorn.Config(build_page(target), log_config=None, access_log=False, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listener]), name="page")
        try:
            await asyncio.shield(serving)
        finally:
            server.should_exit = True  # a server that is cancelled in place logs a traceback of its lifespan
            await serving
