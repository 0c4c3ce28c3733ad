"""``agui deploy`` from an empty account to a runtime, and on: changes, failures and the end."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agui_container.aws.deploy import image
from agui_container.aws.deploy.stack import Response
from agui_container.cli.command_line import main
from tests.aws.deploy.account import Account, call, runtimes, version_of
from tests.aws.deploy.docker import FakeDocker

DEPLOY = ("deploy", "--builder", "codebuild")
MADE = "cloudformation.ExecuteChangeSet"
BUILT = ["s3.PutObject", "codebuild.StartBuild"]
FIRST = ["ecr.CreateRepository", MADE, *BUILT, MADE]
"""The stack has the project first, and then, with the image, the rest."""


def run(*arguments: str) -> int:
    return main([*DEPLOY, *arguments])


def set_deploy(project: Path, text: str) -> None:
    with (project / "agui.toml").open("a") as file:
        file.write(f"\n{text}\n")


def test_a_first_run_makes_everything_and_a_second_one_changes_nothing(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    assert account.calls == FIRST
    shown = capsys.readouterr().err.splitlines()
    assert (shown[0], shown[-1]) == ("make repository agui-weather", "change stack agui-weather")
    [runtime] = runtimes()
    assert (runtime["agentRuntimeName"], runtime["status"]) == ("weather", "READY")
    assert runtime["protocolConfiguration"] == {"serverProtocol": "AGUI"}
    assert runtime["environmentVariables"]["AGUI_TOOLS"] == "agent:tools"
    assert account.stacks.stacks["agui-weather"]["Tags"] == [{"Key": "agui-deploy", "Value": "weather"}]
    account.calls.clear()
    assert run() == 0
    assert account.calls == []
    assert "Nothing differs." in capsys.readouterr().err


def test_only_what_differs_is_changed(project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run() == 0
    account.calls.clear()
    monkeypatch.setenv("AGUI_MAX_STEPS", "3")
    assert run() == 0
    assert account.calls == [MADE]
    [runtime] = runtimes()
    assert runtime["environmentVariables"]["AGUI_MAX_STEPS"] == "3"
    account.calls.clear()
    (project / "agent.py").write_text("tools = []\n")
    assert run() == 0
    assert account.calls == [*BUILT, MADE]
    set_deploy(project, '[deploy.tags]\nteam = "weather"')
    assert run("--builder", "docker", "--image", "public.ecr.aws/a/b:1") == 0
    assert {"Key": "team", "Value": "weather"} in account.stacks.stacks["agui-weather"]["Tags"]


def test_a_plan_says_what_would_change_and_changes_nothing(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--plan") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "+ make repository agui-weather" in lines
    assert "+ make AWS::BedrockAgentCore::Runtime Runtime" in lines
    assert account.calls == []
    assert run() == 0
    capsys.readouterr()
    assert run("--plan") == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("AGUI_MAX_STEPS", "3")
    set_deploy(project, "[deploy]\nidle_timeout = 300")
    account.calls.clear()
    assert run("--plan", "--endpoint", "prod") == 0
    build, runtime, endpoint = capsys.readouterr().out.splitlines()
    assert build.startswith("+ build and push agui-weather:")
    assert runtime == (
        "~ change AWS::BedrockAgentCore::Runtime Runtime: AgentRuntimeArtifact/ContainerConfiguration/ContainerUri, "
        "EnvironmentVariables/AGUI_MAX_STEPS, LifecycleConfiguration/IdleRuntimeSessionTimeout"
    )
    assert endpoint == "+ make AWS::BedrockAgentCore::RuntimeEndpoint Endpointprod"
    assert account.calls == []


def test_the_runtime_gets_the_memory_that_the_stack_has_made(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    set_deploy(project, "[deploy]\nmemory_days = 30")
    assert run() == 0
    [runtime] = runtimes()
    assert runtime["environmentVariables"]["AGUI_STORE"] == "agentcore-memory:weather-a1B2c3D4e5"
    capsys.readouterr()
    assert run("--destroy", "--plan") == 0
    assert "- delete AWS::BedrockAgentCore::Memory weather-a1B2c3D4e5" in capsys.readouterr().out


@pytest.mark.parametrize("is_lost", [False, True], ids=["refused", "response lost"])
@pytest.mark.parametrize("number", range(1, len(FIRST) + 1))
def test_a_run_that_fails_at_any_call_is_mended_by_the_next_one(
    project: Path, account: type[Account], number: int, *, is_lost: bool
) -> None:
    account.fail_at, account.is_lost = number, is_lost
    assert run("--endpoint", "prod") == 2
    account.fail_at = 0
    assert run("--endpoint", "prod") == 0
    [runtime] = runtimes()
    assert version_of(runtime, "prod") == runtime["agentRuntimeVersion"] == "1"
    account.calls.clear()
    assert run("--endpoint", "prod") == 0
    assert account.calls == []


@pytest.mark.parametrize("builder", ["docker", "codebuild"])
def test_a_stack_that_fails_names_its_first_failure_and_is_made_by_the_next_run(
    project: Path, account: type[Account], docker: FakeDocker, capsys: pytest.CaptureFixture[str], builder: str
) -> None:
    account.stacks.failing = "Runtime"
    assert run("--builder", builder) == 2
    assert "Runtime: planted" in capsys.readouterr().err
    assert runtimes() == []
    account.stacks.failing = ""
    assert run("--builder", builder) == 0
    assert len(runtimes()) == 1


def test_a_project_is_added_to_a_stack_whose_image_docker_has_built(
    project: Path, account: type[Account], docker: FakeDocker
) -> None:
    assert run("--builder", "docker") == 0
    [runtime] = runtimes()
    account.calls.clear()
    (project / "agent.py").write_text("tools = []\n")
    assert run() == 0
    assert account.calls == FIRST[1:]
    [changed] = runtimes()
    assert (runtime["agentRuntimeVersion"], changed["agentRuntimeVersion"]) == ("1", "2")
    account.calls.clear()
    assert run("--builder", "docker") == 0
    assert account.calls == []


def test_everything_is_deleted_also_after_a_deletion_that_failed(project: Path, account: type[Account]) -> None:
    assert run("--endpoint", "prod") == 0
    for number, is_lost in ((1, False), (2, False), (2, True), (1, False)):
        account.calls.clear()
        account.fail_at, account.is_lost = number, is_lost
        assert run("--destroy", "--yes") == 2
    account.fail_at = 0
    assert run("--destroy", "--yes") == 0
    repositories, buckets = call("ecr", "DescribeRepositories")["repositories"], call("s3", "ListBuckets")["Buckets"]
    projects = call("codebuild", "ListProjects")["projects"]
    assert not any((runtimes(), account.stacks.stacks, repositories, buckets, projects))


def test_nothing_is_deleted_without_a_yes(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    account.calls.clear()
    assert run("--destroy") == 0
    assert "- delete AWS::BedrockAgentCore::Runtime" in capsys.readouterr().out
    assert account.calls == []


@pytest.mark.parametrize("name", ["my-prod", "1x", "a" * 49])
def test_an_endpoint_that_aws_would_refuse_is_named_before_anything_is_made(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run("--endpoint", name) == 2
    assert f"'{name}' must begin with a letter" in capsys.readouterr().err
    assert account.calls == []


@pytest.mark.parametrize("options", [(), ("--destroy", "--yes"), ("--plan",)], ids=["deploy", "destroy", "plan"])
@pytest.mark.parametrize("taken", ["repository agui-weather", "stack agui-weather"])
def test_nothing_of_others_is_taken_over_or_deleted(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], taken: str, options: tuple[str, ...]
) -> None:
    if taken.startswith("stack"):
        account.stacks.stacks["agui-weather"] = {"StackStatus": "CREATE_COMPLETE", "Tags": []}
    else:
        call("ecr", "CreateRepository", repositoryName="agui-weather")
    assert run(*options) == 2
    assert f"{taken} exists, and this deployment did not make it" in capsys.readouterr().err
    assert account.calls == []


@pytest.mark.parametrize(("endpoint", "suffix"), [("DEFAULT", ""), ("prod", "/runtime-endpoint/prod")])
def test_the_command_says_how_to_call_an_endpoint_and_where_its_log_is(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], endpoint: str, suffix: str
) -> None:
    tokens = ('auth = "jwt"', 'auth_discovery_url = "https://i.example/.well-known/openid-configuration"')
    for lines, option in (((), ""), ((*tokens, 'auth_allowed_clients = ["me"]'), ' --token "$TOKEN"')):
        (project / "agui.toml").write_text("\n".join(lines))
        assert run("--endpoint", endpoint) == 0
        [runtime] = runtimes()
        arn = f"{runtime['agentRuntimeArn']}{suffix}"
        state, *calls = filter(None, capsys.readouterr().out.splitlines())
        assert state == f"{arn} version {runtime['agentRuntimeVersion']} is READY"
        assert calls[:3] == [
            f"agui invoke {arn}{option} hello",
            f"agui chat {arn}{option}",
            f"agui chat --web {arn}{option}",
        ]
        group = f"/aws/bedrock-agentcore/runtimes/{runtime['agentRuntimeId']}-{endpoint}"
        assert calls[3] == f"aws logs tail {group} --follow"


def test_an_image_and_a_role_of_yours_are_used_and_not_deleted(project: Path, account: type[Account]) -> None:
    image = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/mine:1"
    set_deploy(project, f'[deploy]\nimage = "{image}"\nrole = "arn:aws:iam::123456789012:role/mine"')
    assert run() == 0
    assert account.calls == [MADE]
    [runtime] = runtimes()
    assert runtime["roleArn"] == "arn:aws:iam::123456789012:role/mine"
    assert runtime["agentRuntimeArtifact"]["containerConfiguration"]["containerUri"] == image
    assert run("--destroy", "--yes") == 0
    assert account.calls[1:] == ["cloudformation.DeleteStack"]


def test_a_push_makes_the_image_only_and_prints_its_uri(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--push") == 0
    assert account.calls == FIRST[:4]
    uri = capsys.readouterr().out.strip()
    assert uri.startswith("123456789012.dkr.ecr.eu-central-1.amazonaws.com/agui-weather:")


def test_a_change_without_an_end_is_named_and_given_up(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    account.stacks.is_stuck = True
    assert run("--image", "public.ecr.aws/a/b:1") == 2
    shown = capsys.readouterr().err
    assert "make stack agui-weather\n" in shown
    assert "cannot make stack agui-weather: CREATE_IN_PROGRESS: is not finished after half an hour" in shown


def test_a_build_without_an_end_is_named_and_given_up(
    project: Path, account: type[Account], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = account.answer

    def still_building(client: Any, operation: str, parameters: Mapping[str, Any]) -> Response:  # noqa: ANN401 - of boto3
        response = answer(client, operation, parameters)
        for build in response.get("builds", ()):
            build["buildStatus"] = "IN_PROGRESS"
        return response

    monkeypatch.setattr(account, "answer", still_building)
    monkeypatch.setitem(image.END_OF_BUILD, "maxAttempts", 2)
    assert run() == 2
    shown = capsys.readouterr().err
    assert "build and push 123456789012.dkr.ecr.eu-central-1.amazonaws.com/agui-weather:" in shown
    assert "the build is not finished after half an hour" in shown


def test_a_stack_without_its_bucket_is_an_error_that_names_it(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    del account.stacks.stacks["agui-weather"]["Physical"]["Bucket"]
    (project / "agent.py").write_text("tools = []\n")
    assert run() == 2
    assert "stack agui-weather has no bucket for the source" in capsys.readouterr().err
