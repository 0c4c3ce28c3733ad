"""Encoding plans write the same bytes as the official encoder, and refuse the same events."""

import sys
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from ag_ui.core import (
    BaseEvent,
    MessagesSnapshotEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    TokenUsage,
)
from ag_ui.encoder import EventEncoder
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from agui_container.protocol.encoder import encode, encode_with_pydantic
from agui_core.expander import IllegalEvent
from tests.protocol.samples import SAMPLES, without_validation

Json = Any
text = st.text(max_size=12) | st.sampled_from(
    ["\x00\x1f\x7f", "\u2028</script>", '"\\/\b\f\n\r\t', "\ud800", "\U0001f600"]
)
numbers = st.integers() | st.integers(2**53 - 2, 2**53 + 1) | st.floats()
values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)


def outcome(function: Any, event: BaseEvent) -> bytes | str:  # noqa: ANN401 - a function under test
    """Return the bytes, or the refusal."""
    try:
        data: bytes = function(event)
    except (IllegalEvent, ValueError):
        return "refused"
    return data


def published_encoding(event: BaseEvent) -> bytes:
    """Return the JSON that the published ``EventEncoder`` writes after ``data:``."""
    return EventEncoder().encode(event).removeprefix("data: ").removesuffix("\n\n").encode()


def check(event: BaseEvent) -> None:
    """Check that the bytes are the published ones, or refused if the official model cannot read them."""
    written = outcome(encode, event)
    assert written == outcome(encode_with_pydantic, event)
    if written != "refused":
        assert written == published_encoding(event)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type.value)
def test_every_sample_is_written_as_the_published_encoder_writes_it(event: BaseEvent) -> None:
    assert encode(event) == encode_with_pydantic(event) == published_encoding(event)


def test_every_character_is_written_as_the_official_model_writes_it() -> None:
    whole = "".join(map(chr, [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]))
    event = TextMessageContentEvent(message_id="m", delta=whole)
    assert encode(event) == encode_with_pydantic(event) == published_encoding(event)


@given(st.sampled_from(SAMPLES), st.data())
def test_any_value_of_a_field_has_the_official_outcome(event: BaseEvent, data: st.DataObject) -> None:
    fields = data.draw(st.lists(st.sampled_from(sorted(type(event).model_fields)), max_size=3))
    check(event.model_copy(update={name: data.draw(values, name) for name in fields}))


@given(st.sampled_from(SAMPLES), st.data())
def test_a_field_that_is_not_there_is_the_official_outcome(event: BaseEvent, data: st.DataObject) -> None:
    changed = event.model_copy()
    del changed.__dict__[data.draw(st.sampled_from(sorted(type(event).model_fields)))]
    if outcome(encode_with_pydantic, changed) == "refused":
        assert outcome(encode, changed) == "refused"


@given(values)
def test_unknown_fields_follow_the_known_ones(value: Json) -> None:
    check(TextMessageContentEvent.model_validate({"messageId": "m", "delta": "d", "x-own": value}))


PATCHED = StateDeltaEvent.model_validate({"delta": [{"op": "remove", "path": "/a"}]})
NEGATIVE = without_validation(TokenUsage, input_tokens=-1)
NOTHING = without_validation(RunFinishedInterruptOutcome, type="interrupt", interrupts=[])


@pytest.mark.parametrize(
    "event",
    [
        without_validation(TextMessageContentEvent, message_id="m", delta=b"d"),
        without_validation(TextMessageContentEvent, message_id="m", delta="d", timestamp=1.0),
        without_validation(TextMessageContentEvent, message_id="m", delta="d", timestamp=2**53),
        without_validation(TextMessageContentEvent, message_id="m", delta="d", timestamp=-(2**53)),
        without_validation(TextMessageStartEvent, message_id="m", role="king"),
        without_validation(MessagesSnapshotEvent, messages=[NEGATIVE]),
        without_validation(MessagesSnapshotEvent, messages="none"),
        without_validation(StateDeltaEvent, delta=[PATCHED.delta[0].model_copy(update={"path": "no pointer"})]),
        RunFinishedEvent(thread_id="t", run_id="r", usage=[NEGATIVE]),
        RunFinishedEvent(thread_id="t", run_id="r", outcome=NOTHING),
    ],
)
@pytest.mark.filterwarnings("ignore")  # as in production, where pydantic would write some of these and warn
def test_values_that_a_field_does_not_allow_are_refused(event: BaseEvent) -> None:
    with pytest.raises(IllegalEvent, match=r"cannot be encoded|would not be understood"):
        encode(event)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_null(number: float) -> None:
    event = StateSnapshotEvent(snapshot={"number": number})
    assert encode(event) == encode_with_pydantic(event)
    assert b'{"number":null}' in encode(event)


@pytest.mark.parametrize("around", [lambda value: [value], lambda value: {"a": value}], ids=["lists", "objects"])
def test_a_value_that_is_too_deep_to_be_read_again_is_refused_and_no_other(around: Callable[[Json], Json]) -> None:
    value: Json = 1
    for _ in range(220):
        value = around(value)
        event = StateSnapshotEvent(snapshot=value)
        if readable(orjson.dumps({"snapshot": value})):
            assert readable(encode(event))
        else:
            with pytest.raises(IllegalEvent, match="nested too deeply"):
                encode(event)


def readable(data: bytes) -> bool:
    """Return True if pydantic can read it."""
    try:
        from_json(data)
    except ValueError:
        return False
    return True
