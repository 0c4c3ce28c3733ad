"""Steps of a plan: a call of AWS, a wait for its result, and a command of this machine.

Rule: a step is data that can be printed. ``${name}`` in it stands for a value that an earlier step returns.
"""

import re
from collections.abc import Mapping

from msgspec import Struct

from agui_container.deploy.source import SourceFolder

Parameters = Mapping[str, object]


class CallStep(Struct, frozen=True, kw_only=True):
    """A call of boto3.

    Attributes:
        purpose: words for people.
        service: of boto3, such as ``ecr``.
        operation: as AWS names it, such as ``CreateRepository``.
        parameters: of the call.
        outputs: JMESPath in the response by the name of the value.
        body: a folder whose zip is the parameter ``Body``.
    """

    purpose: str
    service: str
    operation: str
    parameters: Parameters
    outputs: Mapping[str, str] = {}
    body: SourceFolder | None = None

    def shown(self) -> dict[str, object]:
        """Return the step as JSON."""
        body = {"Body": f"zip of {self.body.path}"} if self.body else {}
        return {"service": self.service, "operation": self.operation, "parameters": {**self.parameters, **body}}


class WaitStep(Struct, frozen=True, kw_only=True):
    """Calls until a value is the wanted one.

    Attributes:
        call: what is repeated.
        value: JMESPath of the value.
        done: value that ends the wait. None waits until the resource does not exist.
        failed: values that end the wait with a failure.
        reason: JMESPath of the reason of a failure.
    """

    call: CallStep
    value: str
    done: str | None
    failed: tuple[str, ...]
    reason: str

    @property
    def purpose(self) -> str:
        """Words for people."""
        return self.call.purpose

    def shown(self) -> dict[str, object]:
        """Return the step as JSON."""
        return {**self.call.shown(), "until": {self.value: self.done or "ResourceNotFoundException"}}


class CommandStep(Struct, frozen=True, kw_only=True):
    """A command of this machine.

    Attributes:
        purpose: words for people.
        arguments: the program and its arguments.
        token: authorization token of ECR, whose password is its standard input.
        body: a folder whose tar is its standard input.
    """

    purpose: str
    arguments: tuple[str, ...]
    token: str = ""
    body: SourceFolder | None = None

    def shown(self) -> dict[str, object]:
        """Return the step as JSON."""
        body = {"stdin": f"tar of {self.body.path}"} if self.body else {}
        return {"command": self.arguments, **body}


Step = CallStep | WaitStep | CommandStep

REFERENCE = re.compile(r"\$\{(\w+)\}")


def filled(value: object, outputs: Mapping[str, str]) -> object:
    """Return a value of a step with the values of earlier steps in place of ``${name}``.

    Only a whole string is a reference, so a ``${…}`` in the text of a user stays.
    """
    match value:
        case str():
            found = REFERENCE.fullmatch(value)
            return outputs.get(found[1], value) if found else value
        case Mapping():
            return {name: filled(each, outputs) for name, each in value.items()}
        case list() | tuple():
            return [filled(each, outputs) for each in value]
    return value
