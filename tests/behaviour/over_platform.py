"""Clients behind the local AgentCore: the same test bodies, with the platform between client and server.

Rule: the server runs in the test's own loop, and the platform takes it for the container of one session. So these ways
differ from the others in what the platform does to requests and answers.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import uvicorn

from agui_container.aws.platform.authorizer import NoAuthorizer
from agui_container.aws.platform.data_plane import build_platform
from agui_container.aws.platform.headers import SESSION_ID
from agui_container.aws.platform.options import PlatformLimits, PlatformOptions
from agui_container.engine.engine import Engine
from tests.aws.platform.doubles import RUNTIME, SESSION, AttachedContainer
from tests.behaviour.client import Client
from tests.behaviour.over_sse import OverSse
from tests.behaviour.over_ws import OverWs, Socket, WsStream
from tests.behaviour.server import listening, port_of
from tests.engine.doubles import FakeClock, Json

PLATFORM_WAYS = ["sse-platform", "ws-platform"]


class SseBehindPlatform(OverSse):
    def __init__(self, service: Engine, clock: FakeClock, url: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(service, clock, url, {SESSION_ID: SESSION, **(headers or {})})


class CountedStream(WsStream):
    """The frames of one run, counted: the platform does not pass the query that asks for numbers."""

    def __init__(self, service: Engine, socket: Socket, after: int) -> None:
        super().__init__(service, socket)
        self._after = after

    def _take_number(self, event: Json) -> int:
        assert "metadata" not in event or "seq" not in event["metadata"]
        return self._after + len(self.seqs) + 1


class WsBehindPlatform(OverWs):
    def __init__(self, service: Engine, clock: FakeClock, url: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(service, clock, url, {SESSION_ID: SESSION, **(headers or {})})

    async def start(self, body: Json | str) -> CountedStream:
        stream = await super().start(body)
        command = body.get("command", {}) if isinstance(body, dict) else {}
        return CountedStream(self.service, stream.socket, command.get("after", 0))


@asynccontextmanager
async def behind_platform(transport: str, direct: OverSse) -> AsyncIterator[Client]:
    """Put the platform in front of the server of a client. Gives a client of the runtime.

    It counts no frames: a slow machine may read in one second all that was sent in two. The runs end before it does,
    because it reads them to their end, whoever has left.
    """
    port, limits = port_of(direct.url), PlatformLimits(frames_per_second=1_000_000)
    app = build_platform(PlatformOptions(lambda: AttachedContainer(port), NoAuthorizer(), limits))
    config = uvicorn.Config(app, log_config=None, access_log=False, ws_max_size=limits.frame_bytes)
    async with listening(app, config, partial(direct.service.drain, 0)) as platform:
        kind = SseBehindPlatform if transport == "sse" else WsBehindPlatform
        client = kind(direct.service, direct.clock, f"{platform}{RUNTIME}")
        try:
            yield client
        finally:
            await client.close()
