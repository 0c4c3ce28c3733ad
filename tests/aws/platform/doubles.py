"""Stand-ins for tests of the platform: a container in the test's own loop, and a clock that a test moves."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from agui_container.aws.platform.authorizer import InboundAuthorizer
from agui_container.aws.platform.containers import ProcessContainer
from agui_container.aws.platform.data_plane import DataPlane, build_platform, server_config
from agui_container.aws.platform.options import PlatformOptions
from agui_container.aws.platform.sessions import ContainerSession
from tests.behaviour.server import listening
from tests.engine.doubles import Json

SESSION = "session-of-a-test-with-enough-characters"
HEADER = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"
ARN = "arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/local"
RUNTIME = f"/runtimes/{ARN.replace(':', '%3A').replace('/', '%2F')}"
INVOCATIONS = f"{RUNTIME}/invocations"
CONTAINER = Path(__file__).with_name("container.py")
"""A container that is a process. Its arguments name the rules that it breaks."""


OWN_SERVER = [sys.executable, "-W", "error", "-m", "agui_container", "serve"]
IMAGE = {"AGUI_ERROR_STATUS": "stream"}


@asynccontextmanager
async def platform_around(
    command: Sequence[str], authorizer: InboundAuthorizer, allowed_headers: frozenset[str] = frozenset()
) -> AsyncIterator[str]:
    """Serve a platform whose containers are processes of a command; gives its address."""
    options = PlatformOptions(lambda: ProcessContainer(command, IMAGE), authorizer, allowed_headers=allowed_headers)
    app = build_platform(options)
    async with listening(app, server_config(app)) as url:
        try:
            yield url
        finally:
            await app.state.plane.aclose()


@dataclass
class MovedClock:
    seconds: float = 0.0

    def now(self) -> float:
        return self.seconds


Answer = Callable[[Request], Awaitable[Response]]
Talk = Callable[[WebSocket], Awaitable[None]]


@dataclass
class ScriptedContainer:
    """A container whose answers a test decides. While it ``is_starting``, pings get 503."""

    ping: Json = field(default_factory=lambda: {"status": "Healthy", "time_of_last_update": 1_700_000_000})
    answer: Answer | None = None
    talk: Talk | None = None
    requests: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    pings: int = 0
    is_starting: bool = False

    def app(self) -> Starlette:
        routes = [
            Route("/ping", self._ping),
            Route("/invocations", self._invoke, methods=["POST"]),
            *([WebSocketRoute("/ws", self._socket)] if self.talk else []),
        ]
        return Starlette(routes=routes)

    async def _ping(self, _: Request) -> Response:
        self.pings += 1
        if self.is_starting:
            return Response(status_code=503)
        return JSONResponse(self.ping)

    async def _invoke(self, request: Request) -> Response:
        self.requests.append(dict(request.headers))
        self.bodies.append(await request.body())
        return await (self.answer or short_run)(request)

    async def _socket(self, websocket: WebSocket) -> None:
        self.requests.append(dict(websocket.headers))
        assert self.talk is not None
        await websocket.accept()
        await self.talk(websocket)


class AttachedContainer(ProcessContainer):
    """A container that runs already. The platform's orders are recorded, and ignored unless it ``obeys``."""

    def __init__(self, port: int) -> None:
        super().__init__([], {})
        self.port = port
        self.orders: list[str] = []
        self.exited: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.obeys = True

    async def start(self) -> None:
        self.orders.append("start")

    async def wait(self) -> str:
        return await asyncio.shield(self.exited)

    def freeze(self) -> None:
        self.orders.append("freeze")

    def thaw(self) -> None:
        self.orders.append("thaw")

    def terminate(self) -> None:
        self.orders.append("terminate")
        if self.obeys:
            self.exit("exited with status 0")

    async def kill(self) -> None:
        self.orders.append("kill")
        self.exit("ended by SIGKILL")

    async def is_on_all_addresses(self) -> None:
        return None

    def exit(self, reason: str) -> None:
        if not self.exited.done():
            self.exited.set_result(reason)


@dataclass
class ServedPlatform:
    url: str
    plane: DataPlane
    clock: MovedClock
    containers: list[AttachedContainer]
    http: httpx.AsyncClient

    @property
    def session(self) -> ContainerSession:
        return self.plane.sessions.all()[SESSION]

    @property
    def socket_url(self) -> str:
        return f"{self.url.replace('http', 'ws', 1)}{RUNTIME}/ws?{HEADER}={SESSION}"

    async def invoke(self, body: bytes = b"{}", session: str = SESSION, **headers: str) -> httpx.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.post(INVOCATIONS, content=body, headers={HEADER: session, **given})


def events(response: httpx.Response) -> list[Json]:
    return [json.loads(line[5:]) for line in response.text.split("\n") if line.startswith("data:")]


def frame(event_type: str, **fields: object) -> bytes:
    return f"data: {json.dumps({'type': event_type, **fields})}\n\n".encode()


STARTED = frame("RUN_STARTED", threadId="t1", runId="r1")
FINISHED = frame("RUN_FINISHED", threadId="t1", runId="r1")
CUSTOM = frame("CUSTOM", name="n", value="v")
INPUT = b'{"threadId": "t1", "runId": "r1"}'
"""The input of the run of these events."""


async def short_run(_: Request) -> Response:
    return Response(STARTED + FINISHED, media_type="text/event-stream")


@dataclass
class HeldRun:
    """A run that begins at once and ends when a test lets it."""

    rest: bytes = FINISHED
    ends: asyncio.Event = field(default_factory=asyncio.Event)
    has_begun: asyncio.Event = field(default_factory=asyncio.Event)
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)
    was_cancelled: bool = False

    async def answer(self, _: Request) -> Response:
        return StreamingResponse(self._frames(), media_type="text/event-stream")

    async def _frames(self) -> AsyncIterator[bytes]:
        yield STARTED
        self.has_begun.set()
        try:
            await self.ends.wait()
            yield self.rest
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        finally:
            self.has_ended.set()
