"""Policies of the roles: who may assume them, and the least that they must be allowed.

Sources: devguide ``runtime-permissions``; docs/models.md and docs/memory.md for what the server itself calls; service
authorization reference of Bedrock for inference profiles.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agui_container.assistant_factory import read_options
from agui_container.deploy.options import DeployOptions
from agui_container.deploy.place import AwsPlace
from agui_container.models import BedrockOptions
from agui_container.settings import ASSISTANT, Settings, SettingsError
from agui_container.tools.mcp.servers import HttpServer, McpConfigError, parse_servers

Policy = dict[str, object]
Statement = dict[str, object]

PROFILE = re.compile(r"(?:us|us-gov|eu|apac|jp|au|ca|global)\.(?P<model>.+)")
"""Id of an inference profile across regions: a geography, then the model."""

LOG_GROUPS = "log-group:/aws/bedrock-agentcore/runtimes/"
STREAM = "bedrock:InvokeModelWithResponseStream"
MEMORY_ACTIONS = ("CreateEvent", "ListEvents", "DeleteEvent", "ListSessions")


def policy(statements: Sequence[Statement]) -> Policy:
    """Return a policy document."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allow(sid: str, actions: Sequence[str], resources: Sequence[str], condition: object = None) -> Statement:
    """Return a statement that allows actions."""
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
    return statement if condition is None else {**statement, "Condition": condition}


def trust_policy(service: str, place: AwsPlace, source: str) -> Policy:
    """Return who may assume a role: a service, on behalf of this account and a resource of it."""
    return policy(
        [
            {
                "Sid": "Assume",
                "Effect": "Allow",
                "Principal": {"Service": f"{service}.amazonaws.com"},
                "Action": "sts:AssumeRole",
                "Condition": {
                    "StringEquals": {"aws:SourceAccount": place.account},
                    "ArnLike": {"aws:SourceArn": source},
                },
            }
        ]
    )


def runtime_trust(place: AwsPlace) -> Policy:
    """Return who may assume the execution role. AWS names no narrower source, because the id is not known before."""
    return trust_policy("bedrock-agentcore", place, place.arn("bedrock-agentcore", "*"))


def runtime_policy(place: AwsPlace, repository: str, settings: Settings, options: DeployOptions) -> Policy:
    """Return what the execution role must be allowed.

    Args:
        place: where the runtime is.
        repository: ARN of the image's repository.
        settings: name models, a memory and MCP servers.
        options: name the runtime, models that an agent calls by itself, and secrets.
    """
    return policy(
        [
            *image_statements(repository),
            *telemetry_statements(place),
            *model_statements(place, settings, options.models),
            *memory_statements(place, settings),
            *identity_statements(place, settings, options.name),
            *secret_statements(options.secrets),
        ]
    )


def image_statements(repository: str) -> Iterator[Statement]:
    """Return what pulls the image. The token of the registry is for no resource."""
    pull = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    yield allow("PullImage", pull, [repository])
    yield allow("RegistryToken", ["ecr:GetAuthorizationToken"], ["*"])


def telemetry_statements(place: AwsPlace) -> Iterator[Statement]:
    """Return what writes logs, traces and metrics. X-Ray and CloudWatch know no resources for these actions."""
    groups = place.arn("logs", f"{LOG_GROUPS}*")
    yield allow("LogGroups", ["logs:CreateLogGroup", "logs:DescribeLogStreams"], [groups])
    yield allow("ListLogGroups", ["logs:DescribeLogGroups"], [place.arn("logs", "log-group:*")])
    yield allow("Logs", ["logs:CreateLogStream", "logs:PutLogEvents"], [f"{groups}:log-stream:*"])
    traces = ("PutTraceSegments", "PutTelemetryRecords", "GetSamplingRules", "GetSamplingTargets")
    yield allow("Traces", [f"xray:{action}" for action in traces], ["*"])
    namespace = {"StringEquals": {"cloudwatch:namespace": "bedrock-agentcore"}}
    yield allow("Metrics", ["cloudwatch:PutMetricData"], ["*"], namespace)


def model_statements(place: AwsPlace, settings: Settings, models: Sequence[str]) -> Iterator[Statement]:
    """Return what calls the models. The assistant streams, and an agent may also call without a stream."""
    options = read_model_options(settings)
    there = AwsPlace(place.partition, options.region or place.region, place.account)
    named = [settings.model, *(entry.rpartition("=")[2] for entry in settings.models)]
    own = [each for each in named if each.startswith("bedrock:")] if uses_assistant(settings) else []
    for prefix, actions, references in (
        ("Model", [STREAM], own),
        ("OwnModel", [STREAM, "bedrock:InvokeModel"], models),
    ):
        for number, reference in enumerate(dict.fromkeys(references), 1):
            yield from one_model(f"{prefix}{number}", actions, there, reference.partition(":")[2])
    if own and options.guardrail:
        arn = there.arn_of("bedrock", "guardrail", options.guardrail.id)
        yield allow("Guardrail", ["bedrock:ApplyGuardrail"], [arn])


def uses_assistant(settings: Settings) -> bool:
    """Return True if the built-in assistant is one of the agents."""
    return ASSISTANT in settings.agent_references.values()


def one_model(sid: str, actions: Sequence[str], place: AwsPlace, name: str) -> Iterator[Statement]:
    """Return what calls one model: an id, an inference profile, or an ARN.

    A profile chooses the region, so its models are allowed in every region, but through the profile only.
    """
    found = PROFILE.fullmatch(name)
    is_profile = found is not None or "inference-profile/" in name
    if not is_profile:
        arn = (
            name
            if name.startswith("arn:")
            else f"arn:{place.partition}:bedrock:{place.region}::foundation-model/{name}"
        )
        yield allow(sid, actions, [arn])
        return
    profile = place.arn_of("bedrock", "inference-profile", name)
    yield allow(sid, actions, [profile])
    model = found["model"] if found else "*"
    through = {"StringLike": {"bedrock:InferenceProfileArn": profile}}
    yield allow(f"{sid}InRegions", actions, [f"arn:{place.partition}:bedrock:*::foundation-model/{model}"], through)


def memory_statements(place: AwsPlace, settings: Settings) -> Iterator[Statement]:
    """Return what keeps conversations in AgentCore Memory, if the settings name a memory."""
    kind, _, memory = settings.store.get_secret_value().partition(":")
    if kind == "agentcore-memory":
        actions = [f"bedrock-agentcore:{action}" for action in MEMORY_ACTIONS]
        yield allow("Memory", actions, [place.arn_of("bedrock-agentcore", "memory", memory)])


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
        yield allow("IdentityTokens", ["bedrock-agentcore:GetResourceOauth2Token"], tokens)
        secrets = [f"secret:bedrock-agentcore-identity!default/oauth2/{provider}-*" for provider in providers]
        arns = [place.arn("secretsmanager", secret) for secret in secrets]
        yield allow("IdentitySecrets", ["secretsmanager:GetSecretValue"], arns)


def secret_statements(secrets: Mapping[str, str]) -> Iterator[Statement]:
    """Return what reads the secrets of settings."""
    if secrets:
        yield allow("Secrets", ["secretsmanager:GetSecretValue"], sorted({secret_of(arn) for arn in secrets.values()}))


def build_trust(place: AwsPlace, project: str) -> Policy:
    """Return who may assume the role of a build."""
    return trust_policy("codebuild", place, place.arn("codebuild", f"project/{project}"))


def build_policy(place: AwsPlace, repository: str, project: str, bucket: str) -> Policy:
    """Return what the role of a build must be allowed: read the source, push one image, write its log."""
    push = ("BatchCheckLayerAvailability", "CompleteLayerUpload", "InitiateLayerUpload", "PutImage", "UploadLayerPart")
    group = place.arn("logs", f"log-group:/aws/codebuild/{project}")
    return policy(
        [
            *image_statements(repository),
            allow("PushImage", [f"ecr:{action}" for action in push], [repository]),
            allow("Source", ["s3:GetObject", "s3:GetObjectVersion"], [f"arn:{place.partition}:s3:::{bucket}/*"]),
            allow("Logs", ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"], [group, f"{group}:*"]),
        ]
    )


def read_model_options(settings: Settings) -> BedrockOptions:
    """Return the options of Bedrock. Raises ``SettingsError``."""
    return read_options(BedrockOptions, settings) if settings.model.startswith("bedrock:") else BedrockOptions()


def secret_of(reference: str) -> str:
    """Return the ARN of a secret without the key of its JSON."""
    return ":".join(reference.split(":")[:7])


def read_policy(path: str) -> Policy:
    """Read the policy that the role gets besides. Raises ``SettingsError``."""
    try:
        document: object = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"[deploy] policy: {path}: {getattr(error, 'strerror', None) or error}.") from None
    if not isinstance(document, dict) or "Statement" not in document:
        raise SettingsError(f"[deploy] policy: {path}: is no policy with a Statement.")
    return document
