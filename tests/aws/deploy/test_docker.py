"""An image that Docker builds here: a command that fails is named, and the next run mends what it left."""

from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from tests.aws.deploy.account import Account, runtimes
from tests.aws.deploy.docker import FakeDocker

REGISTRY = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
COMMANDS = {"login *": "docker login --username AWS", "buildx build *": "docker buildx build --platform linux/arm64"}


def run(*arguments: str) -> int:
    return main(["deploy", *arguments])


@pytest.mark.parametrize("failing", COMMANDS)
def test_a_run_that_fails_at_any_command_of_docker_names_it_and_is_mended_by_the_next_one(
    project: Path, account: type[Account], docker: FakeDocker, capfd: pytest.CaptureFixture[str], failing: str
) -> None:
    docker.fail(failing)
    assert run("--builder", "docker") == 2
    shown = capfd.readouterr().err
    assert f"planted: {failing.split(maxsplit=1)[0]} gave up\n" in shown
    assert f"the command `{COMMANDS[failing]}" in shown
    assert "ended with status 1." in shown
    assert account.calls == ["ecr.CreateRepository"]
    assert not account.stacks.stacks
    docker.fail("")
    docker.take_calls()
    assert run("--builder", "docker") == 0
    assert "ecr.CreateRepository" not in account.calls[1:]
    calls = docker.take_calls()
    assert calls[0] == f"login --username AWS --password-stdin {REGISTRY}"
    words = calls[-1].split()
    image = words[words.index("--tag") + 1]
    account.push(image)  # as the push of a real Docker does
    [runtime] = runtimes()
    assert runtime["status"] == "READY"
    assert runtime["agentRuntimeArtifact"]["containerConfiguration"]["containerUri"] == image
    account.calls.clear()
    assert run("--builder", "docker") == 0
    assert (account.calls, docker.take_calls()) == ([], [])


@pytest.mark.parametrize(
    ("failing", "builder"), [("", "docker"), ("buildx version", "codebuild"), ("info", "codebuild")]
)
def test_codebuild_builds_where_docker_has_no_buildx_or_its_engine_does_not_run(
    project: Path, account: type[Account], docker: FakeDocker, failing: str, builder: str
) -> None:
    docker.fail(failing)
    assert run() == 0
    assert ("codebuild.StartBuild" in account.calls) is (builder == "codebuild")
    built = [call for call in docker.take_calls() if call.startswith("buildx build")]
    assert len(built) == (1 if builder == "docker" else 0)
    [runtime] = runtimes()
    assert runtime["status"] == "READY"
