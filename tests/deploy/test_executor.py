"""Execution of steps: waits with their reasons, roles that AWS does not know yet, and Docker."""

import base64
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agui_container.deploy.aws import Aws, AwsError, Response
from agui_container.deploy.executor import Executor, StepFailed
from agui_container.deploy.plan import gone, runtime_call, runtime_wait
from agui_container.deploy.source import SourceFolder
from agui_container.deploy.steps import CommandStep
from tests.requirements import requirement

ROLE_UNKNOWN = AwsError("CreateAgentRuntime", "ValidationException", "Role validation failed: cannot assume the role")
MISSING = AwsError("GetAgentRuntime", "ResourceNotFoundException", "no such runtime")
CREATE = runtime_call("make runtime weather", "CreateAgentRuntime", {"roleArn": "arn:aws:iam::123456789012:role/x"})
CREATED = {"agentRuntimeId": "weather-a1B2c3D4e5", "agentRuntimeArn": "arn", "agentRuntimeVersion": "1"}


class Answers(Aws):
    """Answers calls with one response or exception after the other."""

    def __init__(self, *answers: Response | AwsError) -> None:
        super().__init__("us-east-1")
        self.answers = list(answers)
        self.parameters: list[Mapping[str, object]] = []

    def call(self, service: str, operation: str, parameters: Mapping[str, object]) -> Response:
        self.parameters.append(parameters)
        answer = self.answers.pop(0)
        if isinstance(answer, AwsError):
            raise answer
        return answer


def status(name: str, reason: str = "") -> Response:
    return {**CREATED, "status": name, "failureReason": reason}


@requirement("deploy.waits")
def test_a_wait_ends_when_the_runtime_is_ready() -> None:
    pauses: list[float] = []
    aws = Answers(CREATED, status("CREATING"), status("READY"))
    executor = Executor(aws, pause=pauses.append)
    executor.run([CREATE, runtime_wait("${agentRuntimeId}")])
    assert aws.parameters[1] == {"agentRuntimeId": "weather-a1B2c3D4e5"}
    assert len(pauses) == 1
    assert executor.outputs["agentRuntimeVersion"] == "1"


@requirement("deploy.waits")
def test_a_failure_is_told_with_its_reason() -> None:
    aws = Answers(status("CREATING"), status("CREATE_FAILED", "the container did not become healthy"))
    with pytest.raises(StepFailed, match="CREATE_FAILED: the container did not become healthy"):
        Executor(aws, pause=lambda _: None).run([runtime_wait("x")])


@requirement("deploy.waits")
def test_a_deletion_has_ended_when_nothing_is_found() -> None:
    aws = Answers(status("DELETING"), MISSING)
    Executor(aws, pause=lambda _: None).run([gone("wait", "GetAgentRuntime", {"agentRuntimeId": "x"})])
    assert aws.answers == []


@requirement("deploy.waits")
def test_a_wait_without_an_end_is_given_up() -> None:
    aws = Answers(*[status("CREATING")] * 10_000)
    with pytest.raises(StepFailed, match="no end within 30 minutes"):
        Executor(aws, pause=lambda _: None).run([runtime_wait("x")])


@requirement("deploy.continues")
def test_a_new_role_that_is_not_known_yet_is_waited_for() -> None:
    pauses: list[float] = []
    aws = Answers(ROLE_UNKNOWN, ROLE_UNKNOWN, CREATED)
    Executor(aws, pause=pauses.append).run([CREATE])
    assert len(pauses) == 2
    with pytest.raises(StepFailed, match="Role validation failed"):
        Executor(Answers(*[ROLE_UNKNOWN] * 100), pause=lambda _: None).run([CREATE])


def write_command(folder: Path, status: int = 0) -> tuple[str, ...]:
    """A program that writes its arguments and its standard input to a file."""
    code = "import json, sys; json.dump([sys.argv[1:], sys.stdin.read()], open('seen.json', 'w')); sys.exit(%d)"
    (folder / "program.py").write_text(code % status)
    return (sys.executable, "program.py")


@requirement("deploy.docker")
def test_the_password_of_the_registry_is_on_the_standard_input_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    executor = Executor(Answers())
    executor.outputs["authorizationToken"] = base64.b64encode(b"AWS:word").decode()
    arguments = write_command(tmp_path)
    command = CommandStep(purpose="log in", arguments=(*arguments, "login"), token="${authorizationToken}")  # noqa: S106
    executor.run([command])
    assert json.loads((tmp_path / "seen.json").read_text()) == [["login"], "word"]
    assert command.shown() == {"command": (*arguments, "login")}


@requirement("deploy.docker")
def test_a_command_has_the_context_on_its_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = SourceFolder(tmp_path / "project")
    source.path.mkdir()
    (source.path / "agent.py").write_text("x")
    (source.path / ".env").write_text("KEY=word")
    command = CommandStep(purpose="build", arguments=("tar", "--extract"), body=source)
    Executor(Answers()).run([command])
    assert (tmp_path / "agent.py").read_text() == "x"
    assert (tmp_path / "Dockerfile").read_text() == source.dockerfile_text
    assert not (tmp_path / ".env").exists()


@requirement("deploy.docker")
def test_a_command_that_fails_ends_the_execution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = CommandStep(purpose="build the image", arguments=write_command(tmp_path, status=3))
    with pytest.raises(StepFailed, match=r"cannot build the image: .*status 3"):
        Executor(Answers()).run([command, runtime_wait("x")])
    with pytest.raises(StepFailed, match="No such file"):
        Executor(Answers()).run([CommandStep(purpose="build", arguments=("/nonexistent/docker",))])
