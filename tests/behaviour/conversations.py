"""A conversation with the assistant from a client's side. Each run gets the messages, calls and answers so far."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from ag_ui.core import PROTOCOL_VERSION

from tests.behaviour.client import Client, RunStream
from tests.engine.doubles import Json
from tests.models.watched_model import WatchedModel, prompts_as_json

PAINT: Json = {"name": "paint", "description": "Paint a wall.", "parameters": {"type": "object"}}

THREADS = count(1)


@dataclass
class ClientThread:
    """One thread of the assistant on ``model``. ``messages`` is the history of the client, ``tools`` are its tools."""

    client: Client
    model: WatchedModel = field(default_factory=WatchedModel)
    id: str = field(default_factory=lambda: f"thread-{next(THREADS)}")
    messages: list[Json] = field(default_factory=list)
    tools: list[Json] = field(default_factory=list)
    runs: int = 0

    def body(self, said: str | None = None, **fields: Any) -> Json:  # noqa: ANN401 - as in JSON
        self.runs += 1
        if said is not None:
            self.messages.append({"id": f"user-{self.runs}", "role": "user", "content": said})
        ids = {"threadId": self.id, "runId": f"{self.id}-run-{self.runs}"}
        return {**ids, "protocolVersion": PROTOCOL_VERSION, "messages": self.messages, "tools": self.tools, **fields}

    def prompts(self) -> list[Json]:
        return prompts_as_json(self.model.prompts)

    async def start(self, said: str) -> RunStream:
        return await self.client.start(self.body(said))

    async def say(self, said: str | None = None, **fields: Any) -> list[Json]:  # noqa: ANN401 - as in JSON
        """Send a run, read it to its end, and keep its messages."""
        events = await self.client.run(self.body(said, **fields))
        self.keep(events)
        return events

    async def resume(self, *answers: Json) -> list[Json]:
        return await self.say(resume=list(answers))

    def result(self, call: str, content: str) -> None:
        self.messages.append({"id": f"result-{call}", "role": "tool", "toolCallId": call, "content": content})

    def keep(self, events: Sequence[Json]) -> None:
        for event in events:
            match event["type"]:
                case "REASONING_MESSAGE_START" | "TEXT_MESSAGE_START":
                    self._message(event["messageId"], event["role"], event)
                case "REASONING_MESSAGE_CONTENT" | "TEXT_MESSAGE_CONTENT":
                    self._grow(event["messageId"], "content", event["delta"])
                case "REASONING_ENCRYPTED_VALUE":
                    self._grow(event["entityId"], "encryptedValue", event["encryptedValue"])
                case "TOOL_CALL_START":
                    function = {"name": event["toolCallName"], "arguments": ""}
                    call = {"id": event["toolCallId"], "type": "function", "function": function}
                    message = self._message(event["parentMessageId"], "assistant", event)
                    message.setdefault("toolCalls", []).append(call)
                case "TOOL_CALL_ARGS":
                    self._call(event["toolCallId"])["function"]["arguments"] += event["delta"]
                case "TOOL_CALL_RESULT":
                    named = {"id": event["messageId"], "role": "tool", "toolCallId": event["toolCallId"]}
                    kept: Json = {
                        name: event[name] for name in ("subagentRunId", "content", "metadata") if name in event
                    }
                    self.messages.append({**named, **kept})

    def _message(self, key: str, role: str, event: Json) -> Json:
        found = [message for message in self.messages if message["id"] == key]
        if not found:
            self.messages.append({"id": key, "role": role, **owner(event)})
        return found[0] if found else self.messages[-1]

    def _grow(self, key: str, name: str, piece: str) -> None:
        message = next(message for message in self.messages if message["id"] == key)
        message[name] = message.get(name, "") + piece

    def _call(self, key: str) -> Json:
        calls: list[Json] = [call for message in self.messages for call in message.get("toolCalls", ())]
        return next(call for call in calls if call["id"] == key)


def owner(event: Json) -> Json:
    return {name: event[name] for name in ("subagentRunId",) if name in event}


def results(events: Sequence[Json]) -> list[str]:
    return [event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT"]


def calls(events: Sequence[Json]) -> dict[str, str]:
    return {event["toolCallName"]: event["toolCallId"] for event in events if event["type"] == "TOOL_CALL_START"}


def interrupts(events: Sequence[Json]) -> list[Json]:
    found: list[Json] = events[-1].get("outcome", {}).get("interrupts", [])
    return found


def answer(interrupt: Json, **payload: object) -> Json:
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}


def cancelled_answer(interrupt: Json) -> Json:
    return {"interruptId": interrupt["id"], "status": "cancelled"}
