"""The assistant on Bedrock: model, tools, model, over the real wire."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from ag_ui.core import ReasoningEncryptedValueEvent, TextMessageContentEvent, TokenUsage, ToolCallResultEvent

from agui_container.agents.assistant.assistant import Assistant
from agui_container.models.bedrock import CachePlace
from agui_container.protocol.errors import AppError
from agui_container.tools.builtin import builtin_tools
from tests.contexts import client_tool, collect_items, expanded, of_type, run_context, run_input, types
from tests.models.bedrock.doubles import END, METADATA, MODEL, START, BedrockModels, text
from tests.models.bedrock.server import BedrockServer

CALLS: Mapping[str, Any] = {"messageStop": {"stopReason": "tool_use"}}


def reasoning(**piece: str) -> Mapping[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": piece}}}


def call(index: int, name: str, arguments: object) -> list[Mapping[str, Any]]:
    start = {"toolUse": {"toolUseId": f"tooluse_{index}", "name": name}}
    written = json.dumps(arguments)
    pieces = [written[:5], written[5:]]
    return [
        {"contentBlockStart": {"contentBlockIndex": index, "start": start}},
        *({"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": {"input": p}}}} for p in pieces),
        {"contentBlockStop": {"contentBlockIndex": index}},
    ]


async def test_a_loop_of_tools(wire: BedrockServer, bedrock: BedrockModels) -> None:
    wire.will(
        [
            START,
            reasoning(text="Arithmetic."),
            reasoning(signature="signed"),
            text("Let me see.", 1),
            *call(2, "calculate", {"expression": "6*7"}),
            *call(3, "calculate", {"expression": "1/"}),
            CALLS,
            METADATA,
        ],
        [START, text("It is 42."), END, METADATA],
    )
    model, ctx = bedrock(cache=frozenset({CachePlace.MESSAGES})), run_context()
    items = expanded(await collect_items(Assistant(model, builtin_tools()).run(run_input("What is 6*7?"), ctx)))
    assert types(items)[-5:-1] == [
        "TOOL_CALL_RESULT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
    ]
    assert of_type(items, ToolCallResultEvent)[0].content == "42"
    assert of_type(items, TextMessageContentEvent)[-1].delta == "It is 42."
    assert len(of_type(items, ReasoningEncryptedValueEvent)) == 1
    _, said, answered = wire.requests[1]["messages"]
    assert [next(iter(block)) for block in said["content"]] == ["reasoningContent", "text", "toolUse", "toolUse"]
    assert said["content"][0] == {"reasoningContent": {"reasoningText": {"text": "Arithmetic.", "signature": "signed"}}}
    assert [next(iter(block)) for block in answered["content"]] == ["toolResult", "toolResult", "cachePoint"]
    given, failed = (block["toolResult"] for block in answered["content"][:2])
    assert (given["content"], given.get("status")) == ([{"text": "42"}], None)
    assert (failed["content"][0]["text"][:7], failed["status"]) == ("Error: ", "error")
    assert (
        ctx.usage == [TokenUsage(provider="bedrock", model=MODEL, input_tokens=7, output_tokens=3, total_tokens=10)] * 2
    )


async def test_a_call_of_a_client_tool_with_a_strange_name_is_the_clients(
    wire: BedrockServer, bedrock: BedrockModels
) -> None:
    name = "ui/open: the door"
    request = run_input("open", tools=[client_tool(name)])
    wire.will([START, text("No."), END, METADATA])
    await collect_items(Assistant(bedrock()).run(request, run_context()))
    (tool,) = wire.requests[0]["toolConfig"]["tools"]
    wire.will([START, *call(0, tool["toolSpec"]["name"], {}), CALLS, METADATA])
    items = expanded(await collect_items(Assistant(bedrock()).run(request, run_context())))
    assert types(items) == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "RUN_FINISHED"]
    assert getattr(items[0], "tool_call_name", None) == name


async def test_usage_of_a_call_that_failed_is_counted(wire: BedrockServer, bedrock: BedrockModels) -> None:
    wire.will([START, text("a"), METADATA, {"exception": "throttlingException", "message": "m"}])
    ctx = run_context()
    with pytest.raises(AppError) as caught:
        await collect_items(Assistant(bedrock()).run(run_input("hi"), ctx))
    assert caught.value.code == "MODEL_THROTTLED"
    assert [usage.total_tokens for usage in ctx.usage] == [10]
