"""An image that Docker builds here: a command that fails is named, and the next run mends what it left."""

from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from tests.deploy.account import CONTROL, Account, runtimes
from tests.deploy.docker import FakeDocker
from tests.requirements import requirement

REGISTRY = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
COMMANDS = {"login *": "docker login --username AWS", "buildx build *": "docker buildx build --platform linux/arm64"}


def run(*arguments: str) -> int:
    return main(["deploy", "--no-test", *arguments])


def pushed(account: type[Account], calls: list[str]) -> str:
    """Put the image of the last call into the account, as the push of a real Docker does."""
    words = calls[-1].split()
    image = words[words.index("--tag") + 1]
    account("eu-central-1").push(image)
    return image


def assert_complete(account: type[Account], docker: FakeDocker) -> None:
    """Check that a runtime is ready, and that a further run has nothing to do."""
    [runtime] = runtimes()
    assert runtime["status"] == "READY"
    account.calls.clear()
    assert run("--builder", "docker") == 0
    assert account.calls == []
    assert docker.take_calls() == []


@requirement("deploy.continues", "deploy.docker")
@pytest.mark.parametrize("failing", COMMANDS)
def test_a_run_that_fails_at_any_command_of_docker_names_it_and_is_mended_by_the_next_one(
    project: Path, account: type[Account], docker: FakeDocker, capsys: pytest.CaptureFixture[str], failing: str
) -> None:
    docker.fail(failing)
    assert run("--builder", "docker") == 2
    shown = capsys.readouterr().err
    assert f"planted: {failing.split(maxsplit=1)[0]} gave up\n" in shown
    assert f"the command `{COMMANDS[failing]}" in shown
    assert "ended with status 1." in shown
    assert "The next run continues from here." in shown
    assert account.calls == ["ecr.CreateRepository"]
    docker.fail("")
    docker.take_calls()
    assert run("--builder", "docker") == 0
    assert "ecr.CreateRepository" not in account.calls[1:]
    calls = docker.take_calls()
    assert calls[0] == f"login --username AWS --password-stdin {REGISTRY}"
    image = pushed(account, calls)
    [runtime] = runtimes()
    assert runtime["agentRuntimeArtifact"]["containerConfiguration"]["containerUri"] == image
    assert_complete(account, docker)


@requirement("deploy.continues", "deploy.docker")
def test_an_image_that_was_pushed_before_the_command_failed_is_not_built_again(
    project: Path, account: type[Account], docker: FakeDocker
) -> None:
    docker.fail("buildx build *")
    assert run("--builder", "docker") == 2
    pushed(account, docker.take_calls())
    assert run("--builder", "docker") == 0
    assert docker.take_calls() == []
    assert_complete(account, docker)


@requirement("deploy.continues", "deploy.docker")
def test_a_change_whose_build_fails_leaves_the_runtime_as_it_was_until_the_next_run(
    project: Path, account: type[Account], docker: FakeDocker
) -> None:
    assert run("--builder", "docker") == 0
    pushed(account, docker.take_calls())
    (project / "agent.py").write_text("tools = []\n")
    account.calls.clear()
    docker.fail("buildx build *")
    assert run("--builder", "docker") == 2
    assert account.calls == []
    docker.fail("")
    assert run("--builder", "docker") == 0
    assert account.calls == [f"{CONTROL}.UpdateAgentRuntime"]
    pushed(account, docker.take_calls())
    assert_complete(account, docker)


@requirement("deploy.continues", "deploy.docker")
def test_docker_that_is_chosen_and_missing_is_named_and_another_builder_continues(
    project: Path,
    account: type[Account],
    docker: FakeDocker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (docker.folder / "docker").unlink()
    monkeypatch.setenv("PATH", str(docker.folder))
    assert run("--builder", "docker") == 2
    assert "cannot log in to the registry: [Errno 2] No such file or directory: 'docker'" in capsys.readouterr().err
    assert run() == 0
    assert "codebuild.StartBuild" in account.calls
    assert account.calls.count("ecr.CreateRepository") == 1
    assert_complete(account, docker)


@requirement("deploy.docker")
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
