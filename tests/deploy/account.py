"""An account of AWS in this process: moto, with what its control plane of AgentCore lacks, and calls that fail.

moto has these gaps, which ``Account`` closes: an update never ends, a version cannot be read, the ARN of a runtime is
that of an agent and changes with its version, projects cannot be updated, buckets are made without tags, and nothing
puts an image into a repository.
"""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from agui_container.deploy.aws import Aws, AwsError, Response

CONTROL = "bedrock-agentcore-control"
MANIFEST = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"digest": "sha256:0", "size": 1},
        "layers": [],
    }
)


class Account(Aws):
    """Calls of moto.

    Attributes:
        calls: each call that changes something, as ``service.Operation``.
        fail_at: number of the change that fails. A call that only reads leaves nothing half-made.
        is_lost: True if that call is made, and its response is lost.
        refused: services for which the user has no rights.
    """

    calls: ClassVar[list[str]] = []
    fail_at: ClassVar[int] = 0
    is_lost: ClassVar[bool] = False
    refused: ClassVar[tuple[str, ...]] = ()
    versions: ClassVar[dict[str, Response]] = {}
    clients: ClassVar[dict[str, Any]] = {}
    arns: ClassVar[dict[str, str]] = {}

    @classmethod
    def reset(cls) -> None:
        cls.calls.clear()
        cls.versions.clear()
        cls.fail_at, cls.is_lost, cls.refused = 0, False, ()

    def call(self, service: str, operation: str, parameters: Mapping[str, object]) -> Response:
        """Make a call, or fail."""
        cls = type(self)
        if service in cls.refused:
            raise AwsError(operation, "AccessDeniedException", "planted")
        if operation.startswith(("Get", "List", "Describe", "BatchGet", "Head")):
            return self.answer(service, operation, parameters)
        is_failing = len(cls.calls) + 1 == cls.fail_at
        cls.calls.append(f"{service}.{operation}")
        if is_failing and not cls.is_lost:
            raise AwsError(operation, "InternalServerException", "planted")
        response = self.answer(service, operation, parameters)
        if is_failing:
            raise AwsError(operation, "InternalServerException", "planted")
        return response

    def answer(self, service: str, operation: str, parameters: Mapping[str, object]) -> Response:
        """Answer as AWS does where moto does not."""
        if service == CONTROL and operation == "ListTagsForResource":
            parameters = {"resourceArn": self.arns[str(parameters["resourceArn"])]}
        if service == CONTROL and operation == "GetAgentRuntime" and "agentRuntimeVersion" in parameters:
            return self.versions[str(parameters["agentRuntimeVersion"])]
        if operation == "UpdateProject":
            super().call(service, "DeleteProject", {"name": parameters["name"]})
            operation = "CreateProject"
        response = super().call(service, operation, parameters)
        for each in (response, *response.get("agentRuntimes", ())):
            if {"agentRuntimeArn", "agentRuntimeId"} <= each.keys():
                each["agentRuntimeArn"] = self.real_arn(each["agentRuntimeArn"], each["agentRuntimeId"])
        if service == CONTROL and response.get("status") == "UPDATING" and operation.startswith("Get"):
            response["status"] = "READY"
        if service == CONTROL and operation == "GetAgentRuntimeEndpoint":
            response["liveVersion"] = response["targetVersion"]
        if service == CONTROL and operation == "GetAgentRuntime":
            self.versions[response["agentRuntimeVersion"]] = response
        self.add_effect(operation, parameters)
        return response

    def add_effect(self, operation: str, parameters: Mapping[str, object]) -> None:
        """Do what a call does besides its response, and moto leaves out."""
        if operation == "CreateBucket":
            configuration: Any = parameters["CreateBucketConfiguration"]
            tagging = {"Bucket": parameters["Bucket"], "Tagging": {"TagSet": configuration.get("Tags", [])}}
            super().call("s3", "PutBucketTagging", tagging)
        if operation == "StartBuild":
            variables: Any = parameters["environmentVariablesOverride"]
            self.push(variables[0]["value"])

    def real_arn(self, arn: str, runtime_id: str) -> str:
        """Return an ARN as AWS makes it, and remember moto's one for it, under which the tags are."""
        real = f"{arn.partition(':agent/')[0]}:runtime/{runtime_id}"
        self.arns[real] = f"{arn.rpartition(':')[0]}:1"
        return real

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
        """Return a client that all accounts share, because making one is slow."""
        if service not in self.clients:
            self.clients[service] = super().client(service)
        return self.clients[service]

    def push(self, image: str) -> None:
        """Put an image into its repository."""
        repository, _, tag = image.partition("/")[2].partition(":")
        self.client("ecr").put_image(repositoryName=repository, imageTag=tag, imageManifest=MANIFEST)


def call(service: str, operation: str, **parameters: object) -> dict[str, Any]:
    """Make a call of the tests' own, which does not count."""
    return Account("eu-central-1").answer(service, operation, parameters)


def runtimes() -> list[dict[str, Any]]:
    """The runtimes of the account."""
    listed = call(CONTROL, "ListAgentRuntimes")["agentRuntimes"]
    return [call(CONTROL, "GetAgentRuntime", agentRuntimeId=each["agentRuntimeId"]) for each in listed]


def version_of(runtime: dict[str, Any], endpoint: str) -> str:
    """The version of an endpoint."""
    found = call(CONTROL, "GetAgentRuntimeEndpoint", agentRuntimeId=runtime["agentRuntimeId"], endpointName=endpoint)
    return str(found["liveVersion"])
