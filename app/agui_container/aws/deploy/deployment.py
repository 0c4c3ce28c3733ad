"""A deployment as it should be: its names, and one template of CloudFormation with all but the image's repository.

Rule: account and region are placeholders in the template, so it holds for every account. The image comes before the
stack, because no stack builds one.

Source: resource types of ``AWS::BedrockAgentCore``.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agui_container.aws.deploy.environment import MEMORY_STORE
from agui_container.aws.deploy.options import DeployOptions
from agui_container.aws.deploy.policies import (
    Policy,
    build_policy,
    build_trust,
    read_policy,
    repository_arn,
    runtime_policy,
    runtime_trust,
)
from agui_container.settings import Auth, Settings

Template = dict[str, Any]

DEFAULT_ENDPOINT = "DEFAULT"
"""Endpoint that AgentCore makes, and moves to each new version."""

OWNER_TAG = "agui-deploy"
"""Tag of the stack and of the repository. Its value is the name of the deployment."""

NEWEST_VERSION = {"Fn::GetAtt": ["Runtime", "AgentRuntimeVersion"]}
ENDPOINT_TYPE = "AWS::BedrockAgentCore::RuntimeEndpoint"
IMAGE_PARAMETER = {"ImageUri": {"Type": "String", "Description": "URI of the image in ECR (agui deploy --push)."}}
REGISTRY = "${AWS::AccountId}.dkr.ecr.${AWS::Region}.${AWS::URLSuffix}"
IMAGE = re.compile(r"(?P<account>\d{12})\.dkr[.-]ecr\.(?P<region>[a-z0-9-]+)\.[^/]+/(?P<repository>[^:@]+)")
"""URI of an image in ECR, which may be in another account or region."""

SOURCE_KEY = "source/image.tar"
BUILD_COMMANDS = [
    'aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"',
    'aws s3 cp "$SOURCE" - | docker build --tag "$IMAGE" -',
    'docker push "$IMAGE"',
]
BUILDSPEC = {"version": 0.2, "phases": {"build": {"commands": BUILD_COMMANDS}}}


class Deployment(Struct, frozen=True):
    """A deployment as it should be. ``image_tag`` is that of the image that is built."""

    options: DeployOptions
    settings: Settings
    environment: Mapping[str, str]
    image_tag: str

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def slug(self) -> str:
        """Name of the stack, and of what AWS wants in lower case."""
        return "agui-" + re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def project(self) -> str:
        """Name of the project that builds the image where there is no Docker."""
        return f"{self.slug}-build"

    @property
    def image(self) -> object:
        """URI of the image, in which CloudFormation fills in the registry of the account."""
        return self.options.image or {"Fn::Sub": f"{REGISTRY}/{self.slug}:{self.image_tag}"}

    @property
    def repository_request(self) -> dict[str, object]:
        """Parameters that make the repository. A tag is never moved, so a version keeps its image."""
        return {
            "repositoryName": self.slug,
            "imageTagMutability": "IMMUTABLE",
            "imageScanningConfiguration": {"scanOnPush": True},
            "tags": self.tags,
        }

    def change_set_request(self, template: Template, *, exists: bool) -> dict[str, Any]:
        """Return the parameters of a change set, with the template as it is. AWS deletes a new stack that fails."""
        return {
            "StackName": self.slug,
            "ChangeSetType": "UPDATE" if exists else "CREATE",
            "Capabilities": ["CAPABILITY_IAM"],
            "Tags": self.tags,
            "TemplateBody": template,
            **({} if exists else {"OnStackFailure": "DELETE"}),
        }

    @property
    def tags(self) -> list[dict[str, str]]:
        """Tags of the repository, and of the stack, which gives them to its resources."""
        return [{"Key": key, "Value": value} for key, value in {**self.options.tags, OWNER_TAG: self.name}.items()]

    def template(self, *, with_build: bool = False, image: object = None) -> Template:
        """Return the template of the runtime and its role, with what builds images in AWS if that is wanted."""
        resources = self._build_resources() if with_build else {}
        if days := self.options.memory_days:
            memory = {"Name": self.name, "EventExpiryDuration": days}
            resources["Memory"] = {"Type": "AWS::BedrockAgentCore::Memory", "Properties": memory}
        resources |= {} if self.options.role else {"Role": self._runtime_role()}
        runtime = self._runtime(image or self.image)
        resources["Runtime"] = {"Type": "AWS::BedrockAgentCore::Runtime", "Properties": runtime}
        made = _template_of(f"AG-UI agent {self.name} on Amazon Bedrock AgentCore Runtime", resources)
        return {**made, "Outputs": {"RuntimeArn": {"Value": _attribute("Runtime", "AgentRuntimeArn")}}}

    def build_template(self) -> Template:
        """Return the template of a stack that only builds images."""
        return _template_of(f"Builds of the AG-UI agent {self.name}", self._build_resources())

    def _runtime_role(self) -> Template:
        # A ${…} in the policy of the user is a variable of IAM, so it stays.
        options = self.options
        found = IMAGE.match(options.image)
        repository = repository_arn(**found.groupdict()) if found else repository_arn(self.slug)
        policies = {"runtime": _substituted(runtime_policy(repository, self.settings, options))}
        if options.policy:
            policies["own"] = read_policy(options.policy)
        return _role(runtime_trust(), policies)

    def _runtime(self, image: object) -> dict[str, object]:
        options = self.options
        properties: dict[str, object] = {
            "AgentRuntimeName": self.name,
            "AgentRuntimeArtifact": {"ContainerConfiguration": {"ContainerUri": image}},
            "RoleArn": options.role or _attribute("Role", "Arn"),
            "NetworkConfiguration": self._network(),
            "ProtocolConfiguration": "AGUI",
            "LifecycleConfiguration": {
                "IdleRuntimeSessionTimeout": options.idle_timeout,
                "MaxLifetime": options.max_lifetime,
            },
            "EnvironmentVariables": {
                name: {"Fn::Sub": value} if value == MEMORY_STORE else value for name, value in self.environment.items()
            },
        }
        tokens = ["Authorization"] if self.settings.auth is Auth.JWT else []
        headers = list({name.lower(): name for name in (*tokens, *options.headers)}.values())
        optional = {
            "PlatformVersion": options.platform_version,
            "RequestHeaderConfiguration": {"RequestHeaderAllowlist": headers} if headers else None,
            "AuthorizerConfiguration": {"CustomJWTAuthorizer": self._authorizer()} if tokens else None,
        }
        return properties | {name: value for name, value in optional.items() if value}

    def _network(self) -> dict[str, object]:
        if not self.options.subnets:
            return {"NetworkMode": "PUBLIC"}
        config = {"SecurityGroups": list(self.options.security_groups), "Subnets": list(self.options.subnets)}
        return {"NetworkMode": "VPC", "NetworkModeConfig": config}

    def _authorizer(self) -> dict[str, object]:
        settings = self.settings
        rules = {
            "AllowedAudience": list(settings.auth_allowed_audience),
            "AllowedClients": list(settings.auth_allowed_clients),
            "AllowedScopes": list(settings.auth_allowed_scopes),
            "CustomClaims": pascal(json.loads(settings.auth_custom_claims)),
        }
        return {"DiscoveryUrl": settings.auth_discovery_url} | {name: rule for name, rule in rules.items() if rule}

    def _build_resources(self) -> dict[str, Template]:
        policies = {"build": _substituted(build_policy(repository_arn(self.slug), self.project))}
        blocked = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
        environment = {
            "Type": "ARM_CONTAINER",
            "Image": "aws/codebuild/amazonlinux-aarch64-standard:3.0",
            "ComputeType": "BUILD_GENERAL1_SMALL",
            "PrivilegedMode": True,
        }
        properties = {
            "Name": self.project,
            "Source": {"Type": "NO_SOURCE", "BuildSpec": json.dumps(BUILDSPEC)},
            "Artifacts": {"Type": "NO_ARTIFACTS"},
            "Environment": environment,
            "ServiceRole": _attribute("BuildRole", "Arn"),
            "TimeoutInMinutes": 30,
        }
        closed = {"PublicAccessBlockConfiguration": dict.fromkeys(blocked, True)}
        return {
            "Bucket": {"Type": "AWS::S3::Bucket", "Properties": closed},
            "BuildRole": _role(build_trust(self.project), policies),
            "Project": {"Type": "AWS::CodeBuild::Project", "Properties": properties},
        }


def _template_of(description: str, resources: Mapping[str, object]) -> Template:
    return {"AWSTemplateFormatVersion": "2010-09-09", "Description": description, "Resources": dict(resources)}


def add_endpoint(template: Template, name: str, version: object = None) -> None:
    """Add an endpoint, which follows the newest version unless one is named, or change its version."""
    if name != DEFAULT_ENDPOINT:
        properties = {
            "Name": name,
            "AgentRuntimeId": _attribute("Runtime", "AgentRuntimeId"),
            "AgentRuntimeVersion": version or NEWEST_VERSION,
        }
        logical_id = f"Endpoint{name.replace('_', '0x5f')}"  # CloudFormation takes letters and digits
        template["Resources"][logical_id] = {"Type": ENDPOINT_TYPE, "Properties": properties}


def endpoints_of(template: Template) -> dict[str, object]:
    found = (each["Properties"] for each in template["Resources"].values() if each["Type"] == ENDPOINT_TYPE)
    return {each["Name"]: each["AgentRuntimeVersion"] for each in found}


def _role(trust: Policy, policies: Mapping[str, object]) -> Template:
    documents = [{"PolicyName": name, "PolicyDocument": policy} for name, policy in policies.items()]
    properties = {"AssumeRolePolicyDocument": _substituted(trust), "Policies": documents}
    return {"Type": "AWS::IAM::Role", "Properties": properties}


def _attribute(resource: str, name: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [resource, name]}


def pascal(value: Any) -> Any:  # noqa: ANN401 - any part of a parameter
    """Return parameters of a call with the names of CloudFormation, which begin with a capital letter."""
    if isinstance(value, Mapping):
        return {f"{name[0].upper()}{name[1:]}": pascal(each) for name, each in value.items()}
    return [pascal(each) for each in value] if isinstance(value, list) else value


def _substituted(value: Any) -> Any:  # noqa: ANN401 - any part of a template
    """Return a part of a template in which CloudFormation fills the placeholders."""
    if isinstance(value, Mapping):
        return {name: _substituted(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_substituted(each) for each in value]
    return {"Fn::Sub": value} if isinstance(value, str) and "${AWS::" in value else value
