"""The compiled protocol buffers are those of proto/, and their numbers are those that real clients speak."""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import Message
from grpclib.const import Status

from agui_container.protocol.errors import ERRORS
from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
TESTS = [path for path in (ROOT / "tests" / "grpc").glob("*.py") if path.name != Path(__file__).name]
TESTS += [ROOT / "tests" / "behaviour" / name for name in ("over_grpc.py", "test_prompts_over_grpc.py")]
"""The tests that speak the protocols."""

GENERATED = ROOT / "app" / "agui_container" / "transports" / "gen"


@requirement("grpc.schema")
def test_the_compiled_files_are_current(tmp_path: Path) -> None:
    sources = sorted(str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto").rglob("*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", "proto", f"--python_out={tmp_path}"]
    subprocess.run([*command, f"--pyi_out={tmp_path}", *sources], cwd=ROOT, check=True)
    made = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*_pb2.py*")}
    kept = {path.relative_to(GENERATED): path.read_text() for path in GENERATED.rglob("*_pb2.py*")}
    assert made == kept, "run `make proto`"


@requirement("grpc.schema")
def test_numbers_are_those_of_both_generations_of_roz() -> None:
    numbers = {field.name: field.number for field in roz.SessionResponse.DESCRIPTOR.fields}
    assert numbers["text_delta"] == 2
    assert numbers["activity_update"] == 11
    assert numbers["session_event"] == 19
    assert {field.name: field.number for field in roz.SessionRequest.DESCRIPTOR.fields}["register_tools"] == 9
    assert {field.number for field in roz.SessionEventEnvelope.DESCRIPTOR.fields} == {*range(1, 6), *range(7, 47)}


@requirement("grpc.schema")
def test_numbers_are_those_of_kontekst() -> None:
    assert [field.number for field in kontekst.RunCommand.DESCRIPTOR.fields] == [1, 2, 3, 6]
    assert [field.number for field in kontekst.RunEvent.DESCRIPTOR.fields] == list(range(1, 14))
    assert {f.name: f.number for f in kontekst.ContextSnapshot.DESCRIPTOR.fields}["tool_tokens"] == 12


ONEOFS = [
    *(roz.SessionRequest, roz.SessionResponse, roz.SessionEventEnvelope, roz.TeamEvent),
    *(kontekst.RunCommand, kontekst.RunEvent),
]


@requirement("grpc.schema")
@pytest.mark.parametrize("message", ONEOFS, ids=lambda message: message.DESCRIPTOR.name)
def test_the_guide_says_what_becomes_of_each_message(message: type[Message]) -> None:
    named = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "grpc.md").read_text()))
    (oneof,) = (each for each in message.DESCRIPTOR.oneofs if not each.name.startswith("_"))
    fields = {field.name: field.message_type for field in oneof.fields}
    assert [name for name, kind in fields.items() if not {name, kind.name if kind else name} & named] == []


def messages_of(file: FileDescriptor) -> Iterator[Descriptor]:
    """Every message of a file, and those inside it, without the entries of maps."""
    waiting = list(file.message_types_by_name.values())
    while waiting:
        message = waiting.pop()
        if not message.GetOptions().map_entry:
            yield message
            waiting += message.nested_types


@requirement("grpc.schema")
@pytest.mark.parametrize("file", [roz.DESCRIPTOR, kontekst.DESCRIPTOR], ids=lambda file: file.package)
def test_every_message_is_used_by_a_test_or_named_in_the_guide(file: FileDescriptor) -> None:
    """A test uses a message by its name, or by a field that holds it: ``.field``, ``field=`` or ``"field"``."""
    fields: defaultdict[str, set[str]] = defaultdict(set)
    for message in messages_of(file):
        for field in message.fields:
            if field.message_type is not None:
                fields[field.message_type.name].add(field.name)
    guide = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "grpc.md").read_text()))
    tests = "\n".join(path.read_text() for path in TESTS)
    used = guide | set(re.findall(r"\b([A-Z]\w+)\b", tests)) | set(re.findall(r"(?<=[.\"])\w+|\w+(?==)", tests))
    assert sorted(it.name for it in messages_of(file) if not {it.name, *fields[it.name]} & used) == []


@requirement("grpc.errors")
def test_every_error_has_a_status() -> None:
    assert {row.grpc for row in ERRORS.values()} <= Status.__members__.keys()
