"""A prompt as the body of a chat completions request.

Calls get new ids, counted through the conversation: nine letters and digits, which the strictest server (Mistral's)
takes, and the same in every request, which keeps a provider's cache of the prompt.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import ClassVar

from ag_ui.core import DeveloperMessage, Message, ReasoningMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from ag_ui.core import Tool as ToolSpec
from pydantic import ConfigDict

from app.models.openai.names import wire_name
from app.models.openai.pairs import Exchange, paired
from app.models.openai.parts import Json, content_of, text_of
from app.ports import Prompt

UNANSWERED = "Error: there is no result; the call was interrupted."
GO_ON = "Continue."
"""What the user says where an assistant spoke last: servers refuse to go on from that."""
SILENCE = "(No answer was given.)"
"""What the assistant says between a result and a user, where servers want it to have answered."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a server is told besides the prompt.

    Attributes:
        body: more fields of the request (``temperature``, ``max_tokens``, ``reasoning_effort``, …); None takes one out.
        headers: more headers; they may hold keys, so they are left out of ``repr``.
        reasoning_field: the field of assistant messages in which the server wants its reasoning back, such as
            ``reasoning_content``; none: reasoning is not sent back.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    body: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    reasoning_field: str | None = None


def body_of(model: str, prompt: Prompt, options: Options, *, usage: bool = True) -> bytes:
    """The request as JSON. ``usage`` asks for the cost of the call in the last chunk."""
    body: dict[str, object] = {"model": model}
    if usage:
        body["stream_options"] = {"include_usage": True}
    tools: dict[str, Json] = {}
    for tool in prompt.tools:
        tools.setdefault(wire_name(tool.name), tool_of(tool))
    if tools:
        body["tools"] = list(tools.values())
    body |= options.body
    body |= {"messages": messages_of(prompt, options.reasoning_field), "stream": True}
    kept = {name: value for name, value in body.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def tool_of(tool: ToolSpec) -> Json:
    """A function tool; without a schema it takes no arguments."""
    schema = tool.parameters if isinstance(tool.parameters, dict) and tool.parameters else None
    function = {
        "name": wire_name(tool.name),
        "description": tool.description,
        "parameters": schema or {"type": "object", "properties": {}},
    }
    return {"type": "function", "function": function}


def messages_of(prompt: Prompt, reasoning_field: str | None = None) -> list[Json]:
    """The conversation as the API has it: calls and results in pairs, answers behind results, no answer at the end."""
    messages: list[Json] = [{"role": "system", "content": prompt.system}] if prompt.system else []
    thoughts: list[str] = []
    numbers = count(1)
    for message in paired(prompt.messages):
        if isinstance(message, ReasoningMessage):
            thoughts.append(message.content)
            continue
        if isinstance(message, Exchange):
            reasoning = {reasoning_field: "\n".join(thoughts)} if reasoning_field and any(thoughts) else {}
            messages.extend(_exchange(message, numbers, reasoning))
        else:
            messages.extend(_said(message, _speaker(messages)))
        thoughts = []
    if _speaker(messages) == "assistant":
        messages.append({"role": "user", "content": GO_ON})
    return messages


def _speaker(messages: Sequence[Json]) -> object:
    """Whose the last message is; instructions are nobody's."""
    return next((message["role"] for message in reversed(messages) if message["role"] != "system"), None)


def _said(message: Message, speaker: object) -> Sequence[Json]:
    if isinstance(message, UserMessage):
        answered = ({"role": "assistant", "content": SILENCE},) if speaker == "tool" else ()
        return *answered, {"role": "user", "content": content_of(message.content)}
    if isinstance(message, (SystemMessage, DeveloperMessage)):
        # "developer" is known to OpenAI only, which takes "system" for the same.
        return ({"role": "system", "content": message.content},)
    return ()


def _exchange(exchange: Exchange, numbers: Iterator[int], reasoning: Json) -> Sequence[Json]:
    said: dict[str, object] = {"role": "assistant", "content": exchange.message.content or None, **reasoning}
    if not exchange.calls:
        return (said,) if exchange.message.content else ()
    ids = [f"call{next(numbers):05d}" for _ in exchange.calls]
    said["tool_calls"] = [_call(id_, call) for id_, (call, _) in zip(ids, exchange.calls, strict=True)]
    results = [_result(id_, result) for id_, (_, result) in zip(ids, exchange.calls, strict=True)]
    return said, *results


def _call(id_: str, call: ToolCall) -> Json:
    function = {"name": wire_name(call.function.name), "arguments": _arguments(call.function.arguments)}
    return {"id": id_, "type": "function", "function": function}


def _arguments(text: str) -> str:
    """The arguments of a call; templates of local servers break on what is not a JSON object."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = None
    return (text or "{}") if isinstance(value, dict) else json.dumps({"invalid": text}, ensure_ascii=False)


def _result(id_: str, result: ToolMessage | None) -> Json:
    texts = (UNANSWERED,) if result is None else (text_of(result.content), _error(result))
    return {"role": "tool", "tool_call_id": id_, "content": "\n".join(filter(None, texts))}


def _error(result: ToolMessage) -> str:
    return f"Error: {result.error}" if result.error else ""
