"""The model over real HTTP, compared with the responses of Bedrock in ``scenarios/*.json``, and its client."""

import json
import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from ag_ui.core import UserMessage

from agui_container.assistant.assistant import Assistant
from agui_container.models.bedrock import BedrockModel
from agui_container.models.bedrock.client import _create_client
from agui_container.models.bedrock.options import BedrockOptions
from agui_container.ports import Delta
from agui_container.protocol.errors import AppError
from agui_container.testing import run_agent
from agui_container.tools.builtin import builtin_tools
from agui_core.transcript import Transcript
from tests.contexts import collect_items, run_context, run_input
from tests.models.bedrock.doubles import (
    ANSWER,
    METADATA,
    MODEL,
    START,
    BedrockModels,
    Pauses,
    collect_deltas,
    prompt,
    short,
    text,
)
from tests.models.bedrock.server import BedrockServer, answers, refuses, scripted
from tests.models.wire import serving

pytestmark = pytest.mark.wire

SCENARIOS = {
    f"{path.stem}: {name}": scenario
    for path in sorted((Path(__file__).parent / "scenarios").glob("*.json"))
    for name, scenario in json.loads(path.read_text(encoding="utf-8")).items()
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[tuple[BedrockServer, BedrockModel, Pauses]]:
    """One server and one model for all scenarios: making boto3's client takes longer than all of them."""
    async with serving(BedrockServer()) as wire:
        pauses = Pauses()
        yield wire, BedrockModels(wire.url, pauses)(), pauses


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_scenario(
    name: str, shared: tuple[BedrockServer, BedrockModel, Pauses], caplog: pytest.LogCaptureFixture
) -> None:
    wire, model, pauses = shared
    scenario: dict[str, Any] = SCENARIOS[name]
    tries = scenario.get("tries", 1)
    wire.requests.clear()
    pauses.taken.clear()
    wire.will(*(scripted(answer) for answer in scenario["answers"]))
    deltas: list[Delta] = []
    failed = None
    with caplog.at_level(logging.CRITICAL):
        try:
            async for delta in model.stream(prompt(tools=scenario.get("tools", ()))):
                deltas.append(delta)  # noqa: PERF401 - what came before a failure counts
        except AppError as error:
            failed = error
    assert short(deltas) == scenario["deltas"]
    assert (failed and failed.code) == scenario.get("error")
    assert failed is None or "SECRET" not in failed.message
    assert len(wire.requests) == tries
    assert pauses.taken == [0.5, 1.0, 2.0][: tries - 1]
    assert not wire.answers
    assert wire.broken == []


THOUGHT = {"text": "Six by seven.", "signature": "c2lnbmVk"}
USE = {"toolUseId": "t1", "name": "calculate"}
CALLS: list[Mapping[str, Any]] = [
    START,
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": THOUGHT["text"]}}}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": THOUGHT["signature"]}}}},
    {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": USE}}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"expression": "6*7"}'}}}},
    {"messageStop": {"stopReason": "tool_use"}},
    METADATA,
]


async def test_signed_reasoning_and_a_call_come_back_in_this_turn_and_in_the_next_one(
    wire: BedrockServer, bedrock: BedrockModels
) -> None:
    wire.will(CALLS, ANSWER, ANSWER)
    model, history = Assistant(bedrock(), builtin_tools()), Transcript([])
    for said in ("What is 6*7?", "Sure?"):
        request = run_input(*history.messages, UserMessage(id=said, content=said))
        history = Transcript(request.messages)
        for event in await run_agent(model, request):
            history.feed(event)
    _, second, third = (body["messages"] for body in wire.requests)
    assert second == third[: len(second)]
    called, result = second[1]["content"], second[2]["content"]
    assert called[0] == {"reasoningContent": {"reasoningText": THOUGHT}}
    assert called[1]["toolUse"]["input"] == {"expression": "6*7"}
    assert result[0]["toolResult"]["content"] == [{"text": "42"}]


async def test_a_model_is_named_by_an_arn_and_usage_does_not_name_the_account(
    wire: BedrockServer, bedrock: BedrockModels
) -> None:
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123"
    wire.will(ANSWER)
    deltas = await collect_deltas(bedrock(arn).stream(prompt()))
    assert wire.requests[0]["modelId"] == arn
    assert "123456789012" not in repr(deltas)
    assert "abc123" in repr(deltas)


@pytest.mark.parametrize(
    ("missing", "code"),
    [("AWS_DEFAULT_REGION", "MODEL_NOT_FOUND"), ("AWS_ACCESS_KEY_ID", "MODEL_ACCESS_DENIED")],
)
async def test_missing_settings_of_the_server_are_a_coded_error(
    missing: str, code: str, bedrock: BedrockModels, pauses: Pauses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(missing)
    if missing == "AWS_ACCESS_KEY_ID":
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AppError) as caught:
        await collect_deltas(bedrock().stream(prompt()))
    assert caught.value.code == code
    assert pauses.taken == []


async def test_silence_is_a_timeout_that_is_not_tried_again(wire: BedrockServer, bedrock: BedrockModels) -> None:
    wire.will(answers(START, hold=True))
    with pytest.raises(AppError) as caught:
        await collect_deltas(bedrock(read_timeout=0.05).stream(prompt()))
    assert caught.value.code == "MODEL_TIMEOUT"


async def test_the_log_has_what_clients_are_not_told(
    wire: BedrockServer, bedrock: BedrockModels, caplog: pytest.LogCaptureFixture
) -> None:
    wire.will(refuses(400, error="ValidationException", message="the inner reason"))
    with pytest.raises(AppError):
        await collect_deltas(bedrock().stream(prompt()))
    (record,) = caplog.records
    assert record.getMessage() == (f"model call failed model={MODEL} code=MODEL_REJECTED attempt=1 retry_in=None")
    assert "the inner reason" in str(record.exc_info)


async def test_a_tool_that_bedrock_refuses_costs_only_itself(
    wire: BedrockServer, bedrock: BedrockModels, pauses: Pauses, caplog: pytest.LogCaptureFixture
) -> None:
    message = "The model returned the following errors: tools.1.custom.input_schema: JSON schema is invalid"
    wire.will(refuses(400, error="ValidationException", message=message), ANSWER, ANSWER)
    model, asked = bedrock(max_attempts=1), prompt(tools=["now", "bad/tool", "later"])
    for _ in range(2):
        assert short(await collect_deltas(model.stream(asked)))[0] == ["text", "Hello"]
    sent = [[tool["toolSpec"]["description"] for tool in body["toolConfig"]["tools"]] for body in wire.requests]
    assert [len(each) for each in sent] == [3, 2, 2]
    assert "Does bad/tool." not in sent[1] + sent[2]
    assert pauses.taken == []
    refused, _ = caplog.messages
    assert refused.startswith("tool refused by the model provider")
    assert "tool=bad/tool" in refused


async def test_usage_of_a_call_that_failed_is_counted(wire: BedrockServer, bedrock: BedrockModels) -> None:
    wire.will([START, text("a"), METADATA, {"exception": "throttlingException", "message": "m"}])
    ctx = run_context()
    with pytest.raises(AppError) as caught:
        await collect_items(Assistant(bedrock()).run(run_input("hi"), ctx))
    assert caught.value.code == "MODEL_THROTTLED"
    assert [usage.total_tokens for usage in ctx.usage] == [10]


def region_of(options: BedrockOptions) -> object:
    meta: object = getattr(_create_client(options), "meta", None)
    return getattr(meta, "region_name", None)


def test_the_region_is_the_platforms_unless_an_option_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert region_of(BedrockOptions()) == "eu-central-1"
    assert region_of(BedrockOptions(region="eu-west-1")) == "eu-west-1"
