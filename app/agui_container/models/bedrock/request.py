"""A prompt as the request of ConverseStream.

Rule: pure. The same prompt and options give the same request.

Source: the ConverseStream operation in the Amazon Bedrock Runtime API reference.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ag_ui.core import Tool as ToolSpec
from msgspec import Struct

from agui_container.models.bedrock.history import BedrockHistory
from agui_container.models.bedrock.media import Block
from agui_container.models.bedrock.options import BedrockOptions, CachePlace, Guardrail
from agui_container.models.bedrock.tool_names import fit_name, wire_names
from agui_container.ports import Prompt


class Request(Struct, frozen=True):
    """Arguments of ``converse_stream``. ``tool_names`` maps each wire name to the tool's own name."""

    body: Mapping[str, object]
    tool_names: Mapping[str, str]


def request_of(model_id: str, options: BedrockOptions, prompt: Prompt) -> Request:
    """Return the request for ``prompt``. Empty fields are left out."""
    history = BedrockHistory.of(prompt.messages, model_id)
    names = wire_names([*(tool.name for tool in prompt.tools), *history.tools])
    body = {
        "modelId": model_id,
        "messages": _messages(history, options),
        "system": _system([prompt.system, *history.system], options),
        "toolConfig": _tool_config(prompt.tools, history.tools, options),
        "inferenceConfig": _inference(options),
        "guardrailConfig": _guardrail(options.guardrail),
        "additionalModelRequestFields": dict(options.additional_fields),
    }
    return Request({key: value for key, value in body.items() if value}, names)


def _messages(history: BedrockHistory, options: BedrockOptions) -> list[dict[str, Any]]:
    messages = history.messages
    messages[-1]["content"].extend(_cache_point(CachePlace.MESSAGES, options))
    return messages


def _system(texts: Sequence[str], options: BedrockOptions) -> list[Block]:
    blocks: list[Block] = [{"text": text} for text in texts if text.strip()]
    return [*blocks, *_cache_point(CachePlace.SYSTEM, options)] if blocks else []


def _tool_config(offered: Sequence[ToolSpec], called: Sequence[str], options: BedrockOptions) -> dict[str, Any]:
    """Describe the offered tools, or else the called ones by name only.

    Bedrock refuses a history with tool calls if the request describes no tools.
    """
    tools = offered or [ToolSpec(name=name, description="") for name in called]
    specs: dict[str, Block] = {}
    for tool in tools:
        specs.setdefault(fit_name(tool.name), _tool(tool))
    return {"tools": [*specs.values(), *_cache_point(CachePlace.TOOLS, options)]} if specs else {}


def _tool(tool: ToolSpec) -> Block:
    schema = {"type": "object", **tool.parameters} if isinstance(tool.parameters, dict) else {"type": "object"}
    spec: dict[str, Any] = {"name": fit_name(tool.name), "inputSchema": {"json": schema}}
    if tool.description.strip():
        spec["description"] = tool.description
    return {"toolSpec": spec}


def _cache_point(place: CachePlace, options: BedrockOptions) -> list[Block]:
    if place not in options.cache:
        return []
    ttl = {"ttl": options.cache_ttl} if options.cache_ttl else {}
    return [{"cachePoint": {"type": "default", **ttl}}]


def _inference(options: BedrockOptions) -> dict[str, Any]:
    chosen = {
        "maxTokens": options.max_tokens,
        "temperature": options.temperature,
        "topP": options.top_p,
        "stopSequences": list(options.stop_sequences) or None,
    }
    return {key: value for key, value in chosen.items() if value is not None}


def _guardrail(guardrail: Guardrail | None) -> dict[str, Any]:
    if guardrail is None:
        return {}
    chosen = {
        "guardrailIdentifier": guardrail.id,
        "guardrailVersion": guardrail.version,
        "streamProcessingMode": guardrail.mode,
        "trace": guardrail.trace,
    }
    return {key: value for key, value in chosen.items() if value is not None}
