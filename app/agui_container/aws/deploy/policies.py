"""Policies of the roles: who may assume them, and the least that they must be allowed; ARNs in an account and a region.

Sources: devguide ``runtime-permissions``; docs/models.md and docs/operations.md for what the server itself calls;
service authorization reference of Bedrock for inference profiles.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from agui_container.assistant_factory import read_options
from agui_container.aws.deploy.options import DeployOptions
from agui_container.models import BedrockOptions
from agui_container.settings import ASSISTANT, Settings, SettingsError
from agui_container.stores.files import BUCKET
from agui_container.tools.mcp.servers import HttpServer, McpConfigError, parse_servers

PARTITION, REGION, ACCOUNT = "${AWS::Partition}", "${AWS::Region}", "${AWS::AccountId}"
"""CloudFormation fills in these."""

Policy = dict[str, object]
Statement = dict[str, object]

PROFILE = re.compile(r"(?:us|us-gov|eu|apac|jp|au|ca|global)\.(?P<model>.+)")
"""Id of an inference profile across regions: a geography, then the model."""

LOG_GROUPS = "log-group:/aws/bedrock-agentcore/runtimes/"
STREAM = "bedrock:InvokeModelWithResponseStream"
FILE_ACTIONS = ("PutObject", "AbortMultipartUpload", "GetObject", "DeleteObject")
MEMORY_ACTIONS = ("CreateEvent", "ListEvents", "DeleteEvent", "ListSessions")


def repository_arn(repository: str, *, region: str = REGION, account: str = ACCOUNT) -> str:
    return f"arn:{PARTITION}:ecr:{region}:{account}:repository/{repository}"


def _arn(service: str, resource: str, *, region: str = REGION) -> str:
    return f"arn:{PARTITION}:{service}:{region}:{ACCOUNT}:{resource}"


def _arn_of(service: str, kind: str, name: str, *, region: str = REGION) -> str:
    """Return the ARN of a resource that a setting names by its id, or by its ARN."""
    return name if name.startswith("arn:") else _arn(service, f"{kind}/{name}", region=region)


def policy(statements: Sequence[Statement]) -> Policy:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str], condition: object = None) -> Statement:
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
    return statement if condition is None else {**statement, "Condition": condition}


def _trust_policy(service: str, source: str) -> Policy:
    condition = {"StringEquals": {"aws:SourceAccount": ACCOUNT}, "ArnLike": {"aws:SourceArn": source}}
    principal = {"Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"}
    return policy([{"Sid": "Assume", "Effect": "Allow", **principal, "Condition": condition}])


def runtime_trust() -> Policy:
    """Return who may assume the execution role. AWS names no narrower source, because the id is not known before."""
    return _trust_policy("bedrock-agentcore", _arn("bedrock-agentcore", "*"))


def runtime_policy(repository: str, settings: Settings, options: DeployOptions) -> Policy:
    """Return what the execution role must be allowed. ``repository`` is the ARN of the image's repository."""
    return policy(
        [
            *_image_statements(repository),
            *_telemetry_statements(),
            *_model_statements(settings, options.models),
            *_memory_statements(settings),
            *_file_statements(settings),
            *identity_statements(settings, options.name),
            *_secret_statements(sorted({":".join(secret.split(":")[:7]) for secret in options.secrets.values()})),
        ]
    )


def _image_statements(repository: str) -> Iterator[Statement]:
    yield _allow("PullImage", ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"], [repository])
    yield _allow("RegistryToken", ["ecr:GetAuthorizationToken"], ["*"])


def _telemetry_statements() -> Iterator[Statement]:
    groups = _arn("logs", f"{LOG_GROUPS}*")
    yield _allow("LogGroups", ["logs:CreateLogGroup", "logs:DescribeLogStreams"], [groups])
    yield _allow("ListLogGroups", ["logs:DescribeLogGroups"], [_arn("logs", "log-group:*")])
    yield _allow("Logs", ["logs:CreateLogStream", "logs:PutLogEvents"], [f"{groups}:log-stream:*"])
    traces = ("PutTraceSegments", "PutTelemetryRecords", "GetSamplingRules", "GetSamplingTargets")
    yield _allow("Traces", [f"xray:{action}" for action in traces], ["*"])
    namespace = {"StringEquals": {"cloudwatch:namespace": "bedrock-agentcore"}}
    yield _allow("Metrics", ["cloudwatch:PutMetricData"], ["*"], namespace)


def _model_statements(settings: Settings, models: Sequence[str]) -> Iterator[Statement]:
    options = read_options(BedrockOptions, settings) if settings.model.startswith("bedrock:") else BedrockOptions()
    region = options.region or REGION
    named = [settings.model, *(entry.rpartition("=")[2] for entry in settings.models)]
    is_used = ASSISTANT in settings.agent_references.values()
    own = [each for each in named if is_used and each.startswith("bedrock:")]
    for prefix, actions, references in (
        ("Model", [STREAM], own),
        ("OwnModel", [STREAM, "bedrock:InvokeModel"], models),
    ):
        for number, reference in enumerate(dict.fromkeys(references), 1):
            yield from _one_model(f"{prefix}{number}", actions, region, reference.partition(":")[2])
    if own and options.guardrail:
        guardrail = _arn_of("bedrock", "guardrail", options.guardrail.id, region=region)
        yield _allow("Guardrail", ["bedrock:ApplyGuardrail"], [guardrail])


def _one_model(sid: str, actions: Sequence[str], region: str, name: str) -> Iterator[Statement]:
    # A profile chooses the region, so its models are allowed in every region, but through the profile only.
    found = PROFILE.fullmatch(name)
    if found is None and "inference-profile/" not in name:
        model = f"arn:{PARTITION}:bedrock:{region}::foundation-model/{name}"
        yield _allow(sid, actions, [name if name.startswith("arn:") else model])
        return
    profile = _arn_of("bedrock", "inference-profile", name, region=region)
    yield _allow(sid, actions, [profile])
    models = f"arn:{PARTITION}:bedrock:*::foundation-model/{found['model'] if found else '*'}"
    yield _allow(f"{sid}InRegions", actions, [models], {"StringLike": {"bedrock:InferenceProfileArn": profile}})


def _file_statements(settings: Settings) -> Iterator[Statement]:
    """Without the right to list, S3 answers for a missing key that access is denied."""
    if settings.files.startswith(BUCKET):
        bucket, _, prefix = settings.files.removeprefix(BUCKET).partition("/")
        there = f"arn:{PARTITION}:s3:::{bucket}"
        objects = "/".join(part for part in (there, prefix.strip("/"), "*") if part)
        yield _allow("Files", [f"s3:{action}" for action in FILE_ACTIONS], [objects])
        yield _allow("FindFiles", ["s3:ListBucket"], [there])


def _memory_statements(settings: Settings) -> Iterator[Statement]:
    kind, _, memory = settings.store.get_secret_value().partition(":")
    if kind == "agentcore-memory":
        actions = [f"bedrock-agentcore:{action}" for action in MEMORY_ACTIONS]
        yield _allow("Memory", actions, [_arn_of("bedrock-agentcore", "memory", memory)])


def identity_statements(settings: Settings, name: str) -> Iterator[Statement]:
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
        tokens = [_arn("bedrock-agentcore", resource) for resource in resources]
        yield _allow("IdentityTokens", ["bedrock-agentcore:GetResourceOauth2Token"], tokens)
        secrets = [f"secret:bedrock-agentcore-identity!default/oauth2/{provider}-*" for provider in providers]
        arns = [_arn("secretsmanager", secret) for secret in secrets]
        yield _allow("IdentitySecrets", ["secretsmanager:GetSecretValue"], arns)


def _secret_statements(arns: Sequence[str]) -> Iterator[Statement]:
    if arns:
        yield _allow("Secrets", ["secretsmanager:GetSecretValue"], arns)


def build_trust(project: str) -> Policy:
    """Return who may assume the role of a build."""
    return _trust_policy("codebuild", _arn("codebuild", f"project/{project}"))


def build_policy(repository: str, project: str) -> Policy:
    """Return what the role of a build must be allowed: read the source in ``Bucket``, push one image, write its log."""
    push = ("BatchCheckLayerAvailability", "CompleteLayerUpload", "InitiateLayerUpload", "PutImage", "UploadLayerPart")
    group = _arn("logs", f"log-group:/aws/codebuild/{project}")
    return policy(
        [
            *_image_statements(repository),
            _allow("PushImage", [f"ecr:{action}" for action in push], [repository]),
            _allow("Source", ["s3:GetObject", "s3:GetObjectVersion"], [f"arn:{PARTITION}:s3:::${{Bucket}}/*"]),
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
