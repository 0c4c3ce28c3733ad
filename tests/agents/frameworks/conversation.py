"""A client's side of one thread: messages to an agent of a live server, and the events of its last run."""

import json
import uuid
from typing import Any

import httpx

from tests.server.sockets.process import ServerProcess
from tests.sse import events_of

Json = dict[str, Any]

PICK: Json = {"name": "pick", "description": "The client's.", "parameters": {"type": "object", "properties": {}}}


class Conversation:
    def __init__(self, server: ServerProcess, agent: str, session: str | None = None, thread: str = "") -> None:
        self.thread = thread or str(uuid.uuid4())
        self._url = f"http://127.0.0.1:{server.port}/agents/{agent}/invocations"
        self._headers = {"x-amzn-bedrock-agentcore-runtime-session-id": session} if session else {}
        self.events: list[Json] = []

    def body(self, *said: Json, **fields: object) -> Json:
        messages = [{"id": str(uuid.uuid4()), **message} for message in said]
        ids = {"threadId": self.thread, "runId": str(uuid.uuid4()), "protocolVersion": "1.0"}
        return {
            **ids,
            "messages": messages,
            "tools": [PICK],
            "context": [],
            "state": {},
            "forwardedProps": {},
            **fields,
        }

    def post(self, body: Json) -> "Conversation":
        answer = httpx.post(self._url, json=body, headers=self._headers, timeout=120, trust_env=False)
        self.events = events_of(answer.content)
        return self

    def say(self, text: str) -> "Conversation":
        return self.post(self.body({"role": "user", "content": text}))

    def answer(self, payload: Json) -> "Conversation":
        resume = [{"interruptId": each["id"], "status": "resolved", "payload": payload} for each in self.interrupts]
        return self.post(self.body(resume=resume))

    def cancel_once_it_speaks(self, text: str) -> None:
        self.events = []
        body = self.body({"role": "user", "content": text})
        with httpx.stream("POST", self._url, json=body, headers=self._headers, timeout=120, trust_env=False) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    self.events.append(json.loads(line.removeprefix("data: ")))
                    if self.events[-1]["type"] == "TEXT_MESSAGE_CONTENT":
                        httpx.post(
                            self._url, json={"command": {"type": "cancel", "threadId": self.thread}}, timeout=120
                        )

    def forget(self) -> Json:
        url = self._url.partition("/agents/")[0] + f"/threads/{self.thread}"
        return dict(httpx.delete(url, headers=self._headers, trust_env=False, timeout=120).json())

    @property
    def end(self) -> Json:
        return self.events[-1]

    @property
    def interrupts(self) -> list[Json]:
        return list(self.end.get("outcome", {}).get("interrupts", []))

    @property
    def text(self) -> str:
        return "".join(event["delta"] for event in self.events if event["type"] == "TEXT_MESSAGE_CONTENT")

    def of_type(self, kind: str) -> list[Json]:
        return [event for event in self.events if event["type"] == kind]
