"""Clients behind the local AgentCore: the same test bodies, with the platform between client and server.

Rule: the server runs in the test's own loop, and the platform takes it for the container of one session. So these ways
differ from the others in what the platform does to requests and answers.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn

from agui_container.engine.engine import Engine
from agui_container.platform.application import build_platform
from agui_container.platform.authorizer import NoAuthorizer
from agui_container.platform.data_plane import PlatformOptions
from agui_container.platform.headers import SESSION_ID
from agui_container.platform.limits import PlatformLimits
from tests.behaviour.client import Client
from tests.behaviour.over_sse import OverSse
from tests.behaviour.over_ws import OverWs, WsStream
from tests.behaviour.server import listening, port_of
from tests.engine.doubles import FakeClock, Json
from tests.platform.doubles import RUNTIME, SESSION, AttachedContainer


@asynccontextmanager
async def behind_platform(url: str) -> AsyncIterator[str]:
    """Put the platform in front of a server; gives the runtime's address.

    It counts no frames: a slow machine may read in one second all that was sent in two.
    """
    port, limits = port_of(url), PlatformLimits(frames_per_second=1_000_000)
    app = build_platform(PlatformOptions(lambda: AttachedContainer(port), NoAuthorizer(), limits))
    config = uvicorn.Config(app, log_config=None, access_log=False, ws_max_size=limits.frame_bytes)
    async with listening(app, config) as platform:
        yield f"{platform}{RUNTIME}"


class CountedStream(WsStream):
    """The frames of one run, counted: the platform does not pass the query that asks for numbers."""

    def _take_number(self, event: Json) -> int:
        assert "metadata" not in event or "seq" not in event["metadata"]
        return len(self.seqs) + 1


class WsBehindPlatform(OverWs):
    """``/runtimes/ARN/ws``."""

    async def start(self, body: Json | str) -> CountedStream:
        stream = await super().start(body)
        return CountedStream(self.service, stream.socket)


def client_behind_platform(transport: str, service: Engine, clock: FakeClock, url: str) -> Client:
    """A client of one session."""
    kind = OverSse if transport == "sse" else WsBehindPlatform
    return kind(service, clock, url, {SESSION_ID: SESSION})
