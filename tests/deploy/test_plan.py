"""The calls of a deployment: what settings and options become, and that AWS's own models take every call."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore.validate import validate_parameters  # type: ignore[import-untyped]
from msgspec import structs

from agui_container.cli.command_line import main
from agui_container.cli.deploy import Work
from agui_container.deploy.environment import MAX_BYTES, MAX_BYTES_V2, make_environment
from agui_container.deploy.existing import Existing, Role
from agui_container.deploy.options import DeployOptions
from agui_container.settings import Settings
from agui_container.settings_sources import load_with_origins
from tests.deploy.account import Account
from tests.engine.doubles import Json
from tests.requirements import requirement

AWS = botocore.session.get_session()
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:agui-a1B2c3"  # noqa: S105 - the name of one
LONG = "x" * MAX_BYTES_V2
"""Text that is too long for version 2 of AgentCore's platform, and not for version 1."""

OWN = 'agent = "agent:agent"\n'
WORD = "swordfish"
FULL = f"""
model = "bedrock:{CLAUDE}"
models = {{ fast = "bedrock:amazon.nova-lite-v1:0" }}
store = "agentcore-memory:chats-a1B2c3D4e5"
auth = "jwt"
auth_discovery_url = "https://issuer.example/.well-known/openid-configuration"
auth_allowed_audience = ["chat", "desk"]
port = 9000

[deploy]
headers = ["X-Tenant"]
idle_timeout = 300
max_lifetime = 3600
platform_version = "V2"
subnets = ["subnet-0123456789abcdef0"]
security_groups = ["sg-0123456789abcdef0"]
policy = "policy.json"

[deploy.environment]
TZ = "Europe/Berlin"

[deploy.secrets]
openai_api_key = "{SECRET}:key"

[deploy.tags]
team = "weather"
"""


def write(folder: Path, text: str) -> None:
    (folder / "agui.toml").write_text(text)
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::mine/*"}
    (folder / "policy.json").write_text(json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


def steps(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[Json]:
    assert main(["deploy", "--dry-run", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def parameters(found: list[Json], operation: str, last: int = -1) -> Json:
    matching: list[Json] = [step["parameters"] for step in found if step.get("operation") == operation]
    return matching[last]


def statements(found: list[Json]) -> dict[str, Json]:
    policies = [step["parameters"] for step in found if step.get("operation") == "PutRolePolicy"]
    [own] = [each for each in policies if each["PolicyName"] == "runtime"]
    return {each["Sid"]: each for each in json.loads(own["PolicyDocument"])["Statement"]}


def faults(shape: Any, value: Any, place: str) -> list[str]:  # noqa: ANN401 - of botocore
    """Faults that boto3 leaves to the server: values outside an enumeration, a pattern or a length."""
    if isinstance(value, dict):
        inner = shape.members if shape.type_name == "structure" else dict.fromkeys(value, getattr(shape, "value", None))
        return [fault for name, each in value.items() for fault in faults(inner[name], each, f"{place}.{name}")]
    if isinstance(value, list):
        return [fault for each in value for fault in faults(shape.member, each, place)]
    found = []
    if isinstance(value, str) and not re.search(r"\$\{|RUNTIME_ID", value):
        enum, pattern = getattr(shape, "enum", []), shape.metadata.get("pattern")
        found += [f"{place}: {value}"] if enum and value not in enum else []
        if pattern and "\\p" not in pattern:
            found += [f"{place}: {value}"] if not re.fullmatch(pattern, value) else []
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    size = len(value) if isinstance(value, str) else value if isinstance(value, int) else None
    is_inside = size is None or "${" in str(value) or ((low is None or low <= size) and (high is None or size <= high))
    return found if is_inside else [*found, f"{place}: {size}"]


@requirement("deploy.calls")
@pytest.mark.parametrize(
    "arguments", [("--builder", "docker"), ("--builder", "codebuild", "--endpoint", "prod"), ("--destroy",)]
)
@pytest.mark.parametrize("text", ["", FULL], ids=["defaults", "everything"])
def test_the_models_of_aws_take_every_call(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, arguments: tuple[str, ...]
) -> None:
    write(project, text)
    calls = [step for step in steps(capsys, *arguments) if "service" in step]
    assert len(calls) > 3
    for call in calls:
        model = AWS.get_service_model(call["service"]).operation_model(call["operation"])
        given = call["parameters"]
        if model.input_shape is None:
            assert given == {}
            continue
        validate_parameters(given, model.input_shape)
        found = faults(model.input_shape, {**given, "Body": b""} if "Body" in given else given, call["operation"])
        assert found == []


@requirement("deploy.calls")
def test_a_dry_run_makes_no_call_and_needs_no_credentials(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    monkeypatch.setattr("botocore.httpsession.URLLib3Session.send", None)
    found = steps(capsys, "--builder", "docker")
    commands = [step["command"][:3] for step in found if "command" in step]
    assert commands == [["docker", "login", "--username"], ["docker", "buildx", "build"]]
    assert found[-3]["until"] == {"status": "READY"}
    assert [step["operation"] for step in found[-2:]] == ["InvokeAgentRuntime", "StopRuntimeSession"]
    assert steps(capsys, "--builder", "docker", "--no-test")[-1]["until"] == {"status": "READY"}


@requirement("deploy.calls")
def test_a_dry_run_of_a_push_prints_the_calls_of_the_image_only(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = steps(capsys, "--builder", "docker", "--push")
    assert [step["operation"] for step in found if "operation" in step] == ["CreateRepository", "GetAuthorizationToken"]


@requirement("deploy.calls")
def test_a_dry_run_of_a_rollback_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deploy", "--dry-run", "--rollback"]) == 2
    assert "--rollback with --plan" in capsys.readouterr().err


@requirement("deploy.runtime")
def test_settings_and_options_are_the_parameters_of_the_runtime(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, FULL)
    runtime = parameters(
        steps(capsys, "--image", "123456789012.dkr.ecr.us-east-1.amazonaws.com/a:1"), "CreateAgentRuntime"
    )
    assert runtime["protocolConfiguration"] == {"serverProtocol": "AGUI"}
    assert runtime["lifecycleConfiguration"] == {"idleRuntimeSessionTimeout": 300, "maxLifetime": 3600}
    assert runtime["requestHeaderConfiguration"] == {"requestHeaderAllowlist": ["Authorization", "X-Tenant"]}
    assert runtime["platformVersion"] == "V2"
    assert runtime["networkConfiguration"] == {
        "networkMode": "VPC",
        "networkModeConfig": {"securityGroups": ["sg-0123456789abcdef0"], "subnets": ["subnet-0123456789abcdef0"]},
    }
    assert runtime["authorizerConfiguration"]["customJWTAuthorizer"] == {
        "discoveryUrl": "https://issuer.example/.well-known/openid-configuration",
        "allowedAudience": ["chat", "desk"],
    }
    variables = runtime["environmentVariables"]
    assert variables["AGUI_OPENAI_API_KEY"] == f"{SECRET}:key"
    assert (variables["AGUI_PORT"], variables["TZ"]) == ("8080", "Europe/Berlin")
    assert runtime["tags"] == {"team": "weather", "agui-deploy": "weather"}


@requirement("deploy.role")
def test_the_role_may_do_what_the_settings_need_and_no_more(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "")
    least = {"PullImage", "RegistryToken", "LogGroups", "ListLogGroups", "Logs", "Traces", "Metrics"}
    assert statements(steps(capsys)).keys() == least
    write(project, FULL)
    found = steps(capsys)
    allowed = statements(found)
    assert allowed.keys() == {*least, "Model1", "Model1InRegions", "Model2", "Memory", "Secrets"}
    profile = f"arn:aws:bedrock:us-east-1:123456789012:inference-profile/{CLAUDE}"
    assert allowed["Model1"]["Resource"] == [profile]
    model = CLAUDE.removeprefix("us.")
    assert allowed["Model1InRegions"]["Resource"] == [f"arn:aws:bedrock:*::foundation-model/{model}"]
    assert allowed["Model1InRegions"]["Condition"] == {"StringLike": {"bedrock:InferenceProfileArn": profile}}
    assert allowed["Model2"]["Resource"] == ["arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0"]
    assert allowed["Memory"]["Resource"] == ["arn:aws:bedrock-agentcore:us-east-1:123456789012:memory/chats-a1B2c3D4e5"]
    assert allowed["Secrets"]["Resource"] == [SECRET]
    assert {sid for sid, each in allowed.items() if each["Resource"] == ["*"]} == {"RegistryToken", "Traces", "Metrics"}
    own = parameters(found, "PutRolePolicy")
    assert (own["PolicyName"], json.loads(own["PolicyDocument"])["Statement"][0]["Action"]) == ("own", "s3:GetObject")


ARNS = {
    "Memory": ('store = "agentcore-memory:{arn}"', "bedrock-agentcore:eu-west-1:123456789012:memory/chats-a1B2c3D4e5"),
    "Model1": ('model = "bedrock:{arn}"', "bedrock:eu-west-1:123456789012:provisioned-model/abc"),
    "Guardrail": (
        'model = "bedrock:m"\nmodel_options = {{guardrail = {{id = "{arn}", version = "1"}}}}',
        "bedrock:eu-west-1:123456789012:guardrail/abc",
    ),
    "PullImage": (
        '[deploy]\nimage = "999999999999.dkr.ecr.eu-west-1.amazonaws.com/team/agent:1"',
        "ecr:eu-west-1:999999999999:repository/team/agent",
    ),
}


@requirement("deploy.role")
@pytest.mark.parametrize(("sid", "text", "resource"), [(sid, *each) for sid, each in ARNS.items()], ids=ARNS)
def test_a_resource_that_a_setting_names_by_its_arn_is_allowed_there(
    project: Path, capsys: pytest.CaptureFixture[str], sid: str, text: str, resource: str
) -> None:
    arn = f"arn:aws:{resource}"
    write(project, text.format(arn=arn))
    assert statements(steps(capsys))[sid]["Resource"] == [arn]


@requirement("deploy.role")
@pytest.mark.parametrize(
    "agents",
    [
        '[agents]\nhelper = "assistant"',
        'agent = "agent:agent"\n[agents]\nhelper = "assistant"',
        '[agents]\nweather = "agent:agent"\nassistant = "assistant"',
    ],
)
def test_an_assistant_with_a_name_may_call_its_model(
    project: Path, capsys: pytest.CaptureFixture[str], agents: str
) -> None:
    write(project, f'model = "bedrock:amazon.nova-lite-v1:0"\n{agents}\n')
    model = "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0"
    assert statements(steps(capsys))["Model1"]["Resource"] == [model]


@requirement("deploy.role")
def test_an_mcp_server_with_an_identity_may_get_its_tokens(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = '[[mcp_servers]]\nname = "x"\nurl = "https://x.example/mcp"\n'
    write(project, server)
    assert "IdentityTokens" not in statements(steps(capsys))
    write(project, f'{server}identity = {{provider = "github"}}')
    allowed = statements(steps(capsys))
    assert allowed["IdentityTokens"]["Action"] == ["bedrock-agentcore:GetResourceOauth2Token"]
    ends = [arn.partition(":123456789012:")[2] for arn in allowed["IdentityTokens"]["Resource"]]
    assert "token-vault/default/oauth2credentialprovider/github" in ends
    assert "workload-identity-directory/default/workload-identity/weather-*" in ends
    [secret] = allowed["IdentitySecrets"]["Resource"]
    assert secret.endswith(":secret:bedrock-agentcore-identity!default/oauth2/github-*")


@requirement("deploy.role")
def test_an_agent_of_ones_own_may_call_the_models_that_its_deployment_names(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arn = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc"
    write(project, f'agent = "agent:agent"\nmodel = "offline"\n[deploy]\nmodels = ["bedrock:{arn}"]\n')
    allowed = statements(steps(capsys))
    assert allowed["OwnModel1"]["Resource"] == [arn]
    assert allowed["OwnModel1"]["Action"] == ["bedrock:InvokeModelWithResponseStream", "bedrock:InvokeModel"]
    assert allowed["OwnModel1InRegions"]["Resource"] == ["arn:aws:bedrock:*::foundation-model/*"]


@requirement("deploy.owner")
def test_all_that_is_made_has_the_tag_of_its_deployment(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [
        each
        for each in steps(capsys, "--builder", "codebuild", "--endpoint", "prod")
        if each["operation"].startswith("Create")
    ]
    assert len(made) == 7
    for each in made:
        assert re.search(r'"agui-deploy", "[vV]alue": "weather"|"agui-deploy": "weather"', json.dumps(each))


@requirement("deploy.role")
def test_only_agentcore_may_assume_the_role_and_only_for_this_account(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [statement] = json.loads(parameters(steps(capsys), "CreateRole")["AssumeRolePolicyDocument"])["Statement"]
    assert statement["Principal"] == {"Service": "bedrock-agentcore.amazonaws.com"}
    assert statement["Condition"] == {
        "StringEquals": {"aws:SourceAccount": "123456789012"},
        "ArnLike": {"aws:SourceArn": "arn:aws:bedrock-agentcore:us-east-1:123456789012:*"},
    }


@requirement("deploy.runtime")
def test_the_variables_give_the_container_the_same_settings(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(project, FULL.replace("port = 9000", 'console_suggestions = ["a, b", "c"]\ncontext_files = ["x", "y"]'))
    settings, origins = load_with_origins()
    variables = make_environment(settings, origins, DeployOptions())
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert load_with_origins()[0] == settings.model_copy(update={"error_status": "stream"})


@requirement("deploy.refusals")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[deploy]\nnmae = "x"', "unknown field `nmae`"),
        ('[deploy]\nname = "1x"', "$.name"),
        ("[deploy]\nidle_timeout = 5", "$.idle_timeout"),
        ('[deploy]\nsubnets = ["subnet-01234567"]', "subnets and security_groups belong together"),
        ("[deploy]\nmax_lifetime = 60", "max_lifetime: must not be less than idle_timeout"),
        ('[deploy.secrets]\nnothing = "x"', "$.secrets[...]"),
        (f'[deploy.secrets]\nnothing = "{SECRET}"', "nothing is not a setting"),
        ('[deploy.environment]\nAGUI_MODEL = "x"', "AGUI_MODEL: is a setting"),
        (f'[deploy.environment]\nPAGER_TOKEN = "{WORD}"', "PAGER_TOKEN: is a secret"),
        ('[deploy]\npolicy = "missing.json"', "missing.json: No such file"),
        ("deploy = 1", "deploy must be a table"),
        ('model = "bedrock:m"\nmodel_options = {guardrail = {version = "1"}}', "guardrail: id: Field required"),
        ('[[mcp_servers]]\nname = "x"', "AGUI_MCP_SERVERS: "),
        ('model = "bedrock:m"\nmodel_options = {regoin = "x"}', "regoin: Unexpected keyword argument"),
        (f'store = "postgresql://me:{WORD}@db/agui"', "store (agui.toml) has a secret"),
        (f'openai_api_key = "{WORD}"', "openai_api_key (agui.toml) has a secret"),
        (f'[[mcp_servers]]\nname = "x"\nurl = "http://x"\nheaders = {{A = "{WORD}"}}', "mcp_servers (agui.toml) has"),
        (f'system_prompt = "{"x" * MAX_BYTES}"', "AgentCore takes 4,096. AGUI_SYSTEM_PROMPT has"),
        (f'system_prompt = "{LONG}"\n[deploy]\nplatform_version = "V2"', "AgentCore takes 2,560. AGUI_SYSTEM_PROMPT"),
    ],
)
def test_an_agent_that_cannot_be_deployed_is_named(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    write(project, text)
    assert main(["deploy", "--dry-run"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert WORD not in error


@requirement("deploy.refusals")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'{OWN}system_prompt = "x"', "AGUI_SYSTEM_PROMPT is for the built-in assistant"),
        (f'{OWN}max_steps = 3\n[deploy]\nimage = "a/b:1"', "AGUI_MAX_STEPS is for the built-in assistant"),
        ('agent = "typo:agent"', "there is no module 'typo' (wanted for 'typo:agent')"),
        ('agent = "agent"', "'agent' is not of the form module:attribute"),
        ('[agents]\nhelper = "assistant"\nother = "agents.typo:agent"', "there is no module 'agents.typo'"),
        ('tools = "typo:tools"', "there is no module 'typo' (wanted for 'typo:tools')"),
        ('skills = "missing"', "AGUI_SKILLS: "),
        ("tool_policy = [{tool = 1}]", "AGUI_TOOL_POLICY: "),
        ("caller_limits = {typo = 1}", "AGUI_CALLER_LIMITS="),
        ('model = "openai:m"\nmodel_options = {typo = 1}', "AGUI_MODEL_OPTIONS: typo"),
    ],
)
def test_settings_that_no_server_starts_with_are_refused_before_any_call(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    account.refused = ("sts",)
    write(project, text)
    for options in ((), ("--dry-run",), ("--plan",), ("--push",), ("--emit", "terraform")):
        assert main(["deploy", *options]) == 2
        assert message in capsys.readouterr().err


@requirement("deploy.refusals")
def test_an_argument_that_no_server_starts_with_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for agent, message in (("typo:agent", "there is no module 'typo'"), ("agent:agent", "AGUI_SYSTEM_PROMPT is for")):
        assert main(["deploy", agent, "--dry-run"]) == 2
        assert message in capsys.readouterr().err


@requirement("deploy.refusals")
def test_a_deployment_that_no_server_starts_with_is_deleted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deploy", "typo:agent", "--dry-run", "--destroy"]) == 0
    assert "DeleteAgentRuntime" in capsys.readouterr().out


@requirement("deploy.refusals")
def test_code_of_ones_own_is_not_imported_and_a_package_of_the_image_is_not_needed_here(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    (project / "src").mkdir()
    (project / "src" / "mine.py").write_text("raise ImportError\n")
    write(
        project,
        'auth = "jwt"\nauth_discovery_url = "https://a.example/.well-known/openid-configuration"\n'
        'auth_allowed_clients = ["a"]',
    )
    variables = parameters(steps(capsys, "mine:agent"), "CreateAgentRuntime")["environmentVariables"]
    assert (variables["AGUI_AGENT"], variables["AGUI_AUTH"]) == ("mine:agent", "jwt")


@requirement("deploy.refusals")
def test_version_1_of_the_platform_takes_more_variables(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, f'system_prompt = "{LONG}"')
    assert parameters(steps(capsys), "CreateAgentRuntime")["environmentVariables"]["AGUI_SYSTEM_PROMPT"] == LONG


@requirement("deploy.refusals")
def test_a_long_setting_may_stay_in_the_image(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, f'system_prompt = "{"x" * MAX_BYTES}"\n[deploy]\nleave_in_image = ["system_prompt"]')
    runtime = parameters(steps(capsys), "CreateAgentRuntime")
    assert "AGUI_SYSTEM_PROMPT" not in runtime["environmentVariables"]


@requirement("deploy.runtime")
def test_an_agent_that_the_command_names_is_deployed_without_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text("")
    monkeypatch.chdir(tmp_path)
    found = steps(capsys, "mine:agent", "--name", "mine", "--builder", "docker")
    variables = parameters(found, "CreateAgentRuntime")["environmentVariables"]
    assert variables == {"AGUI_AGENT": "mine:agent", "AGUI_ERROR_STATUS": "stream"}
    [context] = [step["stdin"] for step in found if "stdin" in step]
    assert context == f"tar of {tmp_path}"
    assert Settings().agent == "assistant"


@requirement("deploy.continues")
def test_a_runtime_that_was_never_made_completely_is_made_anew(project: Path) -> None:
    work = Work.load(None, None, {"image": "public.ecr.aws/a/b:1"}, "prod", is_offline=True)
    broken = {"agentRuntimeId": "weather-OLD", "agentRuntimeVersion": "1", "status": "CREATE_FAILED"}
    plan = work.steps(Existing(runtime=broken, endpoints=({"name": "prod", "status": "CREATE_FAILED"},)))
    calls = [step.shown() for step in plan]
    assert [(call["operation"], "weather-OLD" in json.dumps(call)) for call in calls] == [
        ("DeleteAgentRuntimeEndpoint", True),
        ("GetAgentRuntimeEndpoint", True),
        ("DeleteAgentRuntime", True),
        ("GetAgentRuntime", True),
        ("CreateRole", False),
        ("PutRolePolicy", False),
        ("CreateAgentRuntime", False),
        ("GetAgentRuntime", False),
        ("CreateAgentRuntimeEndpoint", False),
        ("GetAgentRuntimeEndpoint", False),
    ]


def healthy(work: Work) -> Existing:
    """A complete deployment whose runtime has version 2."""
    wanted = work.wanted
    runtime = {**wanted.runtime(), "agentRuntimeId": "weather-ID", "agentRuntimeVersion": "2", "status": "READY"}
    endpoints = ({"name": "prod", "status": "READY", "liveVersion": "2", "targetVersion": "2"},)
    return Existing(role=Role(wanted.trust(), wanted.policies()), runtime=runtime, endpoints=endpoints)


@requirement("deploy.continues")
def test_a_runtime_whose_update_failed_is_updated_again(project: Path) -> None:
    work = Work.load(None, None, {"image": "public.ecr.aws/a/b:1"}, "prod", is_offline=True)
    existing = healthy(work)
    assert work.steps(existing) == []
    failed = structs.replace(existing, runtime={**(existing.runtime or {}), "status": "UPDATE_FAILED"})
    update, _, move, _ = work.steps(failed)
    assert update.purpose == "update runtime weather: status"
    assert update.shown()["operation"] == "UpdateAgentRuntime"
    assert move.shown()["operation"] == "UpdateAgentRuntimeEndpoint"


@requirement("deploy.continues")
def test_an_endpoint_that_was_never_made_completely_is_made_anew(project: Path) -> None:
    work = Work.load(None, None, {"image": "public.ecr.aws/a/b:1"}, "prod", is_offline=True)
    broken = structs.replace(healthy(work), endpoints=({"name": "prod", "status": "CREATE_FAILED"},))
    delete, gone, create, ready = (step.shown() for step in work.steps(broken))
    assert (delete["operation"], create["operation"]) == ("DeleteAgentRuntimeEndpoint", "CreateAgentRuntimeEndpoint")
    tags = {"agui-deploy": "weather"}
    runtime = {"agentRuntimeId": "weather-ID", "agentRuntimeVersion": "2"}
    assert create["parameters"] == {**runtime, "name": "prod", "tags": tags}
    assert (gone["until"], ready["until"]) == ({"status": "ResourceNotFoundException"}, {"status": "READY"})
