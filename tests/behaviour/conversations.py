"""A conversation with the assistant from a client's side. Each run gets the messages, calls and answers so far."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from ag_ui.core import PROTOCOL_VERSION, Message
from pydantic import TypeAdapter

from agui_container.testing import EVENT
from agui_core.transcript import Transcript
from tests.behaviour.client import Client, RunStream
from tests.engine.doubles import Json
from tests.models.watched_model import WatchedModel, prompts_as_json

PAINT: Json = {"name": "paint", "description": "Paint a wall.", "parameters": {"type": "object"}}

THREADS = count(1)
MESSAGES = TypeAdapter(list[Message])


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
        """Add the messages of a run to the history, as a client of AG-UI does."""
        transcript = Transcript()
        for event in events:
            transcript.feed(EVENT.validate_python(event))
        self.messages += MESSAGES.dump_python(transcript.messages, mode="json", by_alias=True, exclude_none=True)


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
