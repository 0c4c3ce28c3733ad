"""A managed Harness of AgentCore as the upstream of an agent: InvokeHarness, whose stream is like that of Converse.

Rules:

- A thread of the client is a session of the harness, which keeps the conversation. So a run sends the messages behind
  the assistant's last one.
- Tools of the client are inline functions. A turn that calls one ends, and the next request has the result.
- Statuses and texts of the service stay in the log. Closing the stream closes the connection.

Source: the service model of botocore 1.44.5; ``botocore.eventstream`` decodes the frames.
"""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import httpx
from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    Message,
    RunAgentInput,
    TokenUsage,
    ToolMessage,
    UserMessage,
)
from botocore.eventstream import EventStreamBuffer  # type: ignore[import-untyped]

from agui_client.agentcore import SESSION_HEADER
from agui_container.agents.answer_events import AnswerEvents
from agui_container.agents.upstream import UpstreamOptions
from agui_container.agents.upstream.events import UpstreamFault
from agui_container.agents.upstream.http import CONNECT_SECONDS, failures_as_agent_errors, refuse_failure
from agui_container.ports import RunContext
from agui_container.ports.tool import for_models
from agui_core.content import text_of
from agui_core.transcript import has_failed

Json = dict[str, Any]


class HarnessUpstream:
    """Implements ``Upstream`` with the harness at a URL of InvokeHarness."""

    def __init__(self, url: str, options: UpstreamOptions, auth: httpx.Auth) -> None:
        self._url = url
        self._auth = auth
        self._client: httpx.AsyncClient | None = None
        options.closers.append(self.aclose)

    async def answer(self, request: RunAgentInput, ctx: RunContext) -> AsyncGenerator[BaseEvent, None]:
        translation = Translation(ctx)
        with failures_as_agent_errors(self._url, ctx):
            async with aclosing(self._frames(request, ctx)) as frames:
                async for kind, payload in frames:
                    for event in translation.read(kind, payload):
                        yield event

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _frames(self, request: RunAgentInput, ctx: RunContext) -> AsyncGenerator[tuple[str, Json], None]:
        """Yield the kinds and payloads of the frames. Raises ``UpstreamFault`` or ``httpx.HTTPError``."""
        if self._client is None:
            self._client = httpx.AsyncClient(auth=self._auth, timeout=httpx.Timeout(CONNECT_SECONDS, read=None))
        headers = {SESSION_HEADER: ctx.thread_key, "content-type": "application/json"}
        content = json.dumps(body_of(request)).encode()
        buffer = EventStreamBuffer()
        async with self._client.stream("POST", self._url, content=content, headers=headers) as response:
            await refuse_failure(response)
            async for part in response.aiter_bytes():
                buffer.add_data(part)
                for frame in buffer:
                    yield kind_of(frame.headers), json.loads(frame.payload or b"{}")


def kind_of(headers: Mapping[str, str]) -> str:
    """Raise ``UpstreamFault`` for a frame of the type error, which has no payload."""
    if headers.get(":message-type") == "error":
        raise UpstreamFault(f"{headers.get(':error-code')}: {headers.get(':error-message')}")
    return headers.get(":event-type") or headers.get(":exception-type") or ""


# --- request ----------------------------------------------------------------------------------------------------------


def body_of(request: RunAgentInput) -> Json:
    tools = [
        {
            "type": "inline_function",
            "name": tool.name,
            "config": {
                "inlineFunction": {
                    "description": tool.description or tool.name,
                    "inputSchema": tool.parameters or {"type": "object", "properties": {}},
                }
            },
        }
        for tool in request.tools or ()
    ]
    return {"messages": list(new_messages(request.messages)), **({"tools": tools} if tools else {})}


def new_messages(messages: Sequence[Message]) -> Iterator[Json]:
    """Yield the messages behind the assistant's last one as messages of the user. A harness takes no media."""
    start = max((at + 1 for at, each in enumerate(messages) if isinstance(each, AssistantMessage)), default=0)
    blocks: list[Json] = []
    for message in messages[start:]:
        if isinstance(message, ToolMessage):
            content = text_blocks(text_of(for_models(message.content)))
            status = "error" if has_failed(message) else "success"
            blocks.append({"toolResult": {"toolUseId": message.tool_call_id, "content": content, "status": status}})
        elif isinstance(message, UserMessage):
            blocks.extend(text_blocks(text_of(message.content)))
    if blocks:
        yield {"role": "user", "content": blocks}


def text_blocks(text: str) -> list[Json]:
    """Return no block for an empty text, which the service refuses."""
    return [{"text": text}] if text else []


# --- answer -----------------------------------------------------------------------------------------------------------

FAULTS = frozenset({"internalServerException", "validationException", "runtimeClientError"})


class Translation:
    """Events of one answer. Results of tools that the harness runs come in messages of their own."""

    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx
        self._answer = AnswerEvents(ctx)
        self._calls: dict[int, str] = {}
        self._results: dict[int, list[str]] = {}

    def read(self, kind: str, payload: Json) -> Sequence[BaseEvent]:
        """Raise ``UpstreamFault`` for an exception of the service."""
        if kind in FAULTS:
            raise UpstreamFault(f"{kind}: {payload.get('message')}")
        index = int(payload.get("contentBlockIndex", 0))
        match kind:
            case "messageStart":
                self._answer.begin_message()
                self._calls, self._results = {}, {}
            case "contentBlockStart":
                return self._start(index, payload.get("start") or {})
            case "contentBlockDelta":
                return self._delta(index, payload.get("delta") or {})
            case "contentBlockStop" if index in self._results and index in self._calls:
                return [self._answer.result(self._calls.pop(index), "\n".join(self._results.pop(index)))]
            case "metadata":
                self._count(payload.get("usage") or {})
        return []

    def _start(self, index: int, start: Json) -> Sequence[BaseEvent]:
        if use := start.get("toolUse"):
            self._calls[index] = use["toolUseId"]
            return [self._answer.call(use["toolUseId"], None, use["name"])]
        if result := start.get("toolResult"):
            self._calls[index] = result["toolUseId"]
            self._results[index] = []
        return []

    def _delta(self, index: int, delta: Json) -> Sequence[BaseEvent]:
        if delta.get("text"):
            return [self._answer.text(delta["text"])]
        if thought := (delta.get("reasoningContent") or {}).get("text"):
            return [self._answer.reasoning(thought)]
        if "toolUse" in delta:
            return [self._answer.call(self._calls[index], delta["toolUse"].get("input", ""))]
        for part in delta.get("toolResult") or ():
            self._results[index].append(part["text"] if "text" in part else json.dumps(part.get("json")))
        return []

    def _count(self, usage: Json) -> None:
        used = TokenUsage(
            provider="aws",
            input_tokens=usage.get("inputTokens"),
            output_tokens=usage.get("outputTokens"),
            cached_input_tokens=usage.get("cacheReadInputTokens"),
            cache_write_input_tokens=usage.get("cacheWriteInputTokens"),
        )
        self._ctx.usage.append(used)
