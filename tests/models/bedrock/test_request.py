"""The request has the options that were chosen, the tools that were offered, and nothing else."""

from typing import Any

from ag_ui.core import AssistantMessage, FunctionCall, ToolCall

from agui_container.models.bedrock import BedrockOptions, CachePlace, Guardrail
from agui_container.models.bedrock.request import request_of
from agui_container.models.tool_schemas import wire_name
from agui_container.ports import Prompt
from tests.models.bedrock.doubles import ANSWER, MODEL, BedrockModels, collect_deltas, prompt
from tests.models.bedrock.rules import broken_rules
from tests.models.bedrock.server import BedrockServer

SYSTEM = {"text": "Be good."}
CALLED = AssistantMessage(id="a", tool_calls=[ToolCall(id="1", function=FunctionCall(name="old/one", arguments="{}"))])


def body_of(asked: Prompt, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    body = dict(request_of(MODEL, BedrockOptions(**options), asked).body)
    assert broken_rules(body) == []
    return body


def test_options_without_a_value_are_not_sent() -> None:
    assert body_of(prompt()) == {"modelId": MODEL, "messages": [{"role": "user", "content": [{"text": "hi"}]}]}


async def test_every_option_reaches_the_wire(wire: BedrockServer, bedrock: BedrockModels) -> None:
    wire.will(ANSWER)
    model = bedrock(
        max_tokens=100,
        temperature=0.0,
        top_p=0.5,
        stop_sequences=("END",),
        cache=frozenset(CachePlace),
        cache_ttl="1h",
        guardrail=Guardrail("abc123", "DRAFT", mode="async", trace="enabled"),
        additional_fields={"thinking": {"type": "enabled", "budget_tokens": 1024}},
    )
    await collect_deltas(model.stream(prompt("hi", tools=["now"], system="Be good.")))
    point = {"cachePoint": {"type": "default", "ttl": "1h"}}
    spec = {"name": "now", "description": "Does now.", "inputSchema": {"json": {"type": "object", "properties": {}}}}
    assert wire.requests == [
        {
            "modelId": MODEL,
            "messages": [{"role": "user", "content": [{"text": "hi"}, point]}],
            "system": [SYSTEM, point],
            "toolConfig": {"tools": [{"toolSpec": spec}, point]},
            "inferenceConfig": {"maxTokens": 100, "temperature": 0.0, "topP": 0.5, "stopSequences": ["END"]},
            "guardrailConfig": {
                "guardrailIdentifier": "abc123",
                "guardrailVersion": "DRAFT",
                "streamProcessingMode": "async",
                "trace": "enabled",
            },
            "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        }
    ]


def test_tools_that_are_only_in_the_history_are_described() -> None:
    body = body_of(prompt("a", CALLED, "b"))
    (tool,) = body["toolConfig"]["tools"]
    assert tool == {
        "toolSpec": {"name": wire_name("old/one"), "inputSchema": {"json": {"type": "object", "properties": {}}}}
    }
    assert [
        spec["toolSpec"]["name"] for spec in body_of(prompt("a", CALLED, tools=["now"]))["toolConfig"]["tools"]
    ] == ["now"]
