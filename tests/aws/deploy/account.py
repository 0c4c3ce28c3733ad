"""An account of AWS in this process: moto, with what it lacks, and calls that fail.

moto has these gaps, which ``Account`` closes: its CloudFormation knows no runtimes, an update never ends, a version
cannot be read, the ARN of a runtime is that of an agent and changes with its version, and nothing puts an image into a
repository.
"""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from agui_container.aws.deploy.aws import Aws, Response
from tests.aws.deploy.stacks import Stacks, refused

CONTROL = "bedrock-agentcore-control"
KIND = "application/vnd.docker.distribution.manifest.v2+json"
LAYERS = {"config": {"digest": "sha256:0", "size": 1}, "layers": []}
MANIFEST = json.dumps({"schemaVersion": 2, "mediaType": KIND, **LAYERS})


class Account(Aws):
    """Calls of moto. ``calls`` are those that change something; the one of number ``fail_at`` fails."""

    calls: ClassVar[list[str]] = []
    fail_at: ClassVar[int] = 0
    is_lost: ClassVar[bool] = False
    refused: ClassVar[tuple[str, ...]] = ()
    versions: ClassVar[dict[str, Response]] = {}
    clients: ClassVar[dict[str, Any]] = {}
    stacks: ClassVar[Stacks]

    @classmethod
    def reset(cls) -> None:
        cls.calls.clear()
        cls.versions.clear()
        cls.stacks = Stacks(call)
        cls.fail_at, cls.is_lost, cls.refused = 0, False, ()

    def call(self, service: str, operation: str, parameters: Mapping[str, object]) -> Response:
        cls = type(self)
        if service in cls.refused:
            raise refused("AccessDeniedException", operation)
        if operation.startswith(("Get", "List", "Describe", "BatchGet", "CreateChangeSet", "DeleteChangeSet")):
            return self.answer(service, operation, parameters)
        is_failing = len(cls.calls) + 1 == cls.fail_at
        cls.calls.append(f"{service}.{operation}")
        if is_failing and not cls.is_lost:
            raise refused("InternalServerException", operation)
        response = self.answer(service, operation, parameters)
        if is_failing:
            raise refused("InternalServerException", operation)
        return response

    def answer(self, service: str, operation: str, parameters: Mapping[str, object]) -> Response:
        if service == CONTROL and operation == "GetAgentRuntime" and "agentRuntimeVersion" in parameters:
            return self.versions[str(parameters["agentRuntimeVersion"])]
        if service == "cloudformation":
            return self.stacks.answer(operation, parameters)
        response = super().call(service, operation, parameters)
        for each in (response, *response.get("agentRuntimes", ())):
            if {"agentRuntimeArn", "agentRuntimeId"} <= each.keys():
                place = each["agentRuntimeArn"].partition(":agent/")[0]
                each["agentRuntimeArn"] = f"{place}:runtime/{each['agentRuntimeId']}"
        for each in response.get("runtimeEndpoints", ()):
            named = {"agentRuntimeId": parameters["agentRuntimeId"], "endpointName": each["name"]}
            each["liveVersion"] = super().call(service, "GetAgentRuntimeEndpoint", named)["targetVersion"]
        if service == CONTROL and response.get("status") == "UPDATING" and operation.startswith("Get"):
            response["status"] = "READY"
        if service == CONTROL and operation == "GetAgentRuntime":
            self.versions[response["agentRuntimeVersion"]] = response
        if operation == "StartBuild":
            variables: Any = parameters["environmentVariablesOverride"]
            self.push(variables[0]["value"])
        return response

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
        """Return a client that all accounts share, because making one is slow."""
        if service not in self.clients:
            self.clients[service] = super().client(service)
        return self.clients[service]

    def push(self, image: str) -> None:
        repository, _, tag = image.partition("/")[2].partition(":")
        self.client("ecr").put_image(repositoryName=repository, imageTag=tag, imageManifest=MANIFEST)


def call(service: str, operation: str, **parameters: object) -> dict[str, Any]:
    return Account("eu-central-1").answer(service, operation, parameters)


def runtimes() -> list[dict[str, Any]]:
    listed = call(CONTROL, "ListAgentRuntimes")["agentRuntimes"]
    return [call(CONTROL, "GetAgentRuntime", agentRuntimeId=each["agentRuntimeId"]) for each in listed]


def version_of(runtime: dict[str, Any], endpoint: str) -> str:
    found = call(CONTROL, "GetAgentRuntimeEndpoint", agentRuntimeId=runtime["agentRuntimeId"], endpointName=endpoint)
    return str(found["targetVersion"])
