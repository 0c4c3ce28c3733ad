"""Two clients of one thread: one over gRPC, which waits for a decision or a tool, and one over SSE, which is faster."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import httpx
from google.protobuf.json_format import MessageToDict

from agui_container.engine.engine import Engine
from agui_container.main import build_app
from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.roz.session import THREAD_METADATA
from agui_container.settings import Settings
from tests.behaviour.approval_tools import POLICY, TOOLS
from tests.behaviour.server import serving
from tests.engine.doubles import Json
from tests.protocols.grpc.callers import GrpcCaller, RozSession, connect_caller
from tests.sse import http_client

NAME = "somebody"

DENIED = {"type": "denied", "approved": False, "reason": "The user has denied the call."}
CANCELLED = {"type": "denied", "approved": False, "cancelled": True, "reason": "The turn was cancelled."}
EXPIRED = {"type": "denied", "approved": False, "expired": True, "reason": "Nobody has decided in time."}
DENIED_ELSEWHERE = {**DENIED, "elsewhere": True, "reason": "Another client has denied the call."}


class Clients:
    def __init__(self, service: Engine, grpc: GrpcCaller, http: httpx.AsyncClient) -> None:
        self.service = service
        self.grpc = grpc
        self._http = http

    def on_thread(self, thread: str) -> GrpcCaller:
        """Return the client over gRPC, whose sessions continue a thread."""
        return replace(self.grpc, headers={**self.grpc.headers, THREAD_METADATA: thread})

    async def answer(self, thread: str, *, approved: bool) -> None:
        await self.run(thread, resume=[await self._decision(thread, approved=approved)])

    async def run(self, thread: str, **fields: object) -> None:
        answer = await self._http.post("/invocations", json=body_of(thread, **fields))
        assert '"RUN_FINISHED"' in answer.text, answer.text

    async def _decision(self, thread: str, *, approved: bool) -> Json:
        (asked,) = await self.waiting(thread)
        return {"interruptId": asked["id"], "status": "resolved", "payload": {"approved": approved}}

    async def waiting(self, thread: str) -> list[Json]:
        found: list[Json] = (await self._http.get(f"/threads/{thread}")).json()["waiting"]
        return found

    async def runs(self, thread: str) -> list[Json]:
        found = (await self._http.get("/runs")).json()["runs"]
        return [run for run in found if run["threadId"] == thread]

    async def messages(self, thread: str) -> list[tuple[str, str | None]]:
        stored = (await self._http.get(f"/threads/{thread}")).json()["messages"]
        return [(message["role"], message.get("content")) for message in stored]


def body_of(thread: str, **fields: object) -> Json:
    body = {"threadId": thread, "runId": "over-sse", "messages": [], "tools": [], "context": [], "state": {}}
    return {**body, "forwardedProps": {}, "protocolVersion": "1.0", **fields}


@contextlib.asynccontextmanager
async def two_clients(**settings: object) -> AsyncIterator[Clients]:
    fields: dict[str, Any] = {"agent": "assistant", "tools": TOOLS, "tool_policy": POLICY, **settings}
    app = build_app(Settings(**fields))
    async with serving(app) as url, AsyncExitStack() as closing:
        grpc = connect_caller(int(url.rpartition(":")[2]), NAME, closing)
        async with http_client(url, grpc.headers) as http:
            yield Clients(app.state.service, grpc, http)


class RozTurn:
    """A session of release 1.0 with one turn. ``events`` are those that it has received."""

    def __init__(self, session: RozSession) -> None:
        self._session = session
        self.thread = ""
        self.events: list[roz.SessionEventEnvelope] = []

    async def say(self, text: str, **start: object) -> None:
        await self.send(start=roz.StartSession(**start))  # type: ignore[arg-type] # the fields of a start
        self.thread = (await self.until("session_started")).session_id
        await self.send(user_message=roz.UserMessage(content=text))

    async def send(self, **request: object) -> None:
        await self._session.send(**request)

    async def decide(self, approval: str, *, approved: bool) -> None:
        await self.send(permission_decision=roz.PermissionDecision(tool_call_id=approval, approved=approved))

    async def until(self, kind: str) -> Any:
        while (response := await self._session.call.receive()) is not None:
            if response.HasField("session_event"):
                self.events.append(response.session_event)
                if response.session_event.event_type == kind:
                    return getattr(response.session_event, kind)
        raise AssertionError(f"the session has ended without {kind}")

    @property
    def kinds(self) -> Sequence[str]:
        """Kinds of the events, without those that repeat what other events say."""
        repeated = {"activity_changed", "presence_hinted"}
        return [event.event_type for event in self.events if event.event_type not in repeated]

    def since(self, kind: str) -> Sequence[str]:
        """Kinds of the events after the last one of a kind."""
        kinds = self.kinds
        return kinds[len(kinds) - kinds[::-1].index(kind) :]

    def all(self, kind: str) -> list[Any]:
        return [getattr(event, kind) for event in self.events if event.event_type == kind]

    @property
    def outcomes(self) -> list[Json]:
        return [MessageToDict(event.outcome) for event in self.all("approval_resolved")]

    @property
    def text(self) -> str:
        return "".join(delta.content for delta in self.all("text_delta"))
