"""The plans write what the official encoder writes, and refuse what its models refuse, whatever the fields hold."""

from typing import Any

import pytest
from ag_ui.core import BaseEvent, StateSnapshotEvent, TextMessageContentEvent, TextMessageStartEvent
from hypothesis import given
from hypothesis import strategies as st

from app.core.encoder import _exactly, encoded, plan_of
from app.core.errors import IllegalEvent
from tests.core.samples import SAMPLES, forged

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


def outcome(encode: Any, event: BaseEvent) -> bytes | str:  # noqa: ANN401 - a function under test
    """The bytes, or that it was refused."""
    try:
        data: bytes = encode(event)
    except (IllegalEvent, ValueError):
        return "refused"
    return data


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type.value)
def test_every_sample_is_written_as_the_official_model_writes_it(event: BaseEvent) -> None:
    assert encoded(event) == _exactly(event)


@given(st.sampled_from(SAMPLES), st.data())
def test_whatever_a_field_holds_the_outcome_is_the_official_one(event: BaseEvent, data: st.DataObject) -> None:
    fields = data.draw(st.lists(st.sampled_from(sorted(type(event).model_fields)), max_size=3))
    changed = event.model_copy(update={name: data.draw(values, name) for name in fields})
    assert outcome(encoded, changed) == outcome(_exactly, changed)


@given(st.sampled_from(SAMPLES), st.data())
def test_a_field_that_is_not_there_is_the_official_outcome(event: BaseEvent, data: st.DataObject) -> None:
    changed = event.model_copy()
    del changed.__dict__[data.draw(st.sampled_from(sorted(type(event).model_fields)))]
    if outcome(_exactly, changed) == "refused":
        assert outcome(encoded, changed) == "refused"


@given(values)
def test_unknown_fields_follow_the_known_ones(value: Json) -> None:
    event = TextMessageContentEvent.model_validate({"messageId": "m", "delta": "d", "x-own": value})
    assert outcome(encoded, event) == outcome(_exactly, event)


def test_what_comes_once_per_token_has_a_plan_and_odd_values_have_none() -> None:
    event = TextMessageContentEvent(message_id="m", delta="d", timestamp=1, subagent_run_id="s", metadata={"a": None})
    assert plan_of(TextMessageContentEvent)(event) == encoded(event).decode()
    assert plan_of(TextMessageStartEvent)(forged(TextMessageStartEvent, message_id=7, role="assistant")) is None


def test_a_model_inside_free_json_is_written_as_a_model() -> None:
    inner = TextMessageContentEvent(message_id="m", delta="d")
    assert b'"snapshot":[{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"' in encoded(
        StateSnapshotEvent(snapshot=[inner])
    )
