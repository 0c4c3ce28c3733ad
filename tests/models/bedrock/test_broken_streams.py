"""A connection that ends anywhere ends the call with the text so far and a coded error, as a damaged frame does."""

import asyncio
import json
import logging

import pytest
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer  # type: ignore[import-untyped]

from agui_container.models.bedrock import BedrockModel
from agui_container.ports import Delta, StopDelta, TextDelta
from agui_container.protocol.errors import AppError, ErrorCode
from tests.models.bedrock.doubles import ANSWER, END, METADATA, START, BedrockModels, prompt, text
from tests.models.bedrock.frames import frame
from tests.models.bedrock.server import BedrockResponse, BedrockServer

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
    whole = BedrockResponse(EVENTS)
    cuts = range(0, len(whole.head + whole.body + whole.tail), 3)
    wire.will(*(BedrockResponse(EVENTS, cut=cut) for cut in cuts))
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


# --- frames -----------------------------------------------------------------------------------------------------------


def test_botocore_decodes_what_is_encoded() -> None:
    buffer = EventStreamBuffer()
    for byte in b"".join(map(frame, ANSWER)):
        buffer.add_data(bytes([byte]))
    decoded = list(buffer)
    assert [message.headers[":event-type"] for message in decoded] == [next(iter(event)) for event in ANSWER]
    assert {message.headers[":message-type"] for message in decoded} == {"event"}
    assert json.loads(decoded[1].payload)["delta"] == {"text": "Hello"}


def test_botocore_decodes_exceptions() -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(frame({"exception": "throttlingException", "message": "slow down"}))
    (decoded,) = buffer
    assert decoded.headers[":exception-type"] == "throttlingException"
    assert json.loads(decoded.payload) == {"message": "slow down"}


def test_botocore_checks_the_checksums() -> None:
    data = bytearray(frame(ANSWER[1]))
    data[-6] ^= 1
    buffer = EventStreamBuffer()
    buffer.add_data(bytes(data))
    with pytest.raises(ChecksumMismatch):
        list(buffer)
