"""A connection that ends anywhere ends the call with the text so far and a coded error, as a damaged frame does."""

import asyncio
import logging

import pytest

from agui_container.models.bedrock import BedrockModel
from agui_container.ports import Delta, StopDelta, TextDelta
from agui_container.protocol.errors import AppError, ErrorCode
from tests.models.bedrock.doubles import END, METADATA, START, BedrockModels, prompt, text
from tests.models.bedrock.server import BedrockServer, answers

pytestmark = pytest.mark.wire

EVENTS = (START, text("Hel"), text("lo"), END, METADATA)
TOGETHER = 32


async def said_by(model: BedrockModel) -> tuple[list[Delta], ErrorCode | None]:
    deltas: list[Delta] = []
    try:
        async for delta in model.stream(prompt()):
            deltas.append(delta)  # noqa: PERF401 - what came before a failure counts
    except AppError as error:
        return deltas, error.code
    return deltas, None


async def test_a_cut_anywhere_is_an_error_or_an_answer(
    wire: BedrockServer, bedrock: BedrockModels, caplog: pytest.LogCaptureFixture
) -> None:
    cuts = range(0, len(b"".join(answers(*EVENTS).writes())), 3)
    wire.will(*(answers(*EVENTS, cut=cut) for cut in cuts))
    model = bedrock(max_attempts=1)

    turns = asyncio.Semaphore(TOGETHER)

    async def ask() -> tuple[list[Delta], ErrorCode | None]:
        async with turns:
            return await said_by(model)

    with caplog.at_level(logging.CRITICAL):
        results = await asyncio.gather(*(ask() for _ in cuts))
    assert len(results) == len(wire.requests) == len(cuts) > 250
    for deltas, code in results:
        spoken = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
        assert "Hello".startswith(spoken)
        assert (code is None) == any(isinstance(delta, StopDelta) for delta in deltas)
        assert code in {None, ErrorCode.MODEL_ERROR, ErrorCode.MODEL_UNAVAILABLE}
    assert {code is None for _, code in results} == {True, False}
