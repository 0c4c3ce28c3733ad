"""Execution of a plan, step by step.

Rule: a step that fails ends the execution, and nothing is undone. The next plan continues from what exists then.
"""

import base64
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import jmespath  # type: ignore[import-untyped]

from agui_container.deploy.aws import Aws, AwsError, Response
from agui_container.deploy.steps import CallStep, CommandStep, Step, WaitStep, filled

POLL_SECONDS = 5.0
WAIT_SECONDS = 1_800.0
"""Seconds of pauses until a wait is given up. A build may take half an hour, a runtime some minutes."""

ROLE_SECONDS = 120.0
"""Seconds of pauses until a new role is known everywhere. Source: IAM is eventually consistent."""

Pause = Callable[[float], None]
Report = Callable[[Step, str], None]


class StepFailed(Exception):
    """A step failed. The message says which one, and why."""


class Executor:
    """Executes plans.

    Args:
        aws: calls of AWS.
        report: is told the step, the status while one is waited for, and each line that a command prints.
        pause: waits for some seconds.
    """

    def __init__(self, aws: Aws, report: Report = lambda _step, _status: None, pause: Pause = time.sleep) -> None:
        self._aws = aws
        self._report = report
        self._pause = pause
        self.outputs: dict[str, str] = {}

    def run(self, steps: Sequence[Step]) -> None:
        """Execute steps. Raises ``StepFailed``."""
        for step in steps:
            self._report(step, "")
            try:
                match step:
                    case CallStep():
                        self._call_with_new_role(step)
                    case WaitStep():
                        self._wait(step)
                    case CommandStep():
                        self._command(step)
            except AwsError as error:
                raise StepFailed(f"cannot {step.purpose}: {error}") from None

    def _call_with_new_role(self, call: CallStep) -> None:
        """Make a call. A role that was made just now may not be known to it yet."""
        left = ROLE_SECONDS
        while True:
            try:
                self._call(call)
            except AwsError as error:
                if not is_about_a_role(call, error) or left <= 0:
                    raise
                self._report(call, "waiting until the role is known")
                left -= POLL_SECONDS
                self._pause(POLL_SECONDS)
            else:
                return

    def _call(self, call: CallStep) -> Response:
        parameters = filled(call.parameters, self.outputs)
        body: Mapping[str, object] = {"Body": call.body.zipped()} if call.body else {}
        response = self._aws.call(call.service, call.operation, {**as_mapping(parameters), **body})
        for name, path in call.outputs.items():
            self.outputs[name] = str(jmespath.search(path, response))
        return response

    def _wait(self, wait: WaitStep) -> None:
        left = WAIT_SECONDS
        while left > 0:
            try:
                response = self._call(wait.call)
            except AwsError as error:
                if wait.done is None and error.code == "ResourceNotFoundException":
                    return
                raise
            status = jmespath.search(wait.value, response)
            if status == wait.done:
                return
            if status in wait.failed:
                reason = jmespath.search(wait.reason, response) or "AWS gives no reason"
                raise StepFailed(f"cannot {wait.purpose}: {status}: {reason}")
            self._report(wait, str(status))
            left -= POLL_SECONDS
            self._pause(POLL_SECONDS)
        raise StepFailed(f"cannot {wait.purpose}: no end within {WAIT_SECONDS / 60:g} minutes.")

    def _command(self, command: CommandStep) -> None:
        given = command.body.tarred() if command.body else b""
        if command.token:
            token = str(filled(command.token, self.outputs))
            given = base64.b64decode(token).partition(b":")[2]
        try:
            status = self._run(command, given)
        except OSError as error:
            raise StepFailed(f"cannot {command.purpose}: {error}") from None
        if status:
            shown = shlex.join(command.arguments)
            raise StepFailed(f"cannot {command.purpose}: the command `{shown}` ended with status {status}.")

    def _run(self, command: CommandStep, given: bytes) -> int:
        """Run a command, report each line of its output, and return its exit status."""
        with subprocess.Popen(  # noqa: S603 - docker, of the plan
            command.arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            assert process.stdin is not None  # noqa: S101 - a pipe
            assert process.stdout is not None  # noqa: S101 - a pipe
            with suppress(BrokenPipeError), process.stdin:
                process.stdin.write(given)
            for line in process.stdout:
                self._report(command, line.decode(errors="replace").rstrip())
        return process.returncode


def is_about_a_role(call: CallStep, error: AwsError) -> bool:
    """Return True if AWS refuses a call because it does not know a role yet, or may not assume it yet."""
    named = {"roleArn", "serviceRole"} & call.parameters.keys()
    refused = error.code in {"ValidationException", "InvalidInputException", "AccessDeniedException"}
    return bool(named) and refused and "role" in str(error).lower() and "assume" in str(error).lower()


def as_mapping(parameters: object) -> Mapping[str, object]:
    """Return parameters whose references are filled."""
    return parameters if isinstance(parameters, Mapping) else {}
