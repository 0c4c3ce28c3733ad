"""An account of AWS in this process: moto, with what it lacks, and calls that fail.

moto has these gaps, which ``Account`` closes: its CloudFormation knows no runtimes, an update never ends, a version
cannot be read, the ARN of a runtime is that of an agent and changes with its version, and nothing puts an image into a
repository.
"""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from boto3.session import Session  # type: ignore[import-untyped]
from botocore.client import BaseClient  # type: ignore[import-untyped]

from agui_container.aws.deploy.stack import Response
from tests.aws.deploy.stacks import Stacks, refused

CONTROL = "bedrock-agentcore-control"
KIND = "application/vnd.docker.distribution.manifest.v2+json"
LAYERS = {"config": {"digest": "sha256:0", "size": 1}, "layers": []}
MANIFEST = json.dumps({"schemaVersion": 2, "mediaType": KIND, **LAYERS})


CALL, CLIENT = BaseClient._make_api_call, Session.client  # noqa: SLF001 - the one way of all calls


class Account:
    """Calls of moto. ``calls`` are those that change something; the one of number ``fail_at`` fails."""

    calls: ClassVar[list[str]] = []
    fail_at: ClassVar[int] = 0
    is_lost: ClassVar[bool] = False
    versions: ClassVar[dict[str, Response]] = {}
    clients: ClassVar[dict[str, Any]] = {}
    stacks: ClassVar[Stacks]

    @classmethod
    def reset(cls) -> None:
        cls.calls.clear()
        cls.versions.clear()
        cls.stacks = Stacks(call)
        cls.fail_at, cls.is_lost = 0, False

    @staticmethod
    def call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Response:  # noqa: ANN401 - of boto3
        """Answer in place of ``BaseClient._make_api_call``."""
        if operation.startswith(
            ("Get", "List", "Describe", "BatchGet", "CreateChangeSet", "DeleteChangeSet", "Filter")
        ):
            return Account.answer(client, operation, parameters)
        is_failing = len(Account.calls) + 1 == Account.fail_at
        Account.calls.append(f"{client.meta.service_model.service_name}.{operation}")
        if is_failing and not Account.is_lost:
            raise refused("InternalServerException", operation)
        response = Account.answer(client, operation, parameters)
        if is_failing:
            raise refused("InternalServerException", operation)
        return response

    @classmethod
    def answer(cls, client: Any, operation: str, parameters: Mapping[str, Any]) -> Response:  # noqa: ANN401 - of boto3
        service = client.meta.service_model.service_name
        if service == CONTROL and operation == "GetAgentRuntime" and "agentRuntimeVersion" in parameters:
            return cls.versions[str(parameters["agentRuntimeVersion"])]
        if service == "cloudformation":
            return cls.stacks.answer(operation, parameters)
        response: Response = CALL(client, operation, parameters)
        for each in (response, *response.get("agentRuntimes", ())):
            if {"agentRuntimeArn", "agentRuntimeId"} <= each.keys():
                place = each["agentRuntimeArn"].partition(":agent/")[0]
                each["agentRuntimeArn"] = f"{place}:runtime/{each['agentRuntimeId']}"
        for each in response.get("runtimeEndpoints", ()):
            named = {"agentRuntimeId": parameters["agentRuntimeId"], "endpointName": each["name"]}
            each["liveVersion"] = CALL(client, "GetAgentRuntimeEndpoint", named)["targetVersion"]
        if service == CONTROL and response.get("status") == "UPDATING" and operation.startswith("Get"):
            response["status"] = "READY"
        if service == CONTROL and operation == "GetAgentRuntime":
            cls.versions[response["agentRuntimeVersion"]] = response
        if operation == "StartBuild":
            cls.push(parameters["environmentVariablesOverride"][0]["value"])
        return response

    @staticmethod
    def client(session: Any, service: str) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
        """Return a client that all sessions share, because making one is slow."""
        if service not in Account.clients:
            Account.clients[service] = CLIENT(session, service)
        return Account.clients[service]

    @classmethod
    def push(cls, image: str) -> None:
        repository, _, tag = image.partition("/")[2].partition(":")
        named = {"repositoryName": repository, "imageTag": tag, "imageManifest": MANIFEST}
        CALL(cls.client(Session(region_name="eu-central-1"), "ecr"), "PutImage", named)


def call(service: str, operation: str, **parameters: object) -> dict[str, Any]:
    return Account.answer(Account.client(Session(region_name="eu-central-1"), service), operation, parameters)


def runtimes() -> list[dict[str, Any]]:
    listed = call(CONTROL, "ListAgentRuntimes")["agentRuntimes"]
    return [call(CONTROL, "GetAgentRuntime", agentRuntimeId=each["agentRuntimeId"]) for each in listed]


def version_of(runtime: dict[str, Any], endpoint: str) -> str:
    found = call(CONTROL, "GetAgentRuntimeEndpoint", agentRuntimeId=runtime["agentRuntimeId"], endpointName=endpoint)
    return str(found["targetVersion"])
