"""Recorded answers of servers, as deltas."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agui_container.models.failures import ModelFailure
from agui_container.models.openai.opaque_fields import OpaqueFields
from agui_container.models.openai.request import ToolNames
from agui_container.models.openai.stream_parser import ChatStreamParser
from agui_container.ports import Delta, EncryptedDelta, ToolCallDelta
from tests.models.openai.stream_reader import delta_as_json

SCENARIOS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("scenarios.json").read_text())
OPAQUE = OpaqueFields("server model")


def read(events: Sequence[object], tools: Sequence[str] = ()) -> tuple[list[Delta], ModelFailure | None]:
    parser = ChatStreamParser(ToolNames(tools), "openai-compatible", "m", OPAQUE)
    deltas: list[Delta] = []
    try:
        for event in events:
            deltas += parser.feed_data(event if isinstance(event, str) else json.dumps(event))
        deltas += parser.finish()
    except ModelFailure as failure:
        return [*deltas, *parser.usage()], failure
    return deltas, None


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_stream_is_read(name: str) -> None:
    scenario = SCENARIOS[name]
    deltas, failure = read(scenario["events"], scenario.get("tools", ()))
    assert [delta_as_json(delta) for delta in deltas] == scenario["deltas"]
    described = failure and {"code": failure.code.value, "retry": failure.is_retryable}
    assert described == scenario.get("error")


def says(finish: str | None = None, **delta: Any) -> dict[str, object]:  # noqa: ANN401
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def thinking(text: str = "", signature: str | None = None) -> dict[str, Any]:
    return {"thinking_blocks": [{"type": "thinking", "thinking": text, "signature": signature}]}


CALL: dict[str, Any] = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "now", "arguments": "{}"}}]}
SIGNED = {"type": "thinking", "thinking": "Let me see.", "signature": "s1"}
REDACTED = {"type": "redacted_thinking", "data": "x"}
ENCRYPTED = {"type": "reasoning.encrypted", "data": "y", "index": 1}
REASONED = {"type": "reasoning.text", "text": "Hm so", "index": 0, "signature": "s"}
LITELLM = [
    says(reasoning_content="Let me ", **thinking("Let me ")),
    says(reasoning_content="see.", **thinking("see.")),
    says(**thinking(signature="s1")),
    says(thinking_blocks=[REDACTED]),
]
OPENROUTER = [
    says(reasoning="Hm ", reasoning_details=[{"type": "reasoning.text", "text": "Hm ", "index": 0}]),
    says(reasoning="so", reasoning_details=[{"type": "reasoning.text", "text": "so", "index": 0, "signature": "s"}]),
]


def sealed_in(deltas: Sequence[Delta]) -> tuple[list[Any], list[Any]]:
    reasoning = [OPAQUE.open(delta.value) for delta in deltas if isinstance(delta, EncryptedDelta)]
    calls = [delta.encrypted_value for delta in deltas if isinstance(delta, ToolCallDelta) and delta.encrypted_value]
    return reasoning, [OPAQUE.open(value) for value in calls]


@pytest.mark.parametrize(
    ("events", "reasoning", "calls"),
    [
        ([*LITELLM, says("stop", content="Yes.")], [{"thinking_blocks": [SIGNED, REDACTED]}], []),
        ([*LITELLM, says("tool_calls", **CALL)], [{"thinking_blocks": [SIGNED, REDACTED]}], []),
        (
            [*OPENROUTER, says("tool_calls", **CALL, reasoning_details=[ENCRYPTED])],
            [{"reasoning_details": [REASONED, ENCRYPTED]}],
            [],
        ),
        (
            [*OPENROUTER, says(**CALL), says("tool_calls", reasoning_details=[ENCRYPTED])],
            [{"reasoning_details": [REASONED]}],
            [{"reasoning_details": [ENCRYPTED]}],
        ),
        ([says("stop", content="Yes.", thinking_blocks=None, reasoning_details=[])], [], []),
    ],
)
def test_opaque_reasoning_is_kept_with_the_reasoning_or_the_call(
    events: list[object], reasoning: list[object], calls: list[object]
) -> None:
    deltas, failure = read(events)
    assert failure is None
    assert sealed_in(deltas) == (reasoning, calls)


def test_of_the_fields_of_a_call_only_the_extra_content_is_kept() -> None:
    extra = {"google": {"thought_signature": "t"}}
    call = {**CALL["tool_calls"][0], "extra_content": extra, "provider_specific": 1}
    deltas, _ = read([says("tool_calls", tool_calls=[call])])
    assert sealed_in(deltas) == ([], [{"extra_content": extra}])
