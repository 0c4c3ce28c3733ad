"""The chat completions wire around any model: a request becomes a prompt, deltas become chunks.

It refuses what strict providers refuse, so that a conversation that passes here would pass there. Only text is read:
the offline model looks at nothing else.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    FunctionCall,
    Message,
    ReasoningMessage,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from ag_ui.core import Tool as ToolSpec

from agui_container.ports import Delta, Prompt, ReasoningDelta, TextDelta, ToolCallDelta, UsageDelta
from agui_container.protocol.errors import AppError
from tests.models.openai.server import sse

Json = Mapping[str, Any]

REASONING = "reasoning_content"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def broken_rules(body: Json) -> list[str]:
    return [*_broken_pairs(body["messages"]), *_broken_names(body)]


def _broken_pairs(messages: Sequence[Json]) -> Iterator[str]:
    """Calls are answered at once, each once, and nothing else is."""
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                yield f"a result without its call: {message['tool_call_id']}"
            else:
                open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            yield f"calls without results: {open_calls}"
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
        if len(open_calls) != len(set(open_calls)):
            yield f"ids of calls are unique: {open_calls}"
        if message["role"] == "assistant" and not (message["content"] or open_calls):
            yield "an assistant says something or calls something"
    if open_calls:
        yield f"calls without results: {open_calls}"


def _broken_names(body: Json) -> Iterator[str]:
    offered = [tool["function"]["name"] for tool in body.get("tools", ())]
    called = [call["function"]["name"] for message in body["messages"] for call in message.get("tool_calls", ())]
    if len(offered) != len(set(offered)):
        yield f"names of tools are unique: {offered}"
    for name in (*offered, *called):
        if not NAME.fullmatch(name):
            yield f"not a name: {name}"


def prompt_of(body: Json) -> Prompt:
    first, *others = body["messages"]
    system = str(first["content"]) if first["role"] == "system" else ""
    said = others if first["role"] == "system" else body["messages"]
    messages = [message for at, raw in enumerate(said) for message in _messages(f"m{at}", raw)]
    return Prompt(system, messages, [_tool(tool["function"]) for tool in body.get("tools", ())])


def _tool(function: Json) -> ToolSpec:
    return ToolSpec(name=function["name"], description=function["description"], parameters=function["parameters"])


def _messages(key: str, raw: Json) -> Iterator[Message]:
    content = _text(raw["content"])
    match raw["role"]:
        case "system":
            yield SystemMessage(id=key, content=content)
        case "user":
            yield UserMessage(id=key, content=content)
        case "tool":
            error = content if content.startswith("Error:") else None  # the API has words for it, and no field
            yield ToolMessage(id=key, tool_call_id=raw["tool_call_id"], content=content, error=error)
        case "assistant":
            if REASONING in raw:
                yield ReasoningMessage(id=f"{key}-reasoning", content=raw[REASONING])
            calls = [_call(call) for call in raw.get("tool_calls", ())]
            yield AssistantMessage(id=key, content=content or None, tool_calls=calls or None)


def _text(content: str | Sequence[Json] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _call(call: Json) -> ToolCall:
    return ToolCall(id=call["id"], function=FunctionCall.model_validate(call["function"]))


async def answer(deltas: AsyncIterator[Delta], *, usage: bool) -> AsyncIterator[bytes]:
    """The events of an answer; an ``AppError`` becomes an error object in the stream."""
    counted: TokenUsage | None = None
    calls: set[int] = set()
    yield _event(_choice({"role": "assistant", "content": ""}))
    try:
        async for delta in deltas:
            if isinstance(delta, UsageDelta):
                counted = delta.usage
                continue
            if isinstance(delta, ToolCallDelta):
                calls.add(delta.index)
            yield _event(_choice(_said(delta)))
    except AppError as error:
        yield _event({"error": {"message": f"{error.message} (secret-host)", "type": "server_error", "code": None}})
        return
    yield _event(_choice({}, "tool_calls" if calls else "stop"))
    if usage and counted is not None:
        yield _event({"choices": [], "usage": _usage(counted)})
    yield _event("[DONE]")


def _event(chunk: object) -> bytes:
    return b"".join(sse(chunk))


def _choice(delta: Json, finish: str | None = None) -> Json:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _said(delta: Delta) -> Json:
    if isinstance(delta, TextDelta):
        return {"content": delta.text}
    if isinstance(delta, ReasoningDelta):
        return {REASONING: delta.text}
    assert isinstance(delta, ToolCallDelta)
    first = {"id": f"call_{delta.index}", "type": "function"} if delta.name else {}
    named = {"name": delta.name} if delta.name else {}
    return {"tool_calls": [{"index": delta.index, **first, "function": {**named, "arguments": delta.arguments}}]}


def _usage(usage: TokenUsage) -> Json:
    details = {"completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0}}
    counts = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    return {**counts, "total_tokens": usage.total_tokens, **details}


def refusal(broken: Sequence[str]) -> bytes:
    error = {"message": "; ".join(broken), "type": "invalid_request_error", "code": None}
    return json.dumps({"error": error}).encode()
