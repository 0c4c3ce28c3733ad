"""A connection that ends anywhere, and a frame that botocore cannot read, end the call with a coded error."""

import asyncio
import logging

import pytest

from agui_container.models.bedrock import BedrockModel
from agui_container.ports import Delta, StopDelta, TextDelta
from agui_container.protocol.errors import AppError, ErrorCode
from tests.models.bedrock.doubles import END, METADATA, START, BedrockModels, prompt, text
from tests.models.bedrock.frames import frame, message
from tests.models.bedrock.server import BedrockServer, answers
from tests.models.wire import WireResponse

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


WHOLE = frame(text("Hello"))
NO_JSON = message({":message-type": "event", ":event-type": "contentBlockDelta"}, b"no JSON")


@pytest.mark.parametrize("unreadable", [WHOLE[:-1] + bytes([WHOLE[-1] ^ 1]), NO_JSON], ids=["checksum", "no JSON"])
async def test_an_answer_that_botocore_cannot_read_is_not_asked_for_again(
    unreadable: bytes, wire: BedrockServer, bedrock: BedrockModels
) -> None:
    wire.will(WireResponse([unreadable], headers=answers().headers))
    assert await said_by(bedrock()) == ([], ErrorCode.MODEL_ERROR)
    assert len(wire.requests) == 1
