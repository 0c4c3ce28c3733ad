"""One thread as a client of any protocol sees it: messages of the user, and replies.

Each protocol has its own messages. A ``Dialogue`` has only what all of them can say, so that one test body runs over
each. What only AG-UI can say is tested with ``Client``.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from agui_container.engine.engine import Engine
from tests.behaviour.client import Client, Refused, RunStream, outcome, text
from tests.behaviour.conversations import answer
from tests.engine.doubles import Json, ask, eventually

NUMBERS = count(1)

SUCCESS, CANCELLED, ERROR, ASKS, CALLS = "success", "cancelled", "error", "asks", "calls"
"""Ends of a reply: three ends of a turn, a request for approval, and a call of a client tool."""

APPROVE, DENY = "approve", "deny"


@dataclass(frozen=True)
class PendingCall:
    """A call that waits for the client: for its decision, or for its result."""

    call_id: str
    name: str
    arguments: Json | None = None


@dataclass
class Reply:
    """The messages of the server since the client's last message. ``code`` is None where the protocol has none."""

    texts: list[str] = field(default_factory=list)
    reasoning: str = ""
    end: str = ""
    error: str = ""
    code: str | None = None
    asked: list[PendingCall] = field(default_factory=list)
    messages: list[object] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def received(self) -> str:
        return "".join(map(str, self.messages))


class Dialogue(ABC):
    """A client of one thread. ``service`` is None where the server is another process."""

    def __init__(self, service: Engine | None, thread: str) -> None:
        self.service = service
        self.thread = thread
        self.model = ""

    async def say(self, said: str, *, tools: Sequence[Json] = (), asks: int = 1) -> Reply:
        """Send a message and take the reply. ``asks`` is the number of calls that will wait for the client, if any."""
        await self.begin(said, tools=tools)
        return await self.reply(asks)

    @abstractmethod
    async def begin(self, said: str, *, tools: Sequence[Json] = ()) -> None:
        """Send a message."""

    @abstractmethod
    async def first_text(self) -> None:
        """Wait for the first text of the reply."""

    @abstractmethod
    async def reply(self, asks: int = 1) -> Reply:
        """Read the reply to its end."""

    @abstractmethod
    async def decide(self, *decisions: str, reason: str = "") -> Reply:
        """Answer the approvals of the last reply, in their order: APPROVE or DENY. Returns the next reply."""

    @abstractmethod
    async def give_result(self, result: str) -> Reply:
        """Send the result of the one call of a client tool. Returns the next reply."""

    @abstractmethod
    async def approve_and_give(self, result: str) -> Reply:
        """Approve the one call that asks, and then answer the one call of a client tool beside it."""

    @abstractmethod
    async def cancel(self) -> None:
        """Cancel the active run."""

    async def leave(self) -> None:
        """Disconnect, and wait until the server has noticed."""
        before = self._readers()
        await self.close()
        await eventually(lambda: self._readers() < before)

    @abstractmethod
    async def close(self) -> None:
        """Drop the connection, if there is one."""

    def _readers(self) -> int:
        assert self.service is not None
        return sum(run.readers.local for run in self.service.registry.by_key.values())


class AguiDialogue(Dialogue):
    def __init__(self, client: Client, thread: str) -> None:
        super().__init__(client.service, thread)
        self._client = client
        self._stream: RunStream | None = None
        self._refused: Refused | None = None
        self._events: list[Json] = []
        self._asked: list[Json] = []
        self._tools: Sequence[Json] = ()

    async def begin(self, said: str, *, tools: Sequence[Json] = ()) -> None:
        self._tools = tools
        message = {"id": f"user-{next(NUMBERS)}", "role": "user", "content": said}
        await self._run(messages=[message])

    async def _run(self, **fields: object) -> None:
        self._events, self._stream, self._refused = [], None, None
        body = ask(self.thread, f"run-{next(NUMBERS)}", tools=list(self._tools))
        if self.model:
            body["forwardedProps"] = {"model": self.model}
        try:
            self._stream = await self._client.start({**body, **fields})
        except Refused as refused:
            self._refused = refused

    async def _next(self) -> Json | None:
        event = await self._stream.next() if self._stream is not None else None
        if event is not None:
            self._events.append(event)
        return event

    async def first_text(self) -> None:
        while not text(self._events):
            assert await self._next() is not None

    async def reply(self, asks: int = 1) -> Reply:
        if self._refused is not None:
            code, message = self._refused.code, self._refused.message
            return Reply(end=ERROR, error=message, code=code, messages=[f"{code} {message}"])
        while await self._next() is not None:
            pass
        last = self._events[-1]
        reply = Reply(
            [text(self._events)],
            reasoning="".join(e["delta"] for e in self._events if e["type"] == "REASONING_MESSAGE_CONTENT"),
            end=ERROR if last["type"] == "RUN_ERROR" else outcome(self._events),
            error=last.get("message", ""),
            code=last.get("code"),
            messages=[json.dumps(self._events)],
        )
        self._ask(reply, last.get("outcome", {}))
        return reply

    def _ask(self, reply: Reply, ended: Json) -> None:
        if reply.end == "interrupt":
            reply.end, self._asked = ASKS, ended["interrupts"]
            for interrupt in self._asked:
                facts = interrupt["metadata"]
                asked = PendingCall(interrupt["toolCallId"], facts["toolName"], json.loads(facts["arguments"]))
                reply.asked.append(asked)
        elif ended.get("pendingToolCallIds"):
            reply.end = CALLS
            reply.asked = [
                PendingCall(event["toolCallId"], event["toolCallName"])
                for event in self._events
                if event["type"] == "TOOL_CALL_START" and event["toolCallId"] in ended["pendingToolCallIds"]
            ]

    async def decide(self, *decisions: str, reason: str = "") -> Reply:
        said = {"reason": reason} if reason else {}
        answers = [
            answer(interrupt, approved=it == APPROVE, **(said if it == DENY else {}))
            for interrupt, it in zip(self._asked, decisions, strict=True)
        ]
        await self._run(messages=[], resume=answers)
        return await self.reply()

    async def give_result(self, result: str) -> Reply:
        (call,) = self._events[-1]["outcome"]["pendingToolCallIds"]
        message = {"id": f"result-{call}", "role": "tool", "toolCallId": call, "content": result}
        await self._run(messages=[message])
        return await self.reply()

    async def approve_and_give(self, result: str) -> Reply:
        names = {tool["name"] for tool in self._tools}
        (call,) = [it["toolCallId"] for it in self._events if it.get("toolCallName") in names]
        approved = await self.decide(APPROVE)
        assert (approved.end, approved.text) == (SUCCESS, "")
        assert self._events[-1]["outcome"] == {"type": "success"}, "it names only the calls of its own run"
        await self._run(messages=[{"id": f"result-{call}", "role": "tool", "toolCallId": call, "content": result}])
        return await self.reply()

    async def cancel(self) -> None:
        await self._client.cancel(self.thread)

    async def close(self) -> None:
        if self._stream is not None:
            await self._stream.close()
