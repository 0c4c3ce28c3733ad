"""``agui deploy`` from an empty account to a runtime, and on: changes, failures and the end."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from agui_container.deploy.existing import ExistingReader
from tests.deploy.account import CONTROL, Account, call, runtimes, version_of
from tests.deploy.docker import FakeDocker
from tests.requirements import requirement

DEPLOY = ("deploy", "--builder", "codebuild", "--no-test")
FIRST = [
    "ecr.CreateRepository",
    "s3.CreateBucket",
    "s3.PutPublicAccessBlock",
    "iam.CreateRole",
    "iam.PutRolePolicy",
    "codebuild.CreateProject",
    "s3.PutObject",
    "codebuild.StartBuild",
    "iam.CreateRole",
    "iam.PutRolePolicy",
    f"{CONTROL}.CreateAgentRuntime",
]


def run(*arguments: str) -> int:
    return main([*DEPLOY, *arguments])


def set_deploy(project: Path, text: str) -> None:
    with (project / "agui.toml").open("a") as file:
        file.write(f"\n{text}\n")


@requirement("deploy.makes")
def test_a_first_run_makes_everything_and_a_second_one_changes_nothing(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    assert account.calls == FIRST
    shown = capsys.readouterr().err.splitlines()
    assert (shown[0], shown[-1]) == (
        "[1/13] make repository agui-weather",
        "[13/13] wait until the runtime is ready",
    )
    [runtime] = runtimes()
    assert (runtime["agentRuntimeName"], runtime["status"]) == ("weather", "READY")
    assert runtime["protocolConfiguration"] == {"serverProtocol": "AGUI"}
    assert runtime["environmentVariables"]["AGUI_TOOLS"] == "agent:tools"
    account.calls.clear()
    assert run() == 0
    assert account.calls == []


@requirement("deploy.makes")
def test_only_what_differs_is_changed(project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run() == 0
    account.calls.clear()
    monkeypatch.setenv("AGUI_MAX_STEPS", "3")
    assert run() == 0
    assert account.calls == [f"{CONTROL}.UpdateAgentRuntime"]
    [runtime] = runtimes()
    assert runtime["environmentVariables"]["AGUI_MAX_STEPS"] == "3"
    account.calls.clear()
    (project / "agent.py").write_text("tools = []\n")
    assert run() == 0
    changed = ["s3.PutPublicAccessBlock", "codebuild.UpdateProject", "s3.PutObject", "codebuild.StartBuild"]
    assert account.calls == [*changed, f"{CONTROL}.UpdateAgentRuntime"]


@requirement("deploy.plan")
def test_a_plan_says_what_would_change_and_changes_nothing(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--plan") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "+ make repository agui-weather" in lines
    assert "+ make runtime weather" in lines
    assert account.calls == []
    assert run() == 0
    capsys.readouterr()
    assert run("--plan") == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("AGUI_MAX_STEPS", "3")
    set_deploy(project, "[deploy]\nidle_timeout = 300")
    account.calls.clear()
    assert run("--plan") == 0
    changed = "AGUI_MAX_STEPS, agentRuntimeArtifact, lifecycleConfiguration"
    assert f"+ update runtime weather: {changed}" in capsys.readouterr().out.splitlines()
    assert account.calls == []


@requirement("deploy.makes")
@pytest.mark.parametrize("options", [("--builder", "docker"), ("--image", "public.ecr.aws/a/b:1")], ids=" ".join)
def test_rights_for_codebuild_are_needed_only_where_it_builds(
    project: Path, account: type[Account], docker: FakeDocker, options: tuple[str, str]
) -> None:
    account.refused = ("codebuild", "s3")
    assert run() == 2
    assert run(*options) == 0
    [runtime] = runtimes()
    assert runtime["status"] == "READY"


ALL = [*FIRST, f"{CONTROL}.CreateAgentRuntimeEndpoint"]
CHANGES = [
    "s3.PutPublicAccessBlock",
    "codebuild.UpdateProject",
    "s3.PutObject",
    "codebuild.StartBuild",
    "iam.PutRolePolicy",
    f"{CONTROL}.UpdateAgentRuntime",
    f"{CONTROL}.UpdateAgentRuntimeEndpoint",
]
DESTROY = [
    *("DeleteAgentRuntimeEndpoint", "DeleteAgentRuntime", "DeleteRolePolicy", "DeleteRole", "DeleteRolePolicy"),
    *("DeleteRole", "DeleteProject", "DeleteObject", "DeleteBucket", "DeleteRepository"),
]


@requirement("deploy.continues", "deploy.destroys")
@pytest.mark.parametrize("is_lost", [False, True], ids=["refused", "response lost"])
@pytest.mark.parametrize("number", range(1, len(ALL) + 1), ids=ALL)
def test_a_run_that_fails_at_any_call_is_mended_by_the_next_one(
    project: Path, account: type[Account], number: int, *, is_lost: bool
) -> None:
    account.fail_at, account.is_lost = number, is_lost
    assert run("--endpoint", "prod") == 2
    account.fail_at = 0
    assert run("--endpoint", "prod") == 0
    [runtime] = runtimes()
    assert runtime["status"] == "READY"
    account.calls.clear()
    assert run("--endpoint", "prod") == 0
    assert account.calls == []


@requirement("deploy.continues")
@pytest.mark.parametrize("is_lost", [False, True], ids=["refused", "response lost"])
def test_a_change_that_fails_at_any_call_is_mended_by_the_next_one(
    project: Path, account: type[Account], *, is_lost: bool
) -> None:
    assert run("--endpoint", "prod") == 0
    set_deploy(project, '[deploy]\npolicy = "policy.json"')
    for number in range(1, len(CHANGES) + 1):
        (project / "agent.py").write_text(f"tools = []  # {number}\n")
        statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::mine/{number}"}
        (project / "policy.json").write_text(json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
        account.calls.clear()
        account.fail_at, account.is_lost = number, is_lost
        assert run("--endpoint", "prod") == 2
        account.fail_at = 0
        assert run("--endpoint", "prod") == 0
        assert {*account.calls} == {*CHANGES}
        [runtime] = runtimes()
        assert version_of(runtime, "prod") == runtime["agentRuntimeVersion"] == str(number + 1)
        account.calls.clear()
        assert run("--endpoint", "prod") == 0
        assert account.calls == []


@requirement("deploy.continues", "deploy.destroys")
@pytest.mark.parametrize("is_lost", [False, True], ids=["refused", "response lost"])
def test_a_deletion_that_fails_at_any_call_is_mended_by_the_next_one(
    project: Path, account: type[Account], *, is_lost: bool
) -> None:
    for number in range(1, len(DESTROY) + 1):
        assert run("--endpoint", "prod") == 0
        account.calls.clear()
        account.fail_at, account.is_lost = number, is_lost
        assert run("--destroy", "--yes") == 2
        account.fail_at = 0
        assert run("--destroy", "--yes") == 0
        assert {call.rpartition(".")[2] for call in account.calls} == {*DESTROY}
        assert nothing_is_left()


def nothing_is_left() -> bool:
    """True if the account has no resource."""
    listed = (
        runtimes(),
        call("ecr", "DescribeRepositories")["repositories"],
        call("iam", "ListRoles")["Roles"],
        call("s3", "ListBuckets")["Buckets"],
        call("codebuild", "ListProjects")["projects"],
    )
    return not any(listed)


@requirement("deploy.destroys")
def test_nothing_is_deleted_without_a_yes(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    account.calls.clear()
    assert run("--destroy") == 0
    assert "delete the runtime" in capsys.readouterr().out
    assert account.calls == []


ROLE = "arn:aws:iam::123456789012:role/x"
BUCKET = f"agui-{sha256(b'weather').hexdigest()[:8]}-123456789012-eu-central-1"
TAKEN: dict[str, tuple[str, str, dict[str, object]]] = {
    "repository agui-weather": ("ecr", "CreateRepository", {"repositoryName": "agui-weather"}),
    "role agui-weather-eu-central-1": (
        *("iam", "CreateRole"),
        {"RoleName": "agui-weather-eu-central-1", "AssumeRolePolicyDocument": "{}"},
    ),
    f"bucket {BUCKET}": (
        *("s3", "CreateBucket"),
        {"Bucket": BUCKET, "CreateBucketConfiguration": {"LocationConstraint": "eu-central-1"}},
    ),
    "project agui-weather-build": (
        *("codebuild", "CreateProject"),
        {
            "name": "agui-weather-build",
            "source": {"type": "S3", "location": "mine/source.zip"},
            "artifacts": {"type": "NO_ARTIFACTS"},
            "environment": {"type": "ARM_CONTAINER", "image": "mine", "computeType": "BUILD_GENERAL1_SMALL"},
            "serviceRole": ROLE,
        },
    ),
    "runtime weather": (
        *(CONTROL, "CreateAgentRuntime"),
        {
            "agentRuntimeName": "weather",
            "roleArn": ROLE,
            "networkConfiguration": {"networkMode": "PUBLIC"},
            "agentRuntimeArtifact": {"containerConfiguration": {"containerUri": "public.ecr.aws/a/b:1"}},
        },
    ),
}


@requirement("deploy.owner")
@pytest.mark.parametrize("options", [(), ("--destroy", "--yes")], ids=["deploy", "destroy"])
@pytest.mark.parametrize("taken", TAKEN)
def test_nothing_of_others_is_taken_over_or_deleted(
    project: Path,
    account: type[Account],
    capsys: pytest.CaptureFixture[str],
    taken: str,
    options: tuple[str, ...],
) -> None:
    service, operation, parameters = TAKEN[taken]
    call(service, operation, **parameters)
    account.calls.clear()
    assert run(*options) == 2
    assert f"{taken} exists, and this deployment did not make it" in capsys.readouterr().err
    assert account.calls == []


@requirement("deploy.status")
def test_status_and_logs_say_that_there_is_no_runtime(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("status", "logs"):
        assert main([command]) == 2
        assert "runtime weather does not exist" in capsys.readouterr().err


@requirement("deploy.status")
def test_logs_are_those_of_the_endpoint_and_of_the_time_that_is_asked_for(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    [runtime] = runtimes()
    capsys.readouterr()
    assert main(["logs"]) == 0
    assert capsys.readouterr().out == ""
    group = f"/aws/bedrock-agentcore/runtimes/{runtime['agentRuntimeId']}-DEFAULT"
    call("logs", "CreateLogGroup", logGroupName=group)
    call("logs", "CreateLogStream", logGroupName=group, logStreamName="s")
    now = int(runtime["lastUpdatedAt"].timestamp() * 1_000)
    events = [{"timestamp": now - 3_600_000, "message": "old"}, {"timestamp": now, "message": "run ended\x1b[2J"}]
    call("logs", "PutLogEvents", logGroupName=group, logStreamName="s", logEvents=events)
    assert main(["logs", "--since", "30m"]) == 0
    assert capsys.readouterr().out == "run ended\ufffd[2J\n"
    assert main(["logs", "--since", "2h"]) == 0
    assert capsys.readouterr().out.startswith("old\n")
    assert main(["logs", "--since", "2h", "--filter", "old"]) == 0
    assert capsys.readouterr().out == "old\n"
    assert main(["logs", "--since", "2h", "--endpoint", "prod"]) == 0
    assert capsys.readouterr().out == ""


@requirement("deploy.status")
def test_logs_follow_with_each_new_line_once_until_ctrl_c(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--endpoint", "prod") == 0
    [runtime] = runtimes()
    log = {"logGroupName": f"/aws/bedrock-agentcore/runtimes/{runtime['agentRuntimeId']}-prod", "logStreamName": "s"}
    call("logs", "CreateLogGroup", logGroupName=log["logGroupName"])
    call("logs", "CreateLogStream", **log)
    lines = ["first", "second"]

    def pause(_: float) -> None:
        if not lines:
            raise KeyboardInterrupt
        at = int(runtime["lastUpdatedAt"].timestamp() * 1_000)
        call("logs", "PutLogEvents", **log, logEvents=[{"timestamp": at, "message": lines.pop(0)}])

    monkeypatch.setattr("time.sleep", pause)
    capsys.readouterr()
    assert main(["logs", "--endpoint", "prod", "--follow"]) != 0
    assert capsys.readouterr().out == "first\nsecond\n"


@requirement("deploy.status")
def test_the_status_of_a_runtime_that_is_not_ready_is_1(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    [runtime] = runtimes()
    failed = {**runtime, "status": "UPDATE_FAILED", "failureReason": "the container did not become healthy"}
    monkeypatch.setattr(ExistingReader, "runtime", lambda _: failed)
    capsys.readouterr()
    assert main(["status"]) == 1
    shown = capsys.readouterr().out
    assert "status  UPDATE_FAILED" in shown
    assert "reason  the container did not become healthy" in shown


@requirement("deploy.makes")
def test_an_image_and_a_role_of_yours_are_used_and_not_deleted(project: Path, account: type[Account]) -> None:
    image = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/mine:1"
    set_deploy(project, f'[deploy]\nimage = "{image}"\nrole = "arn:aws:iam::123456789012:role/mine"')
    assert run() == 0
    assert account.calls == [f"{CONTROL}.CreateAgentRuntime"]
    [runtime] = runtimes()
    assert runtime["roleArn"] == "arn:aws:iam::123456789012:role/mine"
    assert runtime["agentRuntimeArtifact"]["containerConfiguration"]["containerUri"] == image
    assert run("--destroy", "--yes") == 0
    assert account.calls[1:] == [f"{CONTROL}.DeleteAgentRuntime"]


@requirement("deploy.makes")
def test_a_push_makes_the_image_only_and_prints_its_uri(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--push") == 0
    assert account.calls == FIRST[:8]
    uri = capsys.readouterr().out.strip()
    assert uri.startswith("123456789012.dkr.ecr.eu-central-1.amazonaws.com/agui-weather:")
