"""The client of gRPC of all tests, in the event loop of the test: calls, sessions of roz, runs of kontekst."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from grpclib.client import Channel, StreamStreamMethod, UnaryUnaryMethod
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError
from h2.exceptions import StreamClosedError

from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from agui_container.protocols.roz.session import THREAD_METADATA
from tests.engine.doubles import WAIT, Json, eventually

SESSION = "/roz.v1.AgentService/StreamSession"
TEAM = "/roz.v1.AgentService/WatchTeam"
RUN = "/kontekst.AgentService/Run"

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)
C = TypeVar("C", bound="GrpcCall[Any, Any]")


class GrpcCall(Generic[Out, In]):
    """A call with messages in both directions. ``seen`` are those that it has received.

    The kind of a message is the name of the field that is set in it.
    """

    def __init__(
        self,
        channel: Channel,
        path: str,
        sent: type[Out],
        received: type[In],
        metadata: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.seen: list[In] = []
        self._stack = AsyncExitStack()
        self._stream = StreamStreamMethod(channel, path, sent, received).open(metadata=dict(metadata))
        self._sent = sent
        self._is_open = False

    async def send(self, **fields: object) -> None:
        """Send a message. The first one begins the call. The next read tells if the server has ended it meanwhile."""
        await self.send_message(self._sent(**fields))

    async def send_message(self, message: Out) -> None:
        with contextlib.suppress(StreamTerminatedError):
            if not self._is_open:
                await self._stack.enter_async_context(self._stream)
                self._is_open = True
            await self._stream.send_message(message)

    async def end(self) -> None:
        await self._stream.end()

    async def receive(self) -> In | None:
        """Return the next message, or None at the end. Raises ``GRPCError`` for a call that failed."""
        async with asyncio.timeout(WAIT):
            try:
                message = await self._stream.recv_message()
                if message is None:
                    self._is_open = False
                    with contextlib.suppress(ProtocolError):  # the client has ended it before
                        await self._stream.end()
                    await self._stream.recv_trailing_metadata()
            except StreamTerminatedError:  # a server that has answered resets a stream on which the client still sends
                self._stream._maybe_raise()  # noqa: SLF001 - grpclib has the status, and no public call that raises it
                raise
        if message is not None:
            self.seen.append(message)
        return message

    async def next(self) -> tuple[str, Any]:
        """Return the kind and the content of the next message."""
        message = await self.receive()
        assert message is not None, f"the call has ended after {self.kinds}"
        return self.kind(message), self.content(message)

    async def until(self, wanted: str, count: int = 1) -> Any:
        """Return the content of the next message of a kind, or of the last one of so many."""
        while True:
            kind, content = await self.next()
            count -= kind == wanted
            if not count:
                return content

    async def rest(self) -> list[str]:
        """Read to the end. Returns the kinds of the messages."""
        return [self.kind(message) async for message in self._messages()]

    async def _messages(self) -> AsyncIterator[In]:
        while (message := await self.receive()) is not None:
            yield message

    def kind(self, message: In) -> str:
        return str(message.WhichOneof(message.DESCRIPTOR.oneofs[0].name))

    def content(self, message: In) -> Any:
        return getattr(message, self.kind(message))

    @property
    def kinds(self) -> list[str]:
        """Kinds of the messages in order, without adjacent repetitions."""
        found: list[str] = []
        for message in self.seen:
            if found[-1:] != [kind := self.kind(message)]:
                found.append(kind)
        return found

    def all(self, wanted: str) -> list[Any]:
        return [self.content(message) for message in self.seen if self.kind(message) == wanted]

    @property
    def code(self) -> str | None:
        raw = self._stream._stream  # noqa: SLF001 - grpclib keeps the trailers of a reset stream nowhere else
        return dict(raw.trailers or raw.headers or ()).get("agui-code")

    async def close(self) -> None:
        is_open, self._is_open = self._is_open, False
        if is_open:
            with contextlib.suppress(StreamTerminatedError, StreamClosedError):
                await self._stream.cancel()
        with contextlib.suppress(GRPCError, ProtocolError, StreamTerminatedError):
            await self._stack.aclose()


class RozSession(GrpcCall[roz.SessionRequest, roz.SessionResponse]):
    """A session of roz. The kinds of release 1.0 begin with ``1.0``, those of release 0.2 do not."""

    def kind(self, message: roz.SessionResponse) -> str:
        kind = super().kind(message)
        return f"1.0 {message.session_event.WhichOneof('typed_event')}" if kind == "session_event" else kind

    def content(self, message: roz.SessionResponse) -> Any:
        kind = self.kind(message)
        return getattr(message.session_event if kind.startswith("1.0 ") else message, kind.removeprefix("1.0 "))

    async def begin(self, **start: object) -> None:
        await self.send(start=roz.StartSession(**start))  # type: ignore[arg-type] # the fields of a start
        await self.until("1.0 session_started")

    async def say(self, text: str, **fields: object) -> None:
        await self.send(user_message=roz.UserMessage(content=text, **fields))  # type: ignore[arg-type] # its fields

    async def ask(self, text: str, **fields: object) -> str:
        """Send a message and read to the end of its turn. Returns the text of the turn."""
        await self.say(text, **fields)
        return await self.answer()

    async def answer(self) -> str:
        before = len(self.seen)
        await self.turn()
        return "".join(message.text_delta.content for message in self.seen[before:])

    async def turn(self) -> roz.TurnComplete:
        """Read to the end of a turn, and what is said behind it."""
        complete: roz.TurnComplete = await self.until("turn_complete")
        while (await self.until("1.0 activity_changed")).state != "idle":
            pass
        return complete

    async def decide(self, approval: str, *, approved: bool) -> None:
        await self.send(permission_decision=roz.PermissionDecision(tool_call_id=approval, approved=approved))

    async def give(self, call_id: str, result: str) -> None:
        await self.send(tool_result=roz.ToolResult(tool_call_id=call_id, success=True, result=result))

    @property
    def thread(self) -> str:
        return str(self.all("session_started")[0].session_id)

    @property
    def events(self) -> Sequence[str]:
        """Kinds of the events of release 1.0, without those that repeat what other events say."""
        kinds = (self.kind(message) for message in self.seen)
        new = [kind.removeprefix("1.0 ") for kind in kinds if kind.startswith("1.0 ")]
        return [kind for kind in new if kind not in {"activity_changed", "presence_hinted"}]

    def events_since(self, kind: str) -> Sequence[str]:
        """Kinds of the events after the last one of a kind."""
        return self.events[len(self.events) - self.events[::-1].index(kind) :]

    @property
    def outcomes(self) -> list[Json]:
        return [MessageToDict(event.outcome) for event in self.all("1.0 approval_resolved")]

    @property
    def text(self) -> str:
        return "".join(delta.content for delta in self.all("text_delta"))


Run = GrpcCall[kontekst.RunCommand, kontekst.RunEvent]
Team = GrpcCall[roz.WatchTeamRequest, roz.TeamEvent]


class GrpcClient:
    """A client on one connection. Its calls end with ``closing``."""

    def __init__(
        self, channel: Channel, closing: AsyncExitStack, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        closing.callback(channel.close)
        self.channel, self.closing, self.headers = channel, closing, headers

    def open(self, path: str, sent: type[Out], received: type[In]) -> GrpcCall[Out, In]:
        return self._closed_at_end(GrpcCall(self.channel, path, sent, received, self.headers))

    def new_session(self, thread: str = "") -> RozSession:
        """Open a session that has not begun, on a thread or on a new one."""
        headers = {**self.headers, **({THREAD_METADATA: thread} if thread else {})}
        return self._closed_at_end(RozSession(self.channel, SESSION, roz.SessionRequest, roz.SessionResponse, headers))

    async def start_session(self, thread: str = "", **start: object) -> RozSession:
        session = self.new_session(thread)
        await session.begin(**start)
        return session

    async def start_run(self, prompt: str = "", thread: str = "", **start: object) -> Run:
        run = self.open(RUN, kontekst.RunCommand, kontekst.RunEvent)
        command = kontekst.StartRunCommand(prompt=prompt, session_id=thread, **start)  # type: ignore[arg-type]
        await run.send(start=command)
        return run

    async def watch_team(self, task_id: str) -> Team:
        """Watch a run to its end, or a thread until the call is closed."""
        team = self.open(TEAM, roz.WatchTeamRequest, roz.TeamEvent)
        await team.send(task_id=task_id)
        await team.end()
        return team

    async def ask(self, path: str, request: Message, reply: type[In]) -> In:
        """Send the one message of a call. Returns the one reply."""
        return await UnaryUnaryMethod(self.channel, path, type(request), reply)(
            request, metadata=dict(self.headers), timeout=WAIT
        )

    def _closed_at_end(self, call: C) -> C:
        self.closing.push_async_callback(call.close)
        return call


@asynccontextmanager
async def client_of(
    port: int, headers: Mapping[str, str] = MappingProxyType({}), tls: ssl.SSLContext | None = None
) -> AsyncIterator[GrpcClient]:
    """A client of a server in another process."""
    channel = Channel("localhost" if tls else "127.0.0.1", port, ssl=tls)
    async with AsyncExitStack() as closing:
        yield GrpcClient(channel, closing, headers)
        if tls is None:
            return
        connection = (await channel.__connect__()).connection
        socket = connection._transport.get_extra_info("socket")  # noqa: SLF001 - grpclib has no way to wait for the end
    await eventually(lambda: socket.fileno() < 0)  # with TLS the channel only begins to close


def call_text(name: str, /, **arguments: object) -> str:
    return f"call {name} {json.dumps(arguments)}"


def schema(name: str, **fields: Any) -> roz.ToolSchema:
    """Return a tool of a client of roz."""
    made = roz.ToolSchema(name=name, description=f"The tool {name}.", **fields)
    ParseDict({"type": "object", "properties": {"x": {"type": "number"}}}, made.parameters_schema)
    return made
