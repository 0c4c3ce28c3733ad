"""A server in the event loop of the test, with a client over gRPC and one over HTTP, both of one owner."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from types import MappingProxyType
from typing import Any

from grpclib.client import Channel

from agui_container.engine.engine import Engine
from agui_container.main import build_app
from agui_container.settings import Settings
from agui_container.web.caller_middleware import SESSION_HEADER
from tests.behaviour.approval_tools import POLICY
from tests.behaviour.server import port_of, serving
from tests.engine.doubles import Json, make_service
from tests.protocols.grpc.client import GrpcClient
from tests.sse import events_of, http_client

HEADERS = {SESSION_HEADER: "somebody"}

ASSISTANT = {"agent": "assistant", "tools": "tests.protocols.grpc.tools:tools", "tool_policy": POLICY}
"""Settings of a server whose agent is the assistant."""


class Clients(GrpcClient):
    """The clients of a server. Its methods that are not of gRPC are those of the client over HTTP."""

    def __init__(self, service: Engine, url: str, closing: AsyncExitStack) -> None:
        super().__init__(Channel("127.0.0.1", port_of(url)), closing, HEADERS)
        self.service, self.url, self.port = service, url, port_of(url)
        self.http = http_client(url, HEADERS)

    async def get(self, path: str) -> Json:
        found: Json = (await self.http.get(path)).json()
        return found

    async def run(self, thread: str, run: str = "over-sse", **fields: object) -> list[Json]:
        """Run over HTTP to the end. Returns the events."""
        body = {"threadId": thread, "runId": run, "messages": [], "tools": [], "context": [], "state": {}}
        answer = await self.http.post(
            "/invocations", json={**body, "forwardedProps": {}, "protocolVersion": "1.0", **fields}
        )
        events = events_of(answer.content)
        assert events[-1]["type"] == "RUN_FINISHED", answer.text
        return events

    async def say(self, thread: str, run: str, text: str, **fields: object) -> list[Json]:
        message = {"id": f"{run}-user", "role": "user", "content": text}
        return await self.run(thread, run, messages=[message], **fields)

    async def answer(self, thread: str, *, approved: bool, run: str = "over-sse") -> None:
        """Answer the one approval that waits."""
        (asked,) = await self.waiting(thread)
        answer = {"interruptId": asked["id"], "status": "resolved", "payload": {"approved": approved}}
        await self.run(thread, run, resume=[answer])

    async def waiting(self, thread: str) -> list[Json]:
        found: list[Json] = (await self.get(f"/threads/{thread}"))["waiting"]
        return found

    async def runs(self, thread: str) -> list[str]:
        """Return the ids of the runs of a thread in order."""
        return [run["runId"] for run in reversed((await self.get("/runs"))["runs"]) if run["threadId"] == thread]

    async def messages(self, thread: str) -> list[tuple[str, str | None]]:
        stored = (await self.get(f"/threads/{thread}"))["messages"]
        return [(message["role"], message.get("content")) for message in stored]


@contextlib.asynccontextmanager
async def serving_clients(
    agent: object = None, /, options: Mapping[str, Any] = MappingProxyType({}), **settings: object
) -> AsyncIterator[Clients]:
    """Serve an agent, that of the settings, or else the assistant. ``options`` are those of uvicorn."""
    is_given = agent is not None or "agent" in settings
    chosen = Settings.model_validate(settings if is_given else {**ASSISTANT, **settings})
    app = build_app(chosen, None if agent is None else make_service(agent, chosen))
    async with serving(app, **options) as url, AsyncExitStack() as closing:
        clients = Clients(app.state.service, url, closing)
        async with clients.http:
            yield clients
