"""The compiled protocol buffers are those of proto/, and their numbers are those that real clients speak."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.message import Message

from agui_container.protocol.errors import ERRORS
from agui_container.transports.grpc.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as roz
from agui_container.transports.grpc.status import STATUSES
from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "app" / "agui_container" / "transports" / "grpc" / "gen"


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


@requirement("grpc.errors")
def test_every_error_has_a_status() -> None:
    assert STATUSES.keys() == ERRORS.keys()
    assert {status.name for status in STATUSES.values()} == {row.grpc for row in ERRORS.values()}
