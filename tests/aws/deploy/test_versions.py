"""Versions and endpoints of a deployment: forward, and back once."""

import json
from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from tests.aws.deploy.account import Account, runtimes, version_of


def run(*arguments: str) -> int:
    return main(["deploy", "--builder", "codebuild", "--no-test", *arguments])


def test_the_default_endpoint_goes_back_by_a_new_version_like_the_old_one(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    monkeypatch.setenv("AGUI_MAX_STEPS", "3")
    assert run() == 0
    assert run("--rollback") == 0
    [runtime] = runtimes()
    assert runtime["agentRuntimeVersion"] == "3"
    assert "AGUI_MAX_STEPS" not in runtime["environmentVariables"]
    capsys.readouterr()
    assert main(["status", "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["version"], status["versions"], status["status"]) == ("3", [3, 2, 1], "READY")


def test_a_first_version_has_none_to_go_back_to(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--rollback") == 2
    assert "does not exist" in capsys.readouterr().err
    assert run() == 0
    assert run("--rollback") == 2
    assert "there is none to go back to" in capsys.readouterr().err


@pytest.mark.parametrize("is_lost", [False, True], ids=["refused", "response lost"])
@pytest.mark.parametrize("endpoint", ["prod", "DEFAULT"])
@pytest.mark.usefixtures("project")
def test_a_rollback_without_a_version_goes_back_once_however_often_it_is_repeated(
    account: type[Account],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    endpoint: str,
    *,
    is_lost: bool,
) -> None:
    for number in range(1, 5):
        monkeypatch.setenv("AGUI_MAX_STEPS", str(number))
        assert run("--endpoint", endpoint) == 0
    account.calls.clear()
    account.fail_at, account.is_lost = 1, is_lost
    assert run("--endpoint", endpoint, "--rollback") == 2
    account.fail_at = 0
    assert run("--endpoint", endpoint, "--rollback") == (2 if is_lost else 0)
    account.calls.clear()
    capsys.readouterr()
    assert run("--endpoint", endpoint, "--rollback") == 2
    assert "it has gone back already" in capsys.readouterr().err
    assert account.calls == []
    [runtime] = runtimes()
    if endpoint == "prod":
        assert version_of(runtime, "prod") == "3"
    assert runtime["environmentVariables"]["AGUI_MAX_STEPS"] == ("4" if endpoint == "prod" else "3")
