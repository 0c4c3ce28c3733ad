"""Dialogues over gRPC: roz, of both generations, and kontekst. The client is grpclib's, in the test's event loop."""

import asyncio
import contextlib
import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from grpclib.client import Channel
from grpclib.exceptions import GRPCError

from agui_container.engine.engine import Engine
from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from tests.behaviour.dialogues import APPROVE, ASKS, CALLS, CANCELLED, ERROR, SUCCESS, Dialogue, PendingCall, Reply
from tests.engine.doubles import Json
from tests.protocols.grpc.client import RUN, GrpcCall, GrpcClient, RozSession, Run

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)


class GrpcDialogue(Dialogue, Generic[Out, In]):
    def __init__(self, service: Engine | None, thread: str, client: GrpcClient) -> None:
        super().__init__(service, thread)
        self._client = client
        self._call: GrpcCall[Out, In] | None = None
        self._reply = Reply()

    @property
    def call(self) -> GrpcCall[Out, In]:
        if self._call is None:
            self._call = self.open()
        return self._call

    @abstractmethod
    def open(self) -> GrpcCall[Out, In]:
        """Open the call, which begins with its first message."""

    async def first_text(self) -> None:
        while not any(self._reply.texts):
            assert await self._read()

    async def reply(self, asks: int = 1) -> Reply:
        while not self._reply.end and len(self._reply.asked) < asks:
            if not await self._read():
                break
        reply, self._reply = self._reply, Reply()
        if not reply.end:
            reply.end = self.kind_of(reply.asked)
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

    async def close(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            await call.close()

    @abstractmethod
    def take(self, message: In, reply: Reply) -> None:
        """Add the content of a message to a reply."""

    def kind_of(self, asked: Sequence[PendingCall]) -> str:
        """Return the end of a reply that leaves these calls waiting."""
        return ASKS if asked else ""


class RozDialogue(GrpcDialogue[roz.SessionRequest, roz.SessionResponse]):
    """A session of roz, of release 1.0 where it ``reads_events``. The first message begins it."""

    def __init__(self, service: Engine | None, thread: str, client: GrpcClient, *, reads_events: bool) -> None:
        super().__init__(service, thread, client)
        self._reads_events = reads_events
        self._requested: set[str] = set()
        self._approval = ""
        """Id of a call that waits for an approval, until the presence tells its name."""

    def open(self) -> RozSession:
        return self._client.new_session(self.thread)

    async def begin(self, said: str, *, tools: Sequence[Json] = ()) -> None:
        if self._call is None:
            await self.call.send(start=roz.StartSession(model=self.model))
            await self.skip_open_calls()
        schemas = [schema(tool) for tool in tools]
        await self.call.send(user_message=roz.UserMessage(content=said, tools=schemas))

    async def skip_open_calls(self) -> None:
        """Read what a session is told of calls that wait on its thread, before its first turn."""
        await self.call.send(ping=roz.Ping())
        while (message := await self.call.receive()) is not None and not message.HasField("pong"):
            pass

    def take(self, message: roz.SessionResponse, reply: Reply) -> None:
        if (message.WhichOneof("response") == "session_event") is not self._reads_events:
            return
        said = message.session_event if self._reads_events else message
        reply.texts.append(said.text_delta.content)  # empty, if it is something else
        reply.reasoning += said.thinking_delta.content
        if self._reads_events:
            self._take_1_0(message.session_event, reply)
        else:
            self._take_0_2(message, reply)

    def _take_0_2(self, message: roz.SessionResponse, reply: Reply) -> None:
        match message.WhichOneof("response"):
            case "error":
                reply.error, reply.code = message.error.message, message.error.code
            case "tool_request":
                self._requested.add(message.tool_request.tool_call_id)
                reply.asked.append(PendingCall(message.tool_request.tool_call_id, message.tool_request.tool_name))
            case "activity_update" if message.activity_update.state == "waiting_approval":
                self._approval = message.activity_update.detail
            case "presence_hint" if self._approval:
                name, _, _ = message.presence_hint.reason.partition(": ")
                reply.asked.append(PendingCall(self._approval, name))
                self._approval = ""
            case "turn_complete":
                reply.end = END[message.turn_complete.stop_reason]

    def _take_1_0(self, event: roz.SessionEventEnvelope, reply: Reply) -> None:
        match event.event_type:
            case "session_rejected":
                reply.error, reply.code = event.session_rejected.message, event.session_rejected.code
            case "tool_call_requested":
                self._requested.add(event.tool_call_requested.call_id)
                reply.asked.append(PendingCall(event.tool_call_requested.call_id, event.tool_call_requested.tool_name))
            case "approval_requested":
                reply.asked.append(PendingCall(event.approval_requested.approval_id, event.approval_requested.action))
            case "turn_finished":
                reply.end = END[event.turn_finished.stop_reason]

    def kind_of(self, asked: Sequence[PendingCall]) -> str:
        return CALLS if asked and asked[0].call_id in self._requested else super().kind_of(asked)

    async def decide(self, *decisions: str, reason: str = "") -> Reply:
        for asked, it in zip(self._asked, decisions, strict=True):
            answer = roz.PermissionDecision(tool_call_id=asked.call_id, approved=it == APPROVE)
            await self.call.send(permission_decision=answer)
        return await self.reply()

    async def give_result(self, result: str) -> Reply:
        (asked,) = self._asked
        given = roz.ToolResult(tool_call_id=asked.call_id, success=True, result=result)
        await self.call.send(tool_result=given)
        return await self.reply()

    async def approve_and_give(self, result: str) -> Reply:
        (paid,) = [asked.call_id for asked in self._asked if asked.call_id not in self._requested]
        approved = roz.PermissionDecision(tool_call_id=paid, approved=True)
        await self.call.send(permission_decision=approved)
        (call,) = self._requested
        given = roz.ToolResult(tool_call_id=call, success=True, result=result)
        await self.call.send(tool_result=given)
        return await self.reply()

    async def cancel(self) -> None:
        await self.call.send(cancel_turn=roz.CancelTurn())


END = {"end_turn": SUCCESS, "cancelled": CANCELLED, "error": ERROR}


def schema(tool: Json) -> roz.ToolSchema:
    made = roz.ToolSchema(name=tool["name"], description=tool["description"])
    ParseDict(tool["parameters"], made.parameters_schema)
    return made


class KontekstDialogue(GrpcDialogue[kontekst.RunCommand, kontekst.RunEvent]):
    def open(self) -> Run:
        return self._client.open(RUN, kontekst.RunCommand, kontekst.RunEvent)

    async def begin(self, said: str, *, tools: Sequence[Json] = ()) -> None:
        assert not tools, "kontekst has no tools of the client"
        await self.close()
        start = kontekst.StartRunCommand(prompt=said, session_id=self.thread)
        await self.call.send(start=start)

    def take(self, message: kontekst.RunEvent, reply: Reply) -> None:
        match kind := message.WhichOneof("event"):
            case "token":
                reply.texts.append(message.token.text)
            case "reasoning":
                reply.reasoning += message.reasoning.text
            case "tools_proposed":
                calls = message.tools_proposed.calls
                reply.asked += [PendingCall(call.call_id, call.name, json.loads(call.arguments_json)) for call in calls]
            case "failed":
                reply.end, reply.error = ERROR, message.failed.error
            case "completed" | "cancelled":
                reply.end = SUCCESS if kind == "completed" else CANCELLED

    async def decide(self, *decisions: str, reason: str = "") -> Reply:
        for asked, it in zip(self._asked, decisions, strict=True):
            approve = kontekst.ApproveToolCommand(call_id=asked.call_id)
            deny = kontekst.DenyToolCommand(call_id=asked.call_id, reason=reason)
            command = {"approve_tool": approve} if it == APPROVE else {"deny_tool": deny}
            await self.call.send(**command)
        return await self.reply()

    async def give_result(self, result: str) -> Reply:
        raise NotImplementedError("kontekst has no tools of the client")

    async def approve_and_give(self, result: str) -> Reply:
        raise NotImplementedError("kontekst has no tools of the client")

    async def cancel(self) -> None:
        await self.call.send(cancel=kontekst.CancelRunCommand())


# --- each protocol ----------------------------------------------------------------------------------------------------

GRPC_PROTOCOLS = ("roz-0.2", "roz-1.0", "kontekst")


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
