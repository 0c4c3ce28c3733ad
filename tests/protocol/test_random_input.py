"""Random input is answered by a result or by an error that says what is wrong, and harms nothing."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import parse
from tests.protocol.random_input import random_body

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = ("threadId", "runId", "messages", "tools", "context", "state", "forwardedProps", "resume", "command", "type")


def check_body(body: bytes) -> None:
    """Parse a body as SSE and WebSocket do. It is read, or refused with an error of the caller's."""
    refusals = []
    try:
        parse(body)
    except AppError as error:
        refusals.append(error.code)
    assert {*refusals} <= {ErrorCode.VALIDATION_ERROR, ErrorCode.PAYLOAD_TOO_LARGE}


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_a_valid_body_with_random_changes_is_read_or_refused(seed: int) -> None:
    check_body(random_body(seed))


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(NAMES), JSON) | JSON)
def test_a_random_document_is_read_or_refused(document: object) -> None:
    check_body(json.dumps(document).encode())


@given(st.binary())
def test_random_bytes_are_read_or_refused(body: bytes) -> None:
    check_body(body)
