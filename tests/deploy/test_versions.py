"""Versions and endpoints of a deployment: forward, and back once."""

import json
from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from tests.deploy.account import CONTROL, Account, runtimes, version_of
from tests.requirements import requirement


def run(*arguments: str) -> int:
    return main(["deploy", "--builder", "codebuild", "--no-test", *arguments])


def make_versions(monkeypatch: pytest.MonkeyPatch, count: int, *arguments: str) -> None:
    """Make versions that differ in a setting."""
    for number in range(1, count + 1):
        monkeypatch.setenv("AGUI_MAX_STEPS", str(number))
        assert run(*arguments) == 0


@requirement("deploy.continues", "deploy.versions")
@pytest.mark.parametrize("is_lost", [False, True], ids=["refused", "response lost"])
def test_a_rollback_to_a_version_may_be_repeated(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch, *, is_lost: bool
) -> None:
    for steps in ("2", "3", "4"):
        monkeypatch.setenv("AGUI_MAX_STEPS", steps)
        assert run("--endpoint", "prod") == 0
    account.calls.clear()
    account.fail_at, account.is_lost = 1, is_lost
    assert run("--endpoint", "prod", "--rollback", "2") == 2
    account.fail_at = 0
    assert run("--endpoint", "prod", "--rollback", "2") == 0
    [runtime] = runtimes()
    assert version_of(runtime, "prod") == "2"


@requirement("deploy.versions")
def test_an_endpoint_follows_the_new_version_and_goes_back(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--endpoint", "prod") == 0
    monkeypatch.setenv("AGUI_MAX_STEPS", "3")
    assert run("--endpoint", "prod") == 0
    [runtime] = runtimes()
    assert version_of(runtime, "prod") == "2"
    account.calls.clear()
    capsys.readouterr()
    assert run("--endpoint", "prod", "--rollback") == 0
    assert "/runtime-endpoint/prod version 1 is READY" in capsys.readouterr().out
    assert account.calls == [f"{CONTROL}.UpdateAgentRuntimeEndpoint"]
    assert version_of(runtime, "prod") == "1"


@requirement("deploy.versions")
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


@requirement("deploy.versions")
def test_a_first_version_has_none_to_go_back_to(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--rollback") == 2
    assert "does not exist" in capsys.readouterr().err
    assert run() == 0
    assert run("--rollback") == 2
    assert "there is none to go back to" in capsys.readouterr().err


@requirement("deploy.continues", "deploy.versions")
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
    make_versions(monkeypatch, 4, "--endpoint", endpoint)
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


@requirement("deploy.versions")
def test_an_endpoint_goes_further_back_by_the_version_that_the_message_names(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_versions(monkeypatch, 3, "--endpoint", "prod")
    assert run("--endpoint", "prod", "--rollback") == 0
    capsys.readouterr()
    assert run("--endpoint", "prod", "--rollback") == 2
    assert "such as --rollback 1." in capsys.readouterr().err
    assert run("--endpoint", "prod", "--rollback", "1") == 0
    [runtime] = runtimes()
    assert version_of(runtime, "prod") == "1"


@requirement("deploy.plan")
def test_a_plan_names_a_version_that_is_not_made_yet_in_words(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_versions(monkeypatch, 2, "--endpoint", "prod")
    monkeypatch.setenv("AGUI_MAX_STEPS", "9")
    capsys.readouterr()
    assert run("--endpoint", "prod", "--plan") == 0
    planned = capsys.readouterr().out
    assert "+ point endpoint prod to the new version\n" in planned
    assert "${" not in planned
    assert run("--endpoint", "prod", "--rollback", "1", "--plan") == 0
    assert "+ point endpoint prod to version 1\n" in capsys.readouterr().out
