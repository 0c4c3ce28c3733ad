"""Stacks of CloudFormation, as far as a deployment uses them. Resources are made by calls, so moto has them.

A call is checked against AWS's model. A change of a resource may be let fail, which rolls its stack back.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import botocore.session  # type: ignore[import-untyped]
from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from botocore.validate import validate_parameters  # type: ignore[import-untyped]

from agui_container.aws.deploy.stack import Response

CONTROL = "bedrock-agentcore-control"
MODEL = botocore.session.get_session().get_service_model("cloudformation")
PLACE = {"AWS::Partition": "aws", "AWS::Region": "eu-central-1", "AWS::AccountId": "123456789012"} | {
    "AWS::URLSuffix": "amazonaws.com"
}
ORDER = ("Bucket", "BuildRole", "Project", "Memory", "Role", "Runtime")
UNCHANGED = ("buildspec", "environmentVariables")
REMOVALS = {
    "AWS::S3::Bucket": ("s3", "DeleteBucket", "Bucket"),
    "AWS::CodeBuild::Project": ("codebuild", "DeleteProject", "name"),
    "AWS::BedrockAgentCore::Runtime": (CONTROL, "DeleteAgentRuntime", "agentRuntimeId"),
    "AWS::BedrockAgentCore::RuntimeEndpoint": (
        *(CONTROL, "DeleteAgentRuntimeEndpoint"),
        *("agentRuntimeId", "endpointName"),
    ),
}
RUNTIME = ("agentRuntimeId", "agentRuntimeArn", "agentRuntimeVersion")

Call = Callable[..., Response]


def refused(code: str, operation: str, message: str = "planted") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


class Stacks:
    """The stacks of an account, and those that were deleted, by their ids. A change of ``failing`` fails.

    While it ``is_stuck``, a change does not end.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._sets: dict[str, dict[str, Any]] = {}
        self.failing = ""
        self.is_stuck = False
        self.stacks: dict[str, dict[str, Any]] = {}
        self._deleted: dict[str, dict[str, Any]] = {}

    def answer(self, operation: str, parameters: Mapping[str, Any]) -> Response:
        validate_parameters(parameters, MODEL.operation_model(operation).input_shape)
        if "ChangeSetName" in parameters and operation != "CreateChangeSet":
            found = self._sets[parameters["ChangeSetName"]]
        elif operation == "CreateChangeSet":
            return self._create(parameters)
        else:
            named = {stack.get("StackId"): stack for stack in self.stacks.values()} | self.stacks | self._deleted
            if (name := parameters["StackName"]) not in named:
                raise refused("ValidationError", operation, f"Stack with id {name} does not exist")
            found = named[name]
        answers: dict[str, Callable[[dict[str, Any]], Response]] = {
            "DescribeChangeSet": lambda change_set: change_set,
            "DeleteChangeSet": lambda change_set: self._sets.pop(change_set["ChangeSetId"]),
            "ExecuteChangeSet": self._execute,
            "DescribeStacks": lambda stack: {"Stacks": [stack]},
            "GetTemplate": lambda stack: {"TemplateBody": json.loads(json.dumps(stack["Template"]))},
            "DescribeStackEvents": lambda stack: {"StackEvents": stack["Events"]},
            "DescribeStackResources": self._resources,
            "DeleteStack": self._delete,
        }
        return answers[operation](found)

    def _create(self, parameters: Mapping[str, Any]) -> Response:
        name, template = parameters["StackName"], json.loads(parameters["TemplateBody"])
        found = self.stacks.get(name)
        is_new = found is None or found["StackStatus"] == "REVIEW_IN_PROGRESS"
        assert is_new is (parameters["ChangeSetType"] == "CREATE")
        stack = found or {
            "StackId": f"arn:aws:cloudformation:eu-central-1:123456789012:stack/{name}/{parameters['ChangeSetName']}",
            "StackStatus": "REVIEW_IN_PROGRESS",
            "Template": {"Resources": {}},
            "Physical": {},
            "Tags": parameters["Tags"],
        }
        self.stacks[name] = stack
        before, after = stack["Template"]["Resources"], template["Resources"]
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        changes = [change(name, before.get(name), after.get(name)) for name in names]
        identity = f"arn:aws:cloudformation:eu-central-1:123456789012:changeSet/{parameters['ChangeSetName']}"
        same = not changes and stack.get("Tags") == parameters["Tags"]
        self._sets[identity] = {
            "ChangeSetId": identity,
            "StackName": name,
            "IsDeleted": parameters.get("OnStackFailure") == "DELETE",
            "Status": "FAILED" if same else "CREATE_COMPLETE",
            "StatusReason": "The submitted information didn't contain changes." if same else "",
            "Changes": [{"ResourceChange": each} for each in changes],
            "Template": template,
            "Tags": parameters["Tags"],
        }
        return {"Id": identity, "StackId": stack["StackId"]}

    def _execute(self, change_set: dict[str, Any]) -> Response:
        stack = self.stacks[change_set["StackName"]]
        kind = "CREATE" if stack["StackStatus"] == "REVIEW_IN_PROGRESS" else "UPDATE"
        if self.is_stuck:
            stack["StackStatus"] = f"{kind}_IN_PROGRESS"
            return {}
        begin = {"LogicalResourceId": "x", "ResourceStatus": "", "ResourceStatusReason": "User Initiated"}
        changed = [each["ResourceChange"]["LogicalResourceId"] for each in change_set["Changes"]]
        if self.failing in changed:
            failed = {"ResourceStatus": f"{kind}_FAILED", "ResourceStatusReason": "planted"}
            stack["Events"] = [{"LogicalResourceId": self.failing, **failed}, begin]
            stack["StackStatus"] = "UPDATE_ROLLBACK_COMPLETE"
            return self._delete(stack) if change_set["IsDeleted"] else {}
        before, after = stack["Template"]["Resources"], change_set["Template"]["Resources"]
        stack |= {"Tags": change_set["Tags"], "Template": change_set["Template"], "Events": [begin]}
        for name in sorted(before.keys() - after.keys(), key=rank, reverse=True):
            self._remove(before[name]["Type"], stack["Physical"].pop(name))
        for name in sorted(after, key=rank):
            properties = self._resolved(after[name]["Properties"], stack)
            if after[name] != before.get(name) or "Version" in str(after[name]):
                stack["Physical"][name] = self._make(after[name]["Type"], properties, stack["Physical"].get(name))
        stack["StackStatus"] = f"{kind}_COMPLETE"
        return {}

    def _make(self, kind: str, properties: dict[str, Any], made: dict[str, str] | None) -> dict[str, str]:
        call, named = self._call, call_parameters(properties)
        match kind:
            case "AWS::S3::Bucket" if not made:
                there = {"LocationConstraint": PLACE["AWS::Region"]}
                call("s3", "CreateBucket", Bucket="agui-b", CreateBucketConfiguration=there)
                return {"Bucket": "agui-b"}
            case "AWS::IAM::Role":
                return {"RoleName": "r", "Arn": "arn:aws:iam::123456789012:role/r"}
            case "AWS::CodeBuild::Project" if not made:
                named["source"]["location"] = "x"  # moto wants one, also where there is none
                call("codebuild", "CreateProject", **named)
                return {"name": named["name"]}
            case "AWS::BedrockAgentCore::Runtime":
                named["protocolConfiguration"] = {"serverProtocol": named["protocolConfiguration"]}
                identity = {"agentRuntimeId": made["agentRuntimeId"]} if made else {}
                name = named.pop("agentRuntimeName")
                operation = "UpdateAgentRuntime" if made else "CreateAgentRuntime"
                found = call(CONTROL, operation, **named, **(identity or {"agentRuntimeName": name}))
                return {key: found[key] for key in RUNTIME}
            case "AWS::BedrockAgentCore::RuntimeEndpoint":
                name = named.pop("name")
                operation = "UpdateAgentRuntimeEndpoint" if made else "CreateAgentRuntimeEndpoint"
                call(CONTROL, operation, **named, **({"endpointName": name} if made else {"name": name}))
                return {"endpointName": name, "agentRuntimeId": named["agentRuntimeId"]}
        return made or ({"MemoryId": f"{named['name']}-a1B2c3D4e5"} if kind.endswith("::Memory") else {})

    def _remove(self, kind: str, made: dict[str, str]) -> None:
        if kind in REMOVALS:
            service, operation, *names = REMOVALS[kind]
            self._call(service, operation, **{name: made[name] for name in names})

    def _delete(self, stack: dict[str, Any]) -> Response:
        resources = stack["Template"]["Resources"]
        for name in sorted(stack["Physical"], key=rank, reverse=True):
            self._remove(resources[name]["Type"], stack["Physical"][name])
        self.stacks = {name: each for name, each in self.stacks.items() if each is not stack}
        self._deleted[stack["StackId"]] = {**stack, "StackStatus": "DELETE_COMPLETE"}
        return {}

    def _resources(self, stack: dict[str, Any]) -> Response:
        resources = stack["Template"]["Resources"]
        listed = [
            {"LogicalResourceId": name, "PhysicalResourceId": next(iter(made.values())), "ResourceStatus": ""}
            | {"ResourceType": resources[name]["Type"]}
            for name, made in stack["Physical"].items()
        ]
        return {"StackResources": listed}

    def _resolved(self, value: Any, stack: dict[str, Any]) -> Any:  # noqa: ANN401 - any part of a template
        physical = stack["Physical"]
        known = PLACE | {name: next(iter(made.values())) for name, made in physical.items()}
        known |= {f"{name}.{key}": each for name, made in physical.items() for key, each in made.items()}
        match value:
            case {"Fn::Sub": text}:
                return re.sub(r"\$\{([\w:.]+)\}", lambda found: known[found[1]], text)
            case {"Fn::GetAtt": [name, attribute]}:
                made = physical[name]
                return made.get(attribute) or made[f"{attribute[0].lower()}{attribute[1:]}"]
            case dict():
                return {name: self._resolved(each, stack) for name, each in value.items()}
            case list():
                return [self._resolved(each, stack) for each in value]
        return value


def change(logical_id: str, before: Any, after: Any) -> dict[str, Any]:  # noqa: ANN401 - resources
    action = "Add" if before is None else "Remove" if after is None else "Modify"
    paths = differing(before["Properties"], after["Properties"]) if action == "Modify" else []
    details = [{"Target": {"Attribute": "Properties", "Path": path}} for path in paths]
    return {
        "Action": action,
        "LogicalResourceId": logical_id,
        "ResourceType": (after or before)["Type"],
        "Details": details,
    }


def rank(logical_id: str) -> int:
    return ORDER.index(logical_id) if logical_id in ORDER else len(ORDER)


def call_parameters(properties: Any) -> Any:  # noqa: ANN401 - any part of a template
    """Parameters of a call for properties of CloudFormation, whose names begin with a small letter."""
    if isinstance(properties, dict):
        named = {f"{name[0].lower()}{name[1:]}".replace("buildS", "builds"): each for name, each in properties.items()}
        return {name: each if name in UNCHANGED else call_parameters(each) for name, each in named.items()}
    return [call_parameters(each) for each in properties] if isinstance(properties, list) else properties


def differing(before: Any, after: Any, path: str = "/Properties") -> list[str]:  # noqa: ANN401 - properties
    if before == after:
        return []
    if isinstance(before, dict) and isinstance(after, dict) and not before.keys() & {"Fn::Sub", "Fn::GetAtt"}:
        names = sorted(before.keys() | after.keys())
        return [each for name in names for each in differing(before.get(name), after.get(name), f"{path}/{name}")]
    return [path]
