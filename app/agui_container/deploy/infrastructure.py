"""A deployment as infrastructure code: CloudFormation, Terraform or CDK.

Rule: all three are derived from the same desired state as the calls: the policies of the role and the parameters of the
runtime. Only names are written differently. The image comes from outside, because no stack builds one.

Sources: resource types ``AWS::BedrockAgentCore::Runtime`` and ``RuntimeEndpoint``; resources
``aws_bedrockagentcore_agent_runtime`` and ``…_endpoint`` of Terraform's provider hashicorp/aws from 6.50 on, the first
one that takes AGUI. It has no argument for the version of the platform yet.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agui_container.deploy.deployment import POLICY_NAME, Deployment
from agui_container.deploy.existing import DEFAULT_ENDPOINT
from agui_container.deploy.place import AwsPlace

CLOUDFORMATION_PLACE = AwsPlace("${AWS::Partition}", "${AWS::Region}", "${AWS::AccountId}")
TERRAFORM_PLACE = AwsPlace(
    "${data.aws_partition.current.partition}",
    "${data.aws_region.current.region}",
    "${data.aws_caller_identity.current.account_id}",
)
PROVIDER = {"aws": {"source": "hashicorp/aws", "version": ">= 6.50"}}
TERRAFORM_NAMES = {"customClaims": "custom_claim", "customJWTAuthorizer": "custom_jwt_authorizer"}

CDK_APP = '''"""The stack of {name}: `pip install -r requirements.txt`, then `cdk deploy --parameters ImageUri=…`."""

from pathlib import Path

import aws_cdk as cdk
from aws_cdk.cloudformation_include import CfnInclude

app = cdk.App()
stack = cdk.Stack(app, "{slug}")
CfnInclude(stack, "Deployment", template_file=str(Path(__file__).with_name("template.json")))
app.synth()
'''


def cloudformation(deployment: Deployment, endpoint: str) -> dict[str, str]:
    """Return the files of a CloudFormation stack by their names."""
    return {"template.json": to_json(template(deployment, endpoint))}


def cdk(deployment: Deployment, endpoint: str) -> dict[str, str]:
    """Return the files of a CDK app. It includes the template, so constructs of yours can refer to its resources."""
    return {
        **cloudformation(deployment, endpoint),
        "app.py": CDK_APP.format(name=deployment.name, slug=deployment.slug),
        "cdk.json": to_json({"app": "python3 app.py"}),
        "requirements.txt": "aws-cdk-lib>=2.200,<3\n",
    }


def terraform(deployment: Deployment, endpoint: str) -> dict[str, str]:
    """Return the file of a Terraform module, in Terraform's JSON syntax."""
    there = at(deployment, TERRAFORM_PLACE)
    runtime = {
        **blocks(escaped({name: each for name, each in there.runtime().items() if name != "platformVersion"})),
        "agent_runtime_name": there.name,
        "agent_runtime_artifact": [{"container_configuration": [{"container_uri": "${var.image_uri}"}]}],
        "environment_variables": escaped(dict(there.environment)),
        "role_arn": there.options.role or "${aws_iam_role.runtime.arn}",
        "tags": escaped(there.tags),
    }
    resources: dict[str, dict[str, object]] = {"aws_bedrockagentcore_agent_runtime": {"runtime": runtime}}
    if not there.options.role:
        role = {"name": there.role_name, "assume_role_policy": to_json(there.trust()), "tags": escaped(there.tags)}
        resources["aws_iam_role"] = {"runtime": role}
        resources["aws_iam_role_policy"] = {
            name: {"name": name, "role": "${aws_iam_role.runtime.id}", "policy": to_json(policy)}
            for name, policy in policies_of(there, of_yours=escaped).items()
        }
        runtime["depends_on"] = [f"aws_iam_role_policy.{name}" for name in there.policies()]
    if endpoint != DEFAULT_ENDPOINT:
        address = "${aws_bedrockagentcore_agent_runtime.runtime."
        resources["aws_bedrockagentcore_agent_runtime_endpoint"] = {
            endpoint: {
                "name": endpoint,
                "agent_runtime_id": f"{address}agent_runtime_id}}",
                "agent_runtime_version": f"{address}agent_runtime_version}}",
            }
        }
    module = {
        "terraform": {"required_version": ">= 1.5", "required_providers": PROVIDER},
        "variable": {"image_uri": {"type": "string", "description": IMAGE_DESCRIPTION}},
        "data": {name: {"current": {}} for name in ("aws_partition", "aws_region", "aws_caller_identity")},
        "resource": resources,
        "output": {"runtime_arn": {"value": "${aws_bedrockagentcore_agent_runtime.runtime.agent_runtime_arn}"}},
    }
    return {"main.tf.json": to_json(module)}


IMAGE_DESCRIPTION = "URI of the image in ECR, as `agui deploy --push` prints it."

EMITTERS: Mapping[str, Callable[[Deployment, str], dict[str, str]]] = {
    "cloudformation": cloudformation,
    "terraform": terraform,
    "cdk": cdk,
}


def template(deployment: Deployment, endpoint: str) -> dict[str, object]:
    """Return the template of CloudFormation."""
    there = at(deployment, CLOUDFORMATION_PLACE)
    runtime = {
        **pascal(there.runtime()),
        "AgentRuntimeName": there.name,
        "AgentRuntimeArtifact": {"ContainerConfiguration": {"ContainerUri": {"Ref": "ImageUri"}}},
        "ProtocolConfiguration": "AGUI",
        "EnvironmentVariables": dict(there.environment),
        "RoleArn": there.options.role or {"Fn::GetAtt": ["Role", "Arn"]},
        "Tags": there.tags,
    }
    resources: dict[str, object] = {"Runtime": {"Type": "AWS::BedrockAgentCore::Runtime", "Properties": runtime}}
    if not there.options.role:
        policies = policies_of(there, of_deployment=substituted)
        role = {
            **substituted({"RoleName": there.role_name, "AssumeRolePolicyDocument": there.trust()}),
            "Policies": [{"PolicyName": name, "PolicyDocument": policy} for name, policy in policies.items()],
        }
        tags = [{"Key": key, "Value": value} for key, value in sorted(there.tags.items())]  # as CDK orders them
        resources["Role"] = {"Type": "AWS::IAM::Role", "Properties": {**role, "Tags": tags}}
    if endpoint != DEFAULT_ENDPOINT:
        pointed = {
            "Name": endpoint,
            "AgentRuntimeId": {"Fn::GetAtt": ["Runtime", "AgentRuntimeId"]},
            "AgentRuntimeVersion": {"Fn::GetAtt": ["Runtime", "AgentRuntimeVersion"]},
        }
        resources["Endpoint"] = {"Type": "AWS::BedrockAgentCore::RuntimeEndpoint", "Properties": pointed}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"AG-UI agent {there.name} on Amazon Bedrock AgentCore Runtime",
        "Parameters": {"ImageUri": {"Type": "String", "Description": IMAGE_DESCRIPTION}},
        "Resources": resources,
        "Outputs": {"RuntimeArn": {"Value": {"Fn::GetAtt": ["Runtime", "AgentRuntimeArn"]}}},
    }


def at(deployment: Deployment, place: AwsPlace) -> Deployment:
    """Return a deployment in another place."""
    return msgspec.structs.replace(deployment, place=place)


def policies_of(
    deployment: Deployment,
    *,
    of_deployment: Callable[[Any], Any] = lambda policy: policy,
    of_yours: Callable[[Any], Any] = lambda policy: policy,
) -> dict[str, Any]:
    """Return the policies of the role by name.

    The one of the deployment has placeholders of the place. A ``${…}`` in the one of the user is a variable of IAM.
    """
    return {
        name: (of_deployment if name == POLICY_NAME else of_yours)(policy)
        for name, policy in deployment.policies().items()
    }


def pascal(value: Any) -> Any:  # noqa: ANN401 - any part of a parameter
    """Return parameters with the names of CloudFormation, which begin with a capital letter."""
    if isinstance(value, Mapping):
        return {f"{name[0].upper()}{name[1:]}": pascal(each) for name, each in value.items()}
    return [pascal(each) for each in value] if isinstance(value, list) else value


def substituted(value: Any) -> Any:  # noqa: ANN401 - any part of a template
    """Return a part of a template in which CloudFormation fills the placeholders of the place."""
    if isinstance(value, Mapping):
        return {name: substituted(each) for name, each in value.items()}
    if isinstance(value, list):
        return [substituted(each) for each in value]
    return {"Fn::Sub": value} if isinstance(value, str) and "${AWS::" in value else value


def blocks(value: Any) -> Any:  # noqa: ANN401 - any part of a parameter
    """Return parameters with the names of Terraform. A nested object is a list of one block there."""
    if isinstance(value, Mapping):
        return {
            snake(name): [blocks(each)] if isinstance(each, Mapping) else blocks(each) for name, each in value.items()
        }
    return [blocks(each) for each in value] if isinstance(value, list) else value


def snake(name: str) -> str:
    """Return a name as Terraform writes it."""
    return TERRAFORM_NAMES.get(name) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def escaped(value: Any) -> Any:  # noqa: ANN401 - any part of a parameter
    """Return a value in which Terraform finds no template."""
    if isinstance(value, Mapping):
        return {name: escaped(each) for name, each in value.items()}
    if isinstance(value, list):
        return [escaped(each) for each in value]
    return re.sub(r"([$%])\{", r"\1\1{", value) if isinstance(value, str) else value


def to_json(value: object) -> str:
    """Return JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
