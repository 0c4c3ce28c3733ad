"""A caller of a server in the test's event loop, named by its session, with calls of roz and kontekst."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from grpclib.client import Channel, StreamStreamMethod
from grpclib.exceptions import StreamTerminatedError

from agui_container.main import build_app
from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from agui_container.settings import Settings
from agui_container.web.caller_middleware import SESSION_HEADER
from tests.behaviour.over_grpc import ClientCall
from tests.behaviour.server import serving
from tests.engine.doubles import make_service


@dataclass
class RozSession:
    call: ClientCall[roz.SessionRequest, roz.SessionResponse]

    async def send(self, **request: object) -> None:
        """Send one request. The next read tells if the server has ended the call meanwhile."""
        with contextlib.suppress(StreamTerminatedError):
            await self.call.send(roz.SessionRequest(**request))  # type: ignore[arg-type] # one field of the oneof

    async def say(self, text: str, **fields: object) -> None:
        await self.send(user_message=roz.UserMessage(content=text, **fields))  # type: ignore[arg-type] # its fields

    async def until(self, kind: str) -> Any:
        """Return the next response of this kind. Raises ``GRPCError`` for a call that fails."""
        while (response := await self.call.receive()) is not None:
            if response.WhichOneof("response") == kind:
                return getattr(response, kind)
        raise AssertionError(f"the call has ended without {kind}")

    async def answer(self) -> str:
        """Read to the end of the turn. Returns its text."""
        text = ""
        while (response := await self.call.receive()) is not None:
            text += response.text_delta.content
            if response.WhichOneof("response") == "turn_complete":
                return text
        raise AssertionError("the call has ended inside a turn")


@dataclass
class GrpcCaller:
    channel: Channel
    headers: dict[str, str]
    closing: AsyncExitStack

    def new_session(self) -> RozSession:
        method = StreamStreamMethod(
            self.channel, "/roz.v1.AgentService/StreamSession", roz.SessionRequest, roz.SessionResponse
        )
        call = ClientCall(method, self.headers)
        self.closing.push_async_callback(call.close)
        return RozSession(call)

    async def begin_session(self, **start: object) -> RozSession:
        session = self.new_session()
        await session.send(start=roz.StartSession(**start))  # type: ignore[arg-type] # the fields of a start
        await session.until("session_started")
        return session

    async def start_run(self, prompt: str, thread: str = "") -> ClientCall[kontekst.RunCommand, kontekst.RunEvent]:
        method = StreamStreamMethod(self.channel, "/kontekst.AgentService/Run", kontekst.RunCommand, kontekst.RunEvent)
        call = ClientCall(method, self.headers)
        self.closing.push_async_callback(call.close)
        start = kontekst.StartRunCommand(prompt=prompt, session_id=thread)
        with contextlib.suppress(StreamTerminatedError):
            await call.send(kontekst.RunCommand(start=start))
        return call

    async def run(self, prompt: str, thread: str = "") -> ClientCall[kontekst.RunCommand, kontekst.RunEvent]:
        """Begin a run of kontekst, and read its first event."""
        call = await self.start_run(prompt, thread)
        assert await call.receive() is not None
        return call


def connect_caller(port: int, name: str, closing: AsyncExitStack) -> GrpcCaller:
    channel = Channel("127.0.0.1", port)
    closing.callback(channel.close)
    return GrpcCaller(channel, {SESSION_HEADER: name}, closing)


async def is_served(caller: GrpcCaller) -> bool:
    """A session of a caller that asks for little begins, and gets an answer."""
    session = await caller.begin_session()
    await session.say("hello")
    await session.until("text_delta")
    await session.until("turn_complete")
    return True


@asynccontextmanager
async def serving_caller(agent: object, **settings: object) -> AsyncIterator[GrpcCaller]:
    """Serve an agent to a caller that a gateway names."""
    chosen = Settings.model_validate({"limit_by": "session", **settings})
    async with serving(build_app(chosen, make_service(agent, chosen))) as url, AsyncExitStack() as closing:
        yield connect_caller(int(url.rpartition(":")[2]), "somebody", closing)
