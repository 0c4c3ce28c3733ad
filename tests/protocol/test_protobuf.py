"""The protobuf schema and its descriptor set, and JSON that it cannot carry. ``tests/official`` compares bytes."""

import subprocess
import sys
from pathlib import Path

import pytest
from ag_ui.core import CustomEvent, EventType, MessagesSnapshotEvent

from agui_container.protocol.encoder import encode
from agui_container.protocol.wire.protobuf.encoder import EVENT, POOL, encode_frame
from tests.protocol.protobuf_decoder import event, kind, messages
from tests.protocol.samples import SAMPLES
from tests.requirements import requirement

SCHEMA = Path(__file__).parents[2] / "app" / "agui_container" / "protocol" / "wire" / "protobuf" / "agui.proto"


@requirement("binary.schema")
def test_the_compiled_schema_is_that_of_the_text(tmp_path: Path) -> None:
    compiled = tmp_path / "agui.binpb"
    options = [f"-I{SCHEMA.parent}", f"--descriptor_set_out={compiled}", SCHEMA.name]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options], check=True)
    assert compiled.read_bytes() == SCHEMA.with_suffix(".binpb").read_bytes()


@requirement("binary.schema")
def test_every_event_type_has_its_message_and_its_number() -> None:
    types = POOL.FindEnumTypeByName("ag_ui.EventType").values_by_name
    assert {field.name.upper() for field in EVENT.fields} == set(types) == {each.value for each in EventType}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.type.value)
def test_a_frame_is_a_length_and_one_event(sample: CustomEvent) -> None:
    assert [kind(message) for message in messages(encode_frame(encode(sample)))] == [sample.type.value]


def test_array_indexes_come_first_as_in_javascript() -> None:
    keys = ["b", "10", "a", "2", "01", "0", "-1", "4294967294", "4294967295", "\u0663", ""]
    [message] = messages(encode_frame(encode(CustomEvent(name="n", value=dict.fromkeys(keys)))))
    members = [member.key for member in event(message).value.object_value.members]
    assert members == ["0", "2", "10", "4294967294", "b", "a", "01", "-1", "4294967295", "\u0663", ""]


def test_a_key_that_would_be_a_prototype_in_javascript_is_left_out() -> None:
    [message] = messages(
        encode_frame(encode(CustomEvent(name="n", value={"__proto__": {"a": 1}, "b": {"__proto__": 2}})))
    )
    [member] = event(message).value.object_value.members
    assert (member.key, [*member.value.object_value.members]) == ("b", [])


def test_a_value_that_is_not_of_the_fields_type_stays_behind() -> None:
    user = {"id": "u", "role": "user", "content": "x", "error": 5, "toolCalls": "no", "activityContent": []}
    [message] = messages(encode_frame(encode(MessagesSnapshotEvent.model_validate({"messages": [user]}))))
    [sent] = event(message).messages
    assert sorted(field.name for field, _ in sent.ListFields()) == ["content", "id", "role"]
