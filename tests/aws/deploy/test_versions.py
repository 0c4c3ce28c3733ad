"""Versions and endpoints of a deployment: forward, and back to a version that is named."""

from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from tests.aws.deploy.account import Account, runtimes, version_of


def run(*arguments: str) -> int:
    return main(["deploy", "--builder", "codebuild", *arguments])


def test_the_default_endpoint_goes_back_by_a_new_version_like_the_old_one(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    monkeypatch.setenv("AGUI_MAX_STEPS", "3")
    assert run() == 0
    assert run("--rollback", "1") == 0
    [runtime] = runtimes()
    assert runtime["agentRuntimeVersion"] == "3"
    assert "AGUI_MAX_STEPS" not in runtime["environmentVariables"]
    assert " version 3 is READY" in capsys.readouterr().out


def test_what_is_not_deployed_cannot_go_back(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--rollback", "1") == 2
    assert "stack agui-weather does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("is_lost", [False, True], ids=["refused", "response lost"])
@pytest.mark.usefixtures("project")
def test_an_endpoint_goes_back_to_the_version_that_is_named_however_often_it_is_asked_for(
    account: type[Account], monkeypatch: pytest.MonkeyPatch, *, is_lost: bool
) -> None:
    for number in range(1, 5):
        monkeypatch.setenv("AGUI_MAX_STEPS", str(number))
        assert run("--endpoint", "prod") == 0
    account.calls.clear()
    account.fail_at, account.is_lost = 1, is_lost
    assert run("--endpoint", "prod", "--rollback", "2") == 2
    account.fail_at = 0
    for _ in range(2):
        assert run("--endpoint", "prod", "--rollback", "2") == 0
        [runtime] = runtimes()
        assert version_of(runtime, "prod") == "2"
        assert runtime["environmentVariables"]["AGUI_MAX_STEPS"] == "4"


def test_a_new_version_does_not_move_an_endpoint(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--endpoint", "prod") == 0
    monkeypatch.setenv("AGUI_MAX_STEPS", "3")
    assert run() == 0
    [runtime] = runtimes()
    assert (runtime["agentRuntimeVersion"], version_of(runtime, "prod")) == ("2", "1")
