"""AgentCore Memory on a real socket, in the test's own event loop: it keeps events and checks requests.

Since it shares the loop with the store, a store that blocked the loop would never be answered. Events come newest
first, and those of one second in no order, as the real service gives them.
"""

import asyncio
import hashlib
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.raw_server import raw_server
from tests.secret_search import search
from tests.stores.agentcore.rules import OperationCall, broken_rules, call_of

MAX_BYTES = 10_000_000
MISSING = (404, "ResourceNotFoundException")
Address = tuple[str, str]


@dataclass
class Fault:
    """Failure of the service.

    ``status`` and ``code``: its refusal. ``after``: it does what it was asked, and hangs up. ``hold``: it does not
    answer before ``release``. ``only``: the operation that it is for. ``passes``: how many of those succeed before.
    """

    status: int = 500
    code: str = "ServiceException"
    only: str | None = None
    passes: int = 0
    after: bool = False
    hold: bool = False
    held: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)


THROTTLED = Fault(429, "ThrottledException")


@dataclass
class Memory:
    """The running service. ``broken`` is what its model does not allow, ``down`` a fault of all requests."""

    url: str = ""
    calls: list[OperationCall] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    down: Fault | None = None
    events: dict[Address, dict[str, dict[str, Any]]] = field(default_factory=dict)
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)

    def request_counts(self) -> Counter[str]:
        return Counter(call.operation for call in self.calls)

    def requested_events(self) -> list[dict[str, Any]]:
        return [call.params for call in self.calls if call.operation == "CreateEvent"]

    def stored_events(self) -> list[dict[str, Any]]:
        return [event for events in self.events.values() for event in events.values()]

    async def answer(self, method: str, path: str, body: bytes) -> tuple[int, Mapping[str, Any] | str] | None:
        call = call_of(method, path, body)
        self.calls.append(call)
        self.broken += broken_rules(call)
        fault = self._fault(call.operation)
        if fault is None:
            return self._done(call, len(body))
        if fault.hold:
            fault.held.set()
            await fault.release.wait()
        if fault.hold or fault.after:
            self._done(call, len(body))
            return None
        return fault.status, fault.code

    def _fault(self, operation: str) -> Fault | None:
        if self.down is not None:
            return self.down
        if not self.faults or self.faults[0].only not in (None, operation):
            return None
        if self.faults[0].passes:
            self.faults[0].passes -= 1
            return None
        return self.faults.popleft()

    def _done(self, call: OperationCall, size: int) -> tuple[int, Mapping[str, Any] | str]:
        params = call.params
        if size > MAX_BYTES:
            return 413, "PayloadTooLarge"
        if call.operation == "CreateEvent":
            return 201, {"event": self._create(params)}
        if call.operation == "ListSessions":
            return 200, self._sessions(params)
        address = (params["actorId"], params["sessionId"])
        if call.operation == "ListEvents":
            return 200, self._page(address, params)
        found = self.events.get(address, {}).pop(params["eventId"], None)
        return (200, {"eventId": params["eventId"]}) if found else MISSING

    def _create(self, params: Mapping[str, Any]) -> dict[str, Any]:
        token = params["clientToken"]
        if token not in self.tokens:
            name = hashlib.sha256(token.encode()).hexdigest()[:8]
            kept = {key: value for key, value in params.items() if key != "clientToken"}
            search(str(kept), "AgentCore Memory")
            event = {**kept, "eventId": f"{int(params['eventTimestamp']) * 1000:016d}#{name}"}
            self.tokens[token] = event
            self.events.setdefault((params["actorId"], params["sessionId"]), {})[event["eventId"]] = event
        return self.tokens[token]

    def _page(self, address: Address, params: Mapping[str, Any]) -> dict[str, Any]:
        newest = [event for _, event in sorted(self.events.get(address, {}).items(), reverse=True)]
        start, limit = int(params.get("nextToken", 0)), params.get("maxResults", 20)
        shown = newest[start : start + limit]
        if not params.get("includePayloads", True):
            shown = [{key: value for key, value in event.items() if key != "payload"} for event in shown]
        more = {"nextToken": str(start + limit)} if start + limit < len(newest) else {}
        return {"events": shown, **more}

    def _sessions(self, params: Mapping[str, Any]) -> dict[str, Any]:
        found = [
            {"sessionId": session, "actorId": owner, "createdAt": 1.0}
            for (owner, session), events in self.events.items()
            if owner == params["actorId"] and events
        ]
        start, limit = int(params.get("nextToken", 0)), params.get("maxResults", 20)
        more = {"nextToken": str(start + limit)} if start + limit < len(found) else {}
        return {"sessionSummaries": found[start : start + limit], **more}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                method, path, body = await _request(reader)
                answer = await self.answer(method, path, body)
                if answer is None:
                    break
                writer.write(_response(*answer))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _request(reader: asyncio.StreamReader) -> tuple[str, str, bytes]:
    line, *headers = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = line.split()
    fields = dict(header.lower().split(": ", 1) for header in headers if header)
    assert fields["authorization"].startswith("aws4-hmac-sha256")
    return method, path, await reader.readexactly(int(fields.get("content-length", 0)))


def _response(status: int, answer: Mapping[str, Any] | str) -> bytes:
    refused = isinstance(answer, str)
    body = json.dumps({"message": "refused"} if refused else answer).encode()
    kind = f"x-amzn-ErrorType: {answer}\r\n" if refused else ""
    head = f"HTTP/1.1 {status} Answer\r\nContent-Length: {len(body)}\r\nContent-Type: application/json\r\n{kind}\r\n"
    return head.encode() + body


@asynccontextmanager
async def memory_service() -> AsyncIterator[Memory]:
    """Serve until the block ends; every request must have been one that the real service would take."""
    memory = Memory()
    async with raw_server(memory.serve) as port:
        memory.url = f"http://127.0.0.1:{port}"
        yield memory
    assert memory.broken == []
