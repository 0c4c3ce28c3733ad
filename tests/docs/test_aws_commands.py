"""AWS's models take the commands of the AWS CLI that the documents show.

The AWS CLI makes its options from the same models: an option is a member of the operation's input.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore import xform_name
from botocore.model import Shape  # type: ignore[import-untyped]
from botocore.validate import validate_parameters  # type: ignore[import-untyped]

from tests.docs.documents import BLOCKS, ROOT

pytestmark = pytest.mark.packages
COMMAND = re.compile(r"(?<![\w/-])aws ([a-z0-9-]+) ([a-z-]+)([^\n)|&>]*)")
OF_THE_CLI = {"query", "output", "region", "cli-input-json", "cli-read-timeout"}
NO_OPERATION = {("cloudformation", "deploy"), ("logs", "tail")}
"""Commands that the AWS CLI puts together from several operations."""

NUMBERS = {"integer": int, "long": int, "float": float, "double": float}


@dataclass(frozen=True, slots=True)
class AwsCommand:
    place: str
    service: str
    operation: str
    options: Mapping[str, list[str]]

    def __str__(self) -> str:
        return f"{self.place}:{self.operation}"


def commands() -> Iterator[AwsCommand]:
    for block in BLOCKS:
        if block.language == "bash":
            for service, operation, rest in COMMAND.findall(block.text.replace("\\\n", " ")):
                if (service, operation) not in NO_OPERATION:
                    yield AwsCommand(str(block), service, operation, options_of(shlex.split(rest)))


def options_of(words: list[str]) -> dict[str, list[str]]:
    return {
        word.removeprefix("--"): [*takewhile(lambda value: not value.startswith("--"), words[at + 1 :])]
        for at, word in enumerate(words)
        if word.startswith("--")
    }


def parameters_of(command: AwsCommand, shape: Shape) -> dict[str, object]:
    """Return the input of the operation. An option that the operation does not have is a ``KeyError``."""
    members = {xform_name(name, "-"): (name, member) for name, member in shape.members.items()}
    members |= {f"no-{option}": found for option, found in members.items() if found[1].type_name == "boolean"}
    parameters: dict[str, object] = {}
    for path in command.options.get("cli-input-json", ()):
        parameters |= json.loads((ROOT / path.removeprefix("file://")).read_text())
    for option, values in command.options.items():
        if option not in OF_THE_CLI:
            name, member = members[option]
            parameters[name] = value_of(values, member, is_on=not option.startswith("no-"))
    return parameters


def value_of(values: list[str], shape: Shape, *, is_on: bool = True) -> object:
    """Return the value of an option as the AWS CLI reads it: a flag, words, ``name=value,…`` or a file."""
    if shape.type_name == "boolean":
        return is_on
    if shape.type_name == "list":
        return [value_of([value], shape.member) for value in values]
    value = values[0]  # what may follow is the file of the answer
    if shape.type_name in {"map", "structure"}:
        pairs = dict(pair.split("=", 1) for pair in value.split(","))
        return {
            name: value_of([text], getattr(shape, "value", None) or shape.members[name]) for name, text in pairs.items()
        }
    number = NUMBERS.get(shape.type_name)
    return number(value) if number else text_of(value, shape)


def text_of(value: str, shape: Shape) -> str:
    if value.startswith("file://"):
        return (ROOT / value.removeprefix("file://")).read_text()
    enum = getattr(shape, "enum", [])
    assert not enum or value in enum, (value, enum)
    return re.sub(r"\$\w+", "a" * 40, value)


@pytest.mark.parametrize("command", [*commands()], ids=str)
def test_the_models_of_aws_take_a_command_of_the_guides(command: AwsCommand) -> None:
    model = botocore.session.get_session().get_service_model(command.service)
    operations = {xform_name(name, "-"): name for name in model.operation_names}
    shape = model.operation_model(operations[command.operation]).input_shape
    validate_parameters(parameters_of(command, shape), shape)
