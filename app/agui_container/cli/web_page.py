"""The chat page on this machine for an agent elsewhere: ``agui chat --web``.

Rules:

- The page's requests to ``/invocations`` and ``/ws`` are signed, or get the token, and are passed on as they are. The
  browser has neither credentials nor token.
- The page is for this machine alone. It listens on loopback, and requests of other web pages are refused.
"""

import asyncio
import webbrowser
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress

import click
import httpx
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.frames import CloseCode

from agui_client import AgentClientError
from agui_client.agentcore import SESSION_HEADER
from agui_client.caller import Address, Caller
from agui_container.cli.local_server import LOOPBACK, listen, local_app, local_server, refusal
from agui_container.cli.target import Target, with_transport
from agui_container.web.console import routes as console
from agui_container.web.console.assets import ConsoleOptions

MAX_FRAME = 32_000_000
BAD_GATEWAY = 502
NOT_SENT = (CloseCode.NO_STATUS_RCVD, CloseCode.ABNORMAL_CLOSURE, CloseCode.TLS_HANDSHAKE)
"""Codes that say why there is no close frame."""

OPTIONS = ConsoleOptions("AG-UI Chat", "#4a5bd4")


def build_page(target: Target) -> Starlette:
    """Return the application: the page, and its way to the agent."""
    http = httpx.AsyncClient(timeout=httpx.Timeout(None, connect=30.0))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with http:
            yield

    async def ping(_: Request) -> Response:
        return JSONResponse({"status": "Healthy"})

    async def invoke(request: Request) -> Response:
        try:
            return await pass_on(http, request, await address_of(target, request))
        except (AgentClientError, httpx.TransportError) as error:
            return refusal("UNREACHABLE", f"The agent cannot be reached: {error}", BAD_GATEWAY)
        except ValueError as error:  # for example without credentials
            return refusal("ACCESS_DENIED", str(error), BAD_GATEWAY)

    async def carry(websocket: WebSocket) -> None:
        await websocket.accept()
        try:
            address = await address_of(target, websocket, websocket=True)
            headers = await address.handshake_headers(address.url)
            remote = await connect(address.url, additional_headers=headers, max_size=MAX_FRAME, compression=None)
        except (OSError, WebSocketException, AgentClientError, ValueError) as error:
            await websocket.close(CloseCode.TRY_AGAIN_LATER, f"The agent cannot be reached: {error}"[:100])
            return
        await carry_frames(websocket, remote)

    own = [Route("/ping", ping), Route("/invocations", invoke, methods=["POST"]), WebSocketRoute("/ws", carry)]
    return local_app([*console.routes(OPTIONS), *own], lifespan)


async def address_of(target: Target, connection: HTTPConnection, *, websocket: bool = False) -> Address:
    """Return where a request of the page is sent, in the session of the target or in that of the browser."""
    own = connection.headers.get(SESSION_HEADER) or connection.query_params.get(SESSION_HEADER)
    options = target.options.copy()
    if own and "session_id" not in options:
        options["session_id"] = own
    return await Caller(with_transport(target.url, websocket=websocket), **options).address()


async def pass_on(http: httpx.AsyncClient, request: Request, address: Address) -> Response:
    """Send the body of a request to the agent, and return its answer, which is passed on as it arrives."""
    headers = {**address.headers, "Content-Type": "application/json", "Accept": "text/event-stream"}
    sent = http.build_request("POST", address.url, content=await request.body(), headers=headers)
    response = await http.send(sent, auth=address.sigv4, stream=True)

    async def chunks() -> AsyncIterator[bytes]:
        async with aclosing(response):
            async for chunk in response.aiter_bytes():
                yield chunk

    kept = {name: value for name, value in response.headers.items() if name in {"content-type", "cache-control"}}
    return StreamingResponse(chunks(), response.status_code, kept)


async def carry_frames(websocket: WebSocket, remote: ClientConnection) -> None:
    """Pass frames on in both directions until one side closes."""

    async def send_all() -> None:
        with suppress(ConnectionClosed, WebSocketDisconnect):
            async for text in websocket.iter_text():
                await remote.send(text)
        await remote.close()

    async with remote, asyncio.TaskGroup() as group:
        to_agent = group.create_task(send_all(), name="frames of the page")
        with suppress(ConnectionClosed, WebSocketDisconnect):
            async for frame in remote:
                await (websocket.send_text(frame) if isinstance(frame, str) else websocket.send_bytes(frame))
        to_agent.cancel()
    with suppress(RuntimeError, WebSocketDisconnect):  # the page has closed the socket
        code = remote.close_code
        await websocket.close(CloseCode.TRY_AGAIN_LATER if code is None or code in NOT_SENT else code)


async def serve_page(target: Target, port: int, *, opens: bool) -> None:
    """Serve the page until Ctrl-C or a signal that ends the command. ``opens`` opens a browser."""
    with listen(LOOPBACK, port) as listener:
        address = f"http://localhost:{listener.getsockname()[1]}/"
        click.echo(f"The page for {target.name} is at {address}. Ctrl-C ends it.")
        if opens:
            webbrowser.open(address)
        await local_server(build_page(target)).serve([listener])
