"""CloudFormation, Terraform and CDK: the same role and the same runtime as the calls, in other words.

``make test-infrastructure`` asks cfn-lint, CDK and Terraform. Terraform's provider cannot be had from a registry of
packages, so the names of its arguments are here, from the provider's documentation (hashicorp/aws 6.50 and later).
"""

import json
import re
from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from tests.deploy.test_plan import FULL, parameters, statements, steps, write
from tests.engine.doubles import Json
from tests.requirements import requirement

ARGUMENTS = {
    *("agent_runtime_name", "agent_runtime_artifact", "role_arn", "network_configuration", "environment_variables"),
    *("authorizer_configuration", "lifecycle_configuration", "protocol_configuration", "request_header_configuration"),
    *("container_configuration", "container_uri", "network_mode", "network_mode_config", "security_groups", "subnets"),
    *("custom_jwt_authorizer", "discovery_url", "allowed_audience", "allowed_clients", "allowed_scopes"),
    *("custom_claim", "inbound_token_claim_name", "inbound_token_claim_value_type", "authorizing_claim_match_value"),
    *("claim_match_operator", "claim_match_value", "match_value_string", "match_value_string_list"),
    *("idle_runtime_session_timeout", "max_lifetime", "server_protocol", "request_header_allowlist"),
    *("tags", "depends_on"),
}
CLAIMS = """
[[auth_custom_claims]]
inboundTokenClaimName = "azp"
inboundTokenClaimValueType = "STRING"
authorizingClaimMatchValue = { claimMatchOperator = "EQUALS", claimMatchValue = { matchValueString = "me" } }
"""


def emit(form: str, project: Path, *arguments: str) -> dict[str, str]:
    assert main(["deploy", "--emit", form, "--output", "out", *arguments]) == 0
    return {path.name: path.read_text() for path in (project / "out").iterdir()}


def names_of(value: object) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(names_of, value))
    if not isinstance(value, dict):
        return set()
    plain = {"environment_variables", "tags"}
    return set(value).union(*(names_of(each) for name, each in value.items() if name not in plain))


def in_place(text: str) -> Json:
    """JSON with the account and the region of a dry run in place of placeholders."""
    for placeholder, value in (
        (r"\$\{AWS::Partition\}|\$\{data\.aws_partition\.current\.partition\}", "aws"),
        (r"\$\{AWS::Region\}|\$\{data\.aws_region\.current\.region\}", "us-east-1"),
        (r"\$\{AWS::AccountId\}|\$\{data\.aws_caller_identity\.current\.account_id\}", "123456789012"),
    ):
        text = re.sub(placeholder, value, text)
    found: Json = json.loads(text)
    return found


def without_sub(value: object) -> object:
    if isinstance(value, list):
        return [without_sub(each) for each in value]
    if isinstance(value, dict):
        return value["Fn::Sub"] if value.keys() == {"Fn::Sub"} else {k: without_sub(v) for k, v in value.items()}
    return value


@requirement("deploy.code")
def test_cloudformation_has_the_role_and_the_runtime_of_the_calls(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, FULL + CLAIMS)
    found = steps(capsys)
    called = parameters(found, "CreateAgentRuntime")
    template = in_place(emit("cloudformation", project, "--endpoint", "prod")["template.json"])
    resources: Json = without_sub(template["Resources"])  # type: ignore[assignment]
    policies = {each["PolicyName"]: each["PolicyDocument"] for each in resources["Role"]["Properties"]["Policies"]}
    assert {each["Sid"]: each for each in policies["runtime"]["Statement"]} == statements(found)
    runtime = resources["Runtime"]["Properties"]
    assert runtime["EnvironmentVariables"] == called["environmentVariables"]
    assert runtime["ProtocolConfiguration"] == "AGUI"
    jwt = runtime["AuthorizerConfiguration"]["CustomJWTAuthorizer"]
    assert jwt["AllowedAudience"] == called["authorizerConfiguration"]["customJWTAuthorizer"]["allowedAudience"]
    assert jwt["CustomClaims"][0]["AuthorizingClaimMatchValue"]["ClaimMatchValue"] == {"MatchValueString": "me"}
    assert resources["Endpoint"]["Properties"]["Name"] == "prod"


@requirement("deploy.code")
def test_terraform_has_the_role_and_the_runtime_of_the_calls(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, FULL + CLAIMS)
    found = steps(capsys)
    called = parameters(found, "CreateAgentRuntime")
    module = in_place(emit("terraform", project, "--endpoint", "prod")["main.tf.json"])
    resources = module["resource"]
    policy = json.loads(resources["aws_iam_role_policy"]["runtime"]["policy"])
    assert {each["Sid"]: each for each in policy["Statement"]} == statements(found)
    runtime = resources["aws_bedrockagentcore_agent_runtime"]["runtime"]
    assert names_of(runtime) <= ARGUMENTS
    assert runtime["environment_variables"] == called["environmentVariables"]
    assert runtime["protocol_configuration"] == [{"server_protocol": "AGUI"}]
    [authorizer] = runtime["authorizer_configuration"]
    [claim] = authorizer["custom_jwt_authorizer"][0]["custom_claim"]
    assert claim["authorizing_claim_match_value"][0]["claim_match_value"] == [{"match_value_string": "me"}]
    assert "prod" in resources["aws_bedrockagentcore_agent_runtime_endpoint"]


@requirement("deploy.code")
def test_no_text_of_yours_is_a_template_of_terraform(project: Path) -> None:
    write(project, 'system_prompt = "Say ${name} and %{if}."')
    module = json.loads(emit("terraform", project)["main.tf.json"])
    variables = module["resource"]["aws_bedrockagentcore_agent_runtime"]["runtime"]["environment_variables"]
    assert variables["AGUI_SYSTEM_PROMPT"] == "Say $${name} and %%{if}."


@requirement("deploy.code")
def test_variables_of_iam_in_a_policy_of_yours_stay(project: Path) -> None:
    write(project, FULL)
    resources = ["arn:aws:s3:::${aws:PrincipalTag/team}/*", "arn:aws:s3:::${AWS::Region}/%{x}"]
    yours = {"Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": resources}]}
    (project / "policy.json").write_text(json.dumps(yours))
    role = json.loads(emit("cloudformation", project)["template.json"])["Resources"]["Role"]["Properties"]
    assert {each["PolicyName"]: each["PolicyDocument"] for each in role["Policies"]}["own"] == yours
    module = json.loads(emit("terraform", project)["main.tf.json"])
    text = module["resource"]["aws_iam_role_policy"]["own"]["policy"]
    assert "$${aws:PrincipalTag/team}" in text
    assert json.loads(re.sub(r"([$%])\1\{", r"\1{", text)) == yours


@requirement("deploy.code")
def test_cdk_includes_the_template(project: Path) -> None:
    write(project, FULL)
    template = emit("cloudformation", project)["template.json"]
    files = emit("cdk", project)
    assert files["template.json"] == template
    compile(files["app.py"], "app.py", "exec")
    assert json.loads(files["cdk.json"])["app"] == "python3 app.py"


@requirement("deploy.code")
def test_a_role_of_yours_is_used_and_none_is_made(project: Path) -> None:
    write(project, '[deploy]\nrole = "arn:aws:iam::123456789012:role/mine"')
    template = json.loads(emit("cloudformation", project)["template.json"])
    assert template["Resources"].keys() == {"Runtime"}
    module = json.loads(emit("terraform", project)["main.tf.json"])
    assert module["resource"].keys() == {"aws_bedrockagentcore_agent_runtime"}
