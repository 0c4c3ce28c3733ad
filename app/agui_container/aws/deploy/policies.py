"""Policies of the roles: who may assume them, and the least that they must be allowed; ARNs in an account and a region.

Sources: devguide ``runtime-permissions``; docs/models.md and docs/operations.md for what the server itself calls;
service authorization reference of Bedrock for inference profiles.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, structs

from agui_container.assistant_factory import read_options
from agui_container.aws.deploy.options import DeployOptions
from agui_container.models import BedrockOptions
from agui_container.settings import ASSISTANT, Settings, SettingsError
from agui_container.stores.files import BUCKET
from agui_container.tools.mcp.servers import HttpServer, McpConfigError, parse_servers

Policy = dict[str, object]
Statement = dict[str, object]

PROFILE = re.compile(r"(?:us|us-gov|eu|apac|jp|au|ca|global)\.(?P<model>.+)")
"""Id of an inference profile across regions: a geography, then the model."""

LOG_GROUPS = "log-group:/aws/bedrock-agentcore/runtimes/"
STREAM = "bedrock:InvokeModelWithResponseStream"
FILE_ACTIONS = ("PutObject", "AbortMultipartUpload", "GetObject", "DeleteObject")
MEMORY_ACTIONS = ("CreateEvent", "ListEvents", "DeleteEvent", "ListSessions")


class AwsPlace(Struct, frozen=True):
    """An account and a region. Each field may be a placeholder of CloudFormation."""

    partition: str
    region: str
    account: str

    def arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"

    def arn_of(self, service: str, kind: str, name: str) -> str:
        """Return the ARN of a resource that a setting names by its id, or by its ARN."""
        return name if name.startswith("arn:") else self.arn(service, f"{kind}/{name}")


def policy(statements: Sequence[Statement]) -> Policy:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str], condition: object = None) -> Statement:
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
    return statement if condition is None else {**statement, "Condition": condition}


def _trust_policy(service: str, place: AwsPlace, source: str) -> Policy:
    condition = {"StringEquals": {"aws:SourceAccount": place.account}, "ArnLike": {"aws:SourceArn": source}}
    principal = {"Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"}
    return policy([{"Sid": "Assume", "Effect": "Allow", **principal, "Condition": condition}])


def runtime_trust(place: AwsPlace) -> Policy:
    """Return who may assume the execution role. AWS names no narrower source, because the id is not known before."""
    return _trust_policy("bedrock-agentcore", place, place.arn("bedrock-agentcore", "*"))


def runtime_policy(place: AwsPlace, repository: str, settings: Settings, options: DeployOptions) -> Policy:
    """Return what the execution role must be allowed. ``repository`` is the ARN of the image's repository."""
    return policy(
        [
            *_image_statements(repository),
            *_telemetry_statements(place),
            *_model_statements(place, settings, options.models),
            *_memory_statements(place, settings),
            *_file_statements(place, settings),
            *identity_statements(place, settings, options.name),
            *_secret_statements(sorted({":".join(arn.split(":")[:7]) for arn in options.secrets.values()})),
        ]
    )


def _image_statements(repository: str) -> Iterator[Statement]:
    yield _allow("PullImage", ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"], [repository])
    yield _allow("RegistryToken", ["ecr:GetAuthorizationToken"], ["*"])


def _telemetry_statements(place: AwsPlace) -> Iterator[Statement]:
    groups = place.arn("logs", f"{LOG_GROUPS}*")
    yield _allow("LogGroups", ["logs:CreateLogGroup", "logs:DescribeLogStreams"], [groups])
    yield _allow("ListLogGroups", ["logs:DescribeLogGroups"], [place.arn("logs", "log-group:*")])
    yield _allow("Logs", ["logs:CreateLogStream", "logs:PutLogEvents"], [f"{groups}:log-stream:*"])
    traces = ("PutTraceSegments", "PutTelemetryRecords", "GetSamplingRules", "GetSamplingTargets")
    yield _allow("Traces", [f"xray:{action}" for action in traces], ["*"])
    namespace = {"StringEquals": {"cloudwatch:namespace": "bedrock-agentcore"}}
    yield _allow("Metrics", ["cloudwatch:PutMetricData"], ["*"], namespace)


def _model_statements(place: AwsPlace, settings: Settings, models: Sequence[str]) -> Iterator[Statement]:
    options = read_options(BedrockOptions, settings) if settings.model.startswith("bedrock:") else BedrockOptions()
    there = structs.replace(place, region=options.region or place.region)
    named = [settings.model, *(entry.rpartition("=")[2] for entry in settings.models)]
    is_used = ASSISTANT in settings.agent_references.values()
    own = [each for each in named if is_used and each.startswith("bedrock:")]
    for prefix, actions, references in (
        ("Model", [STREAM], own),
        ("OwnModel", [STREAM, "bedrock:InvokeModel"], models),
    ):
        for number, reference in enumerate(dict.fromkeys(references), 1):
            yield from _one_model(f"{prefix}{number}", actions, there, reference.partition(":")[2])
    if own and options.guardrail:
        arn = there.arn_of("bedrock", "guardrail", options.guardrail.id)
        yield _allow("Guardrail", ["bedrock:ApplyGuardrail"], [arn])


def _one_model(sid: str, actions: Sequence[str], place: AwsPlace, name: str) -> Iterator[Statement]:
    # A profile chooses the region, so its models are allowed in every region, but through the profile only.
    found = PROFILE.fullmatch(name)
    if found is None and "inference-profile/" not in name:
        arn = f"arn:{place.partition}:bedrock:{place.region}::foundation-model/{name}"
        yield _allow(sid, actions, [name if name.startswith("arn:") else arn])
        return
    profile = place.arn_of("bedrock", "inference-profile", name)
    yield _allow(sid, actions, [profile])
    models = f"arn:{place.partition}:bedrock:*::foundation-model/{found['model'] if found else '*'}"
    yield _allow(f"{sid}InRegions", actions, [models], {"StringLike": {"bedrock:InferenceProfileArn": profile}})


def _file_statements(place: AwsPlace, settings: Settings) -> Iterator[Statement]:
    """Without the right to list, S3 answers for a missing key that access is denied."""
    if settings.files.startswith(BUCKET):
        bucket, _, prefix = settings.files.removeprefix(BUCKET).partition("/")
        arn = f"arn:{place.partition}:s3:::{bucket}"
        objects = "/".join(part for part in (arn, prefix.strip("/"), "*") if part)
        yield _allow("Files", [f"s3:{action}" for action in FILE_ACTIONS], [objects])
        yield _allow("FindFiles", ["s3:ListBucket"], [arn])


def _memory_statements(place: AwsPlace, settings: Settings) -> Iterator[Statement]:
    kind, _, memory = settings.store.get_secret_value().partition(":")
    if kind == "agentcore-memory":
        actions = [f"bedrock-agentcore:{action}" for action in MEMORY_ACTIONS]
        yield _allow("Memory", actions, [place.arn_of("bedrock-agentcore", "memory", memory)])


def identity_statements(place: AwsPlace, settings: Settings, name: str) -> Iterator[Statement]:
    """Return what gets tokens of AgentCore Identity, if an MCP server has ``identity``.

    Source: devguide ``identity-authentication``. The workload identity has the name of the runtime and a suffix.
    """
    try:
        servers = parse_servers(settings.mcp_servers)
    except McpConfigError as error:
        raise SettingsError(f"AGUI_MCP_SERVERS: {error}") from None
    identities = [server.identity for server in servers if isinstance(server, HttpServer) and server.identity]
    if providers := sorted({identity.provider for identity in identities}):
        vault, directory = "token-vault/default", "workload-identity-directory/default"
        named = [f"{vault}/oauth2credentialprovider/{provider}" for provider in providers]
        resources = [vault, *named, directory, f"{directory}/workload-identity/{name}-*"]
        tokens = [place.arn("bedrock-agentcore", resource) for resource in resources]
        yield _allow("IdentityTokens", ["bedrock-agentcore:GetResourceOauth2Token"], tokens)
        secrets = [f"secret:bedrock-agentcore-identity!default/oauth2/{provider}-*" for provider in providers]
        arns = [place.arn("secretsmanager", secret) for secret in secrets]
        yield _allow("IdentitySecrets", ["secretsmanager:GetSecretValue"], arns)


def _secret_statements(arns: Sequence[str]) -> Iterator[Statement]:
    if arns:
        yield _allow("Secrets", ["secretsmanager:GetSecretValue"], arns)


def build_trust(place: AwsPlace, project: str) -> Policy:
    """Return who may assume the role of a build."""
    return _trust_policy("codebuild", place, place.arn("codebuild", f"project/{project}"))


def build_policy(place: AwsPlace, repository: str, project: str, bucket: str) -> Policy:
    """Return what the role of a build must be allowed: read the source, push one image, write its log."""
    push = ("BatchCheckLayerAvailability", "CompleteLayerUpload", "InitiateLayerUpload", "PutImage", "UploadLayerPart")
    group = place.arn("logs", f"log-group:/aws/codebuild/{project}")
    return policy(
        [
            *_image_statements(repository),
            _allow("PushImage", [f"ecr:{action}" for action in push], [repository]),
            _allow("Source", ["s3:GetObject", "s3:GetObjectVersion"], [f"arn:{place.partition}:s3:::{bucket}/*"]),
            _allow("Logs", ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"], [group, f"{group}:*"]),
        ]
    )


def read_policy(path: str) -> Policy:
    """Read the policy that the role gets besides. Raises ``SettingsError``."""
    try:
        document: object = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"[deploy] policy: {path}: {getattr(error, 'strerror', None) or error}.") from None
    if not isinstance(document, dict) or "Statement" not in document:
        raise SettingsError(f"[deploy] policy: {path}: is no policy with a Statement.")
    return document
