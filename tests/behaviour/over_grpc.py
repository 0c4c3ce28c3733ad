"""One thread as a client of gRPC sees it: roz, of both generations, and kontekst. The client is in the test's loop.

A ``Dialogue`` has what these protocols can say alike, so that one test body runs over each.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message
from grpclib.client import Channel
from grpclib.exceptions import GRPCError

from agui_container.engine.engine import Engine
from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from tests.engine.doubles import eventually
from tests.protocols.grpc.client import RUN, GrpcCall, GrpcClient

SUCCESS, CANCELLED, ERROR = "success", "cancelled", "error"
GRPC_PROTOCOLS = ("roz-0.2", "roz-1.0", "kontekst")


@dataclass
class Reply:
    """The messages of the server since the client's last message. ``code`` is None where the protocol has none."""

    text: str = ""
    end: str = ""
    error: str = ""
    code: str | None = None
    asked: list[str] = field(default_factory=list)
    """Ids of the calls that wait for the client's decision. The reply ends with the first."""

    messages: list[object] = field(default_factory=list)

    @property
    def received(self) -> str:
        return "".join(map(str, self.messages))


class Dialogue(ABC):
    """A client of one thread. ``service`` is None where the server is another process."""

    def __init__(self, service: Engine | None, thread: str, client: GrpcClient) -> None:
        self.service = service
        self.thread = thread
        self._client = client
        self._call: GrpcCall[Any, Any] | None = None
        self._reply = Reply()
        self._asked: list[str] = []

    @property
    def call(self) -> GrpcCall[Any, Any]:
        if self._call is None:
            self._call = self.open()
        return self._call

    async def say(self, said: str) -> Reply:
        await self.begin(said)
        return await self.reply()

    async def first_text(self) -> None:
        while not self._reply.text:
            assert await self._read()

    async def reply(self) -> Reply:
        while not self._reply.end and not self._reply.asked and await self._read():
            pass
        reply, self._reply = self._reply, Reply()
        self._asked = reply.asked
        return reply

    async def _read(self) -> bool:
        """Read one message into the reply. Return False at the end of the call."""
        try:
            message = await self.call.receive()
        except GRPCError as error:
            self._reply.end, self._reply.error, self._reply.code = ERROR, error.message or "", self.call.code
            self._reply.messages.append(error)
            return False
        if message is None:
            return False
        self._reply.messages.append(message)
        self.take(message, self._reply)
        return True

    async def approve(self) -> Reply:
        """Approve the call that the last reply asks for. Returns the next reply."""
        (asked,) = self._asked
        await self.call.send(**self.approval(asked))
        return await self.reply()

    async def cancel(self) -> None:
        await self.call.send(**self.cancellation())

    async def leave(self) -> None:
        """Disconnect, and wait until the server has noticed."""
        before = self._readers()
        await self.close()
        await eventually(lambda: self._readers() < before)

    async def close(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            await call.close()

    def _readers(self) -> int:
        assert self.service is not None
        return sum(run.readers.local for run in self.service.registry.by_key.values())

    @abstractmethod
    def open(self) -> GrpcCall[Any, Any]:
        """Open the call, which begins with its first message."""

    @abstractmethod
    async def begin(self, said: str) -> None:
        """Send a message."""

    @abstractmethod
    def take(self, message: Any, reply: Reply) -> None:  # noqa: ANN401 - a message of the protocol
        """Add the content of a message to a reply."""

    @abstractmethod
    def approval(self, call_id: str) -> dict[str, Message]:
        """Return the fields of the message that approves a call."""

    @abstractmethod
    def cancellation(self) -> dict[str, Message]:
        """Return the fields of the message that cancels the active run."""


class RozDialogue(Dialogue):
    """A session of roz, of release 1.0 where it ``reads_events``. The first message begins it."""

    def __init__(self, service: Engine | None, thread: str, client: GrpcClient, *, reads_events: bool) -> None:
        super().__init__(service, thread, client)
        self._reads_events = reads_events

    def open(self) -> GrpcCall[Any, Any]:
        return self._client.new_session(self.thread)

    async def begin(self, said: str) -> None:
        if self._call is None:
            await self.call.send(start=roz.StartSession())
            await self.skip_open_calls()
        await self.call.send(user_message=roz.UserMessage(content=said))

    async def skip_open_calls(self) -> None:
        """Read what a session is told of calls that wait on its thread, before its first turn."""
        await self.call.send(ping=roz.Ping())
        while (message := await self.call.receive()) is not None and not message.HasField("pong"):
            pass

    def take(self, message: roz.SessionResponse, reply: Reply) -> None:
        is_event = message.WhichOneof("response") == "session_event"
        if is_event and self._reads_events:
            self._take_1_0(message.session_event, reply)
        elif not is_event and not self._reads_events:
            self._take_0_2(message, reply)

    def _take_0_2(self, message: roz.SessionResponse, reply: Reply) -> None:
        reply.text += message.text_delta.content  # empty, if it is something else
        match message.WhichOneof("response"):
            case "error":
                reply.error, reply.code = message.error.message, message.error.code
            case "activity_update" if message.activity_update.state == "waiting_approval":
                reply.asked.append(message.activity_update.detail)
            case "turn_complete":
                reply.end = END[message.turn_complete.stop_reason]

    def _take_1_0(self, event: roz.SessionEventEnvelope, reply: Reply) -> None:
        reply.text += event.text_delta.content
        match event.event_type:
            case "session_rejected":
                reply.error, reply.code = event.session_rejected.message, event.session_rejected.code
            case "approval_requested":
                reply.asked.append(event.approval_requested.approval_id)
            case "turn_finished":
                reply.end = END[event.turn_finished.stop_reason]

    def approval(self, call_id: str) -> dict[str, Message]:
        return {"permission_decision": roz.PermissionDecision(tool_call_id=call_id, approved=True)}

    def cancellation(self) -> dict[str, Message]:
        return {"cancel_turn": roz.CancelTurn()}


END = {"end_turn": SUCCESS, "cancelled": CANCELLED, "error": ERROR}


class KontekstDialogue(Dialogue):
    def open(self) -> GrpcCall[Any, Any]:
        return self._client.open(RUN, kontekst.RunCommand, kontekst.RunEvent)

    async def begin(self, said: str) -> None:
        await self.close()
        await self.call.send(start=kontekst.StartRunCommand(prompt=said, session_id=self.thread))

    def take(self, message: kontekst.RunEvent, reply: Reply) -> None:
        match kind := message.WhichOneof("event"):
            case "token":
                reply.text += message.token.text
            case "tools_proposed":
                reply.asked += [call.call_id for call in message.tools_proposed.calls]
            case "failed":
                reply.end, reply.error = ERROR, message.failed.error
            case "completed" | "cancelled":
                reply.end = SUCCESS if kind == "completed" else CANCELLED

    def approval(self, call_id: str) -> dict[str, Message]:
        return {"approve_tool": kontekst.ApproveToolCommand(call_id=call_id)}

    def cancellation(self) -> dict[str, Message]:
        return {"cancel": kontekst.CancelRunCommand()}


def dialogue_over(protocol: str, client: GrpcClient, thread: str, service: Engine | None = None) -> Dialogue:
    if protocol == "kontekst":
        return KontekstDialogue(service, thread, client)
    return RozDialogue(service, thread, client, reads_events=protocol == "roz-1.0")


def open_dialogue(protocol: str, port: int, thread: str, closing: contextlib.AsyncExitStack) -> Dialogue:
    """A client of a server in another process, on a connection of its own, which ends with ``closing``."""
    return dialogue_over(protocol, GrpcClient(Channel("127.0.0.1", port), closing), thread)


async def begin_dialogues(port: int, said: str, closing: contextlib.AsyncExitStack) -> list[Dialogue]:
    """Say the same over each protocol of gRPC, on the thread of its name, and wait for the first text of each reply."""
    dialogues = [open_dialogue(protocol, port, protocol, closing) for protocol in GRPC_PROTOCOLS]
    for dialogue in dialogues:
        await dialogue.begin(said)
    await asyncio.gather(*(dialogue.first_text() for dialogue in dialogues))
    return dialogues
