"""The frames of the test server are those that botocore reads."""

import json

import pytest
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer  # type: ignore[import-untyped]

from tests.models.bedrock.doubles import ANSWER
from tests.models.bedrock.frames import frame


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
