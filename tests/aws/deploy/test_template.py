"""The template of a deployment: what settings and options become, and that AWS's own models take every call."""

import json
import re
import sys
from pathlib import Path

import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore.validate import validate_parameters  # type: ignore[import-untyped]

from agui_container.aws.deploy.environment import make_environment
from agui_container.aws.deploy.options import DeployOptions
from agui_container.cli.command_line import main
from agui_container.settings import Settings
from agui_container.settings_sources import load_with_origins
from tests.engine.doubles import Json

AWS = botocore.session.get_session()
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:agui-a1B2c3"  # noqa: S105 - the name of one
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


CLAIMS = """
[[auth_custom_claims]]
inboundTokenClaimName = "azp"
inboundTokenClaimValueType = "STRING"
authorizingClaimMatchValue = { claimMatchOperator = "EQUALS", claimMatchValue = { matchValueString = "me" } }
"""


def calls(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[Json]:
    assert main(["deploy", "--dry-run", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def resources(capsys: pytest.CaptureFixture[str], *arguments: str) -> Json:
    [*_, last] = calls(capsys, *arguments)
    found: Json = in_place(last["parameters"]["TemplateBody"]["Resources"])  # type: ignore[assignment]
    return {name: each["Properties"] for name, each in found.items()}


def in_place(value: object) -> object:
    if isinstance(value, list):
        return [in_place(each) for each in value]
    if isinstance(value, dict):
        return in_place(value["Fn::Sub"]) if value.keys() == {"Fn::Sub"} else {k: in_place(v) for k, v in value.items()}
    known = {"Partition": "aws", "Region": "us-east-1", "AccountId": "123456789012", "URLSuffix": "amazonaws.com"}
    return re.sub(r"\$\{AWS::(\w+)\}", lambda found: known[found[1]], value) if isinstance(value, str) else value


def policies(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Json]:
    found = resources(capsys, *arguments)["Role"]["Policies"]
    return {each["PolicyName"]: each["PolicyDocument"] for each in found}


def statements(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Json]:
    return {each["Sid"]: each for each in policies(capsys, *arguments)["runtime"]["Statement"]}


@pytest.mark.parametrize("arguments", [(), ("--builder", "codebuild", "--endpoint", "prod")])
@pytest.mark.parametrize("text", ["", FULL], ids=["defaults", "everything"])
def test_the_models_of_aws_take_every_call_of_a_dry_run(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, arguments: tuple[str, ...]
) -> None:
    write(project, text)
    found = calls(capsys, *arguments)
    assert len(found) == 2
    for call in found:
        given = call["parameters"]
        if "TemplateBody" in given:
            given |= {"TemplateBody": json.dumps(given["TemplateBody"]), "ChangeSetName": "a"}
            assert len(given["TemplateBody"].encode()) < 51_200
        model = AWS.get_service_model(call["service"]).operation_model(call["operation"])
        validate_parameters(given, model.input_shape)


def test_a_dry_run_makes_no_call_and_needs_no_credentials(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    monkeypatch.setattr("botocore.httpsession.URLLib3Session.send", None)
    assert [call["operation"] for call in calls(capsys)] == ["CreateRepository", "CreateChangeSet"]
    assert resources(capsys, "--builder", "docker").keys() == {"Role", "Runtime"}
    assert resources(capsys, "--builder", "codebuild").keys() == {"Bucket", "BuildRole", "Project", "Role", "Runtime"}


def test_settings_and_options_are_the_properties_of_the_runtime(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, FULL + CLAIMS)
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/a:1"
    [call] = calls(capsys, "--image", image)
    tags = {each["Key"]: each["Value"] for each in call["parameters"]["Tags"]}
    assert tags == {"team": "weather", "agui-deploy": "weather"}
    runtime = resources(capsys, "--image", image)["Runtime"]
    assert runtime["AgentRuntimeArtifact"] == {"ContainerConfiguration": {"ContainerUri": image}}
    assert runtime["ProtocolConfiguration"] == "AGUI"
    assert runtime["LifecycleConfiguration"] == {"IdleRuntimeSessionTimeout": 300, "MaxLifetime": 3600}
    assert runtime["RequestHeaderConfiguration"] == {"RequestHeaderAllowlist": ["Authorization", "X-Tenant"]}
    assert runtime["PlatformVersion"] == "V2"
    assert runtime["NetworkConfiguration"] == {
        "NetworkMode": "VPC",
        "NetworkModeConfig": {"SecurityGroups": ["sg-0123456789abcdef0"], "Subnets": ["subnet-0123456789abcdef0"]},
    }
    jwt = runtime["AuthorizerConfiguration"]["CustomJWTAuthorizer"]
    assert jwt["DiscoveryUrl"] == "https://issuer.example/.well-known/openid-configuration"
    assert jwt["AllowedAudience"] == ["chat", "desk"]
    assert jwt["CustomClaims"][0]["AuthorizingClaimMatchValue"]["ClaimMatchValue"] == {"MatchValueString": "me"}
    variables = runtime["EnvironmentVariables"]
    assert variables["AGUI_OPENAI_API_KEY"] == f"{SECRET}:key"
    assert (variables["AGUI_PORT"], variables["TZ"]) == ("8080", "Europe/Berlin")


def test_a_deployment_may_have_a_memory_of_its_own(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "[deploy]\nmemory_days = 30")
    found = resources(capsys)
    assert found["Memory"] == {"Name": "weather", "EventExpiryDuration": 30}
    assert found["Runtime"]["EnvironmentVariables"]["AGUI_STORE"] == "agentcore-memory:${Memory.MemoryId}"
    memory = "arn:aws:bedrock-agentcore:us-east-1:123456789012:memory/${Memory.MemoryId}"
    assert statements(capsys)["Memory"]["Resource"] == [memory]


def test_the_template_for_code_has_the_image_as_a_parameter_and_the_endpoint(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, FULL)
    made = calls(capsys, "--builder", "docker", "--endpoint", "prod")[-1]["parameters"]["TemplateBody"]
    assert main(["deploy", "--emit", "--endpoint", "prod"]) == 0
    template = json.loads((project / "infrastructure" / "template.json").read_text())
    runtime = made["Resources"]["Runtime"]["Properties"]
    runtime["AgentRuntimeArtifact"] = {"ContainerConfiguration": {"ContainerUri": {"Ref": "ImageUri"}}}
    assert template["Resources"] == made["Resources"]
    assert template["Parameters"].keys() == {"ImageUri"}
    endpoint = template["Resources"]["Endpointprod"]["Properties"]
    assert endpoint["AgentRuntimeVersion"] == {"Fn::GetAtt": ["Runtime", "AgentRuntimeVersion"]}


def test_variables_of_iam_in_a_policy_of_yours_stay(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, FULL)
    named = ["arn:aws:s3:::${aws:PrincipalTag/team}/*", "arn:aws:s3:::${AWS::Region}/%{x}"]
    yours = {"Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": named}]}
    (project / "policy.json").write_text(json.dumps(yours))
    role = calls(capsys)[-1]["parameters"]["TemplateBody"]["Resources"]["Role"]["Properties"]
    assert {each["PolicyName"]: each["PolicyDocument"] for each in role["Policies"]}["own"] == yours


def test_a_role_of_yours_is_used_and_none_is_made(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    role = "arn:aws:iam::123456789012:role/mine"
    write(project, f'[deploy]\nrole = "{role}"')
    found = resources(capsys, "--builder", "docker")
    assert found.keys() == {"Runtime"}
    assert found["Runtime"]["RoleArn"] == role


def test_the_role_may_do_what_the_settings_need_and_no_more(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "")
    least = {"PullImage", "RegistryToken", "LogGroups", "ListLogGroups", "Logs", "Traces", "Metrics"}
    assert statements(capsys).keys() == least
    write(project, FULL)
    allowed = statements(capsys)
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
    assert policies(capsys)["own"]["Statement"][0]["Action"] == "s3:GetObject"


NOVA = "bedrock:amazon.nova-lite-v1:0"
PROFILE = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc"
MEMORY = "arn:aws:bedrock-agentcore:eu-west-1:123456789012:memory/chats-a1B2c3D4e5"
PROVISIONED = "arn:aws:bedrock:eu-west-1:123456789012:provisioned-model/abc"
GUARDRAIL = "arn:aws:bedrock:eu-west-1:123456789012:guardrail/abc"
GUARDED = f'model = "bedrock:m"\nmodel_options = {{guardrail = {{id = "{GUARDRAIL}", version = "1"}}}}'
IN_REGION = "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0"
ALLOWED = [
    (f'store = "agentcore-memory:{MEMORY}"', "Memory", MEMORY),
    (f'model = "bedrock:{PROVISIONED}"', "Model1", PROVISIONED),
    (GUARDED, "Guardrail", GUARDRAIL),
    (
        '[deploy]\nimage = "999999999999.dkr.ecr.eu-west-1.amazonaws.com/team/agent:1"',
        "PullImage",
        "arn:aws:ecr:eu-west-1:999999999999:repository/team/agent",
    ),
    ('files = "s3://chats"', "Files", "arn:aws:s3:::chats/*"),
    ('files = "s3://chats/of/me/"', "Files", "arn:aws:s3:::chats/of/me/*"),
    ('files = "s3://chats/of/me/"', "FindFiles", "arn:aws:s3:::chats"),
    (f'model = "{NOVA}"\n[agents]\nhelper = "assistant"', "Model1", IN_REGION),
    (f'model = "{NOVA}"\nagent = "agent:tools"\n[agents]\nhelper = "assistant"', "Model1", IN_REGION),
    (f'model = "{NOVA}"\n[agents]\nweather = "agent:tools"\nassistant = "assistant"', "Model1", IN_REGION),
    (f'agent = "agent:tools"\n[deploy]\nmodels = ["bedrock:{PROFILE}"]', "OwnModel1", PROFILE),
]


@pytest.mark.parametrize(("text", "sid", "resource"), ALLOWED)
def test_what_a_setting_names_is_allowed_and_nothing_beside_it(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, sid: str, resource: str
) -> None:
    write(project, text)
    assert statements(capsys)[sid]["Resource"] == [resource]


def test_an_mcp_server_with_an_identity_may_get_its_tokens(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = '[[mcp_servers]]\nname = "x"\nurl = "https://x.example/mcp"\n'
    write(project, server)
    assert "IdentityTokens" not in statements(capsys)
    write(project, f'{server}identity = {{provider = "github"}}')
    allowed = statements(capsys)
    assert allowed["IdentityTokens"]["Action"] == ["bedrock-agentcore:GetResourceOauth2Token"]
    ends = [arn.partition(":123456789012:")[2] for arn in allowed["IdentityTokens"]["Resource"]]
    assert "token-vault/default/oauth2credentialprovider/github" in ends
    assert "workload-identity-directory/default/workload-identity/weather-*" in ends
    [secret] = allowed["IdentitySecrets"]["Resource"]
    assert secret.endswith(":secret:bedrock-agentcore-identity!default/oauth2/github-*")


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


def test_code_of_ones_own_is_not_imported_and_a_package_of_the_image_is_not_needed_here(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    (project / "src").mkdir()
    (project / "src" / "mine.py").write_text("raise ImportError\nagent = None\n")
    write(
        project,
        'auth = "jwt"\nauth_discovery_url = "https://a.example/.well-known/openid-configuration"\n'
        'auth_allowed_clients = ["a"]',
    )
    variables = resources(capsys, "mine:agent")["Runtime"]["EnvironmentVariables"]
    assert (variables["AGUI_AGENT"], variables["AGUI_AUTH"]) == ("mine:agent", "jwt")


def test_an_agent_that_the_command_names_is_deployed_without_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text("from other import *\n")
    (tmp_path / "Dockerfile").write_text("FROM agui-container\n")
    monkeypatch.chdir(tmp_path)
    runtime = resources(capsys, "mine:agent", "--name", "mine", "--builder", "docker")["Runtime"]
    assert runtime["EnvironmentVariables"] == {"AGUI_AGENT": "mine:agent", "AGUI_ERROR_STATUS": "stream"}
    assert runtime["AgentRuntimeName"] == "mine"
    assert Settings().agent == "assistant"
