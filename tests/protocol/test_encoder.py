"""Encoding plans write the same bytes as the official encoder, and refuse the same events."""

import resource
import sys
from collections.abc import Callable, Iterator
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, get_args, get_origin

import orjson
import pytest
from ag_ui.core import (
    BaseEvent,
    CustomEvent,
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
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import from_json

from agui_container.protocol.encoder import PLANS, PlanMismatch, encode, encode_with_pydantic
from agui_container.protocol.errors import IllegalEvent
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


def models(value: object) -> Iterator[BaseModel]:
    """The models inside a value, at any depth."""
    inside = value.__dict__.values() if isinstance(value, BaseModel) else value if isinstance(value, list) else ()
    for one in inside:
        if isinstance(one, BaseModel):
            yield one
        yield from models(one)


def is_free(field: FieldInfo) -> bool:
    """Return True if the field takes any JSON."""
    return Any in (field.annotation, *(get_args(field.annotation) if get_origin(field.annotation) is not dict else ()))


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type.value)
def test_every_sample_is_written_as_the_published_encoder_writes_it(event: BaseEvent) -> None:
    assert encode(event) == encode_with_pydantic(event) == published_encoding(event)


def test_every_character_is_written_as_the_official_model_writes_it() -> None:
    whole = "".join(map(chr, [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]))
    event = TextMessageContentEvent(message_id="m", delta=whole)
    assert encode(event) == encode_with_pydantic(event) == published_encoding(event)


class Markup(str):
    """A string of a class of its own."""

    __slots__ = ()


class Word(StrEnum):
    """A string with a name."""

    HELLO = "hello \U0001f600"


@pytest.mark.parametrize("text", [Markup("<b>"), Word.HELLO])
def test_a_text_of_another_class_is_written_as_the_text_that_it_is(text: str) -> None:
    event = without_validation(TextMessageContentEvent, message_id="m", delta=text)
    assert encode(event) == encode_with_pydantic(event)
    assert PLANS[TextMessageContentEvent](event)


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


class Nothing(Enum):
    """A name for nothing."""

    NONE = None


NOTHINGS = [float("nan"), float("inf"), -float("inf"), Nothing.NONE]
FREE = [(event, name) for event in SAMPLES for name, field in type(event).model_fields.items() if is_free(field)]


@pytest.mark.parametrize("value", [*NOTHINGS, NOTHINGS, {"a": NOTHINGS}], ids=str)
@pytest.mark.parametrize(("event", "name"), FREE, ids=lambda part: getattr(part, "type", part))
def test_null_fields_are_left_out_exactly_like_in_the_published_encoder(
    event: BaseEvent, name: str, value: object
) -> None:
    changed = event.model_copy(update={name: value})
    assert encode(changed) == published_encoding(changed)


PATCHES = {"STATE_DELTA", "ACTIVITY_DELTA"}
"""Their paths have a pattern, so the official model looks."""


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type.value)
def test_every_event_but_a_patch_is_written_by_a_plan(event: BaseEvent, monkeypatch: pytest.MonkeyPatch) -> None:
    written = encode_with_pydantic(event)
    if event.type not in PATCHES:
        monkeypatch.delattr("agui_container.protocol.encoder.encode_with_pydantic")
    assert encode(event) == written


def test_events_of_every_token_have_a_plan_and_odd_values_have_none() -> None:
    event = TextMessageContentEvent(message_id="m", delta="d", timestamp=1, subagent_run_id="s", metadata={"a": None})
    assert orjson.dumps(PLANS[TextMessageContentEvent](event)) == encode(event)
    with pytest.raises(PlanMismatch):
        PLANS[TextMessageStartEvent](without_validation(TextMessageStartEvent, message_id="m", role=7))


def test_a_model_inside_free_json_is_written_as_a_model() -> None:
    inner = TextMessageContentEvent(message_id="m", delta="d")
    assert b'"snapshot":[{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"' in encode(StateSnapshotEvent(snapshot=[inner]))


NESTED = [event for event in SAMPLES if any(models(event))]


@given(st.sampled_from(NESTED), st.data())
def test_any_value_of_a_nested_model_has_the_official_outcome(event: BaseEvent, data: st.DataObject) -> None:
    changed = event.model_copy(deep=True)
    inner = data.draw(st.sampled_from(list(models(changed))))
    for name in data.draw(st.lists(st.sampled_from(sorted(type(inner).model_fields)), max_size=3)):
        inner.__dict__[name] = data.draw(values, name)
    check(changed)


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


@pytest.mark.parametrize("number", [2**53 - 1, 1 - 2**53])
def test_the_greatest_and_the_least_number_are_written_by_a_plan(number: int) -> None:
    event = TextMessageContentEvent(message_id="m", delta="d", timestamp=number)
    assert PLANS[TextMessageContentEvent](event)
    assert encode(event) == encode_with_pydantic(event)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_null(number: float) -> None:
    event = StateSnapshotEvent(snapshot={"number": number})
    assert encode(event) == encode_with_pydantic(event)
    assert b'{"number":null}' in encode(event)


HUGE = 10**309
LARGEST = int(sys.float_info.max)
IN_EVENTS: dict[str, BaseEvent] = {
    "a state": StateSnapshotEvent(snapshot={"n": HUGE, "m": [-HUGE, LARGEST, "9" * 400]}),
    "a patch": StateDeltaEvent(delta=[{"op": "add", "path": "/a", "value": {"n": HUGE}}]),
    "an unknown field": CustomEvent.model_validate({"name": "n", "value": 10**5_000, "x-own": {"n": HUGE}}),
    "a message": MessagesSnapshotEvent(messages=[{"id": "u", "role": "user", "content": "hi", "x-own": HUGE}]),
}


@pytest.mark.parametrize("event", IN_EVENTS.values(), ids=IN_EVENTS)
def test_an_integer_that_no_double_holds_is_null(event: BaseEvent) -> None:
    data = encode(event)
    assert orjson.loads(data)["type"] == event.type
    assert b"null" in data
    assert str(HUGE).encode() not in data


def test_integers_that_a_double_holds_and_digits_in_texts_stay() -> None:
    data = encode(IN_EVENTS["a state"])
    assert from_json(data)["snapshot"] == {"n": None, "m": [None, LARGEST, "9" * 400]}


class Loose(TextMessageContentEvent):
    """An event of one's own that allows more than the protocol's."""

    delta: Any


def test_an_event_of_ones_own_class_holds_what_the_protocols_allows() -> None:
    assert encode(Loose(message_id="m", delta="d")) == encode(TextMessageContentEvent(message_id="m", delta="d"))
    with pytest.raises(IllegalEvent, match="Loose would not be understood"):
        encode(Loose(message_id="m", delta=7))


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


def test_an_event_that_is_kept_takes_little_more_memory_than_it_has_bytes() -> None:
    event = TextMessageContentEvent(message_id="m", delta="d")
    before = resident()
    kept = [encode(event) for _ in range(20_000)]
    assert resident() - before < 500 * len(kept)


def resident() -> int:
    """Bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
