"""Reader of the parts of a deployment that AWS has.

Rule: nothing that somebody else made is taken over. A resource of ours has ``OWNER_TAG``.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct, structs

from agui_container.deploy.aws import Aws, Response
from agui_container.deploy.deployment import OWNER_TAG, Deployment
from agui_container.deploy.policies import Policy

CONTROL = "bedrock-agentcore-control"
DEFAULT_ENDPOINT = "DEFAULT"
SETTLING = ("CREATING", "UPDATING", "DELETING")
POLL_SECONDS = 5.0


class DeployRefused(Exception):
    """The existing parts do not allow the request. The message is the line to show."""


class Role(Struct, frozen=True):
    """A role: who may assume it, and its policies by name."""

    trust: Policy
    policies: dict[str, Policy]


class Existing(Struct, frozen=True, kw_only=True):
    """Resources of a deployment that exist.

    Attributes:
        repository: True if there is the repository.
        image: True if it has the image.
        role: the execution role.
        runtime: response of ``GetAgentRuntime``.
        endpoints: endpoints of the runtime, except the one that AgentCore makes.
        bucket: True if there is the bucket of the source.
        build_role: the role of builds.
        project: True if there is the project that builds.
    """

    repository: bool = False
    image: bool = False
    role: Role | None = None
    runtime: Response | None = None
    endpoints: tuple[Response, ...] = ()
    bucket: bool = False
    build_role: Role | None = None
    project: bool = False

    def endpoint(self, name: str) -> Response | None:
        """Return an endpoint, or None if there is none of that name."""
        return next((each for each in self.endpoints if each["name"] == name), None)

    def version(self, endpoint: str) -> str | None:
        """Return the version that an endpoint has, or None if there is no such endpoint."""
        found = self.endpoint(endpoint)
        if found:
            return str(found.get("liveVersion") or found["targetVersion"])
        return str(self.runtime["agentRuntimeVersion"]) if self.runtime and endpoint == DEFAULT_ENDPOINT else None


EVERYTHING = Existing(
    repository=True,
    image=True,
    role=Role({}, {"runtime": {}}),
    runtime={"agentRuntimeId": "RUNTIME_ID"},
    bucket=True,
    build_role=Role({}, {"build": {}}),
    project=True,
)
"""The parts of a complete deployment, where nobody asks AWS."""


class ExistingReader:
    """Reads what AWS has of a deployment.

    Args:
        aws: calls of AWS.
        deployment: whose names are looked for.
        pause: waits for some seconds.
    """

    def __init__(self, aws: Aws, deployment: Deployment, pause: Callable[[float], None] = time.sleep) -> None:
        self._aws = aws
        self._wanted = deployment
        self._pause = pause

    def read(self) -> Existing:
        """Read everything except what builds in AWS need. Waits until a change in progress has ended.

        Raises:
            AwsError: AWS refused a call, or cannot be reached.
            DeployRefused: somebody else made a resource.
        """
        wanted = self._wanted
        repository = bool(not wanted.options.image and self._has_repository())
        runtime = self.runtime()
        return Existing(
            repository=repository,
            image=repository and self._has_image(),
            role=None if wanted.options.role else self._role(wanted.role_name),
            runtime=runtime,
            endpoints=tuple(self.endpoints(runtime["agentRuntimeId"])) if runtime else (),
        )

    def add_build(self, existing: Existing) -> Existing:
        """Read what builds in AWS need, too. Users of Docker or of an image of their own have no rights for that."""
        return structs.replace(
            existing,
            bucket=self._has_bucket(),
            build_role=self._role(self._wanted.build_role),
            project=self._has_project(),
        )

    def runtime(self) -> Response | None:
        """Return the runtime, once a change in progress has ended, or None if there is none."""
        for listed in self._pages("ListAgentRuntimes", {}, "agentRuntimes"):
            if listed["agentRuntimeName"] == self._wanted.name:
                tags = self._aws.call(CONTROL, "ListTagsForResource", {"resourceArn": listed["agentRuntimeArn"]})
                self._check_owner(f"runtime {self._wanted.name}", tags["tags"])
                return self._settled("GetAgentRuntime", {"agentRuntimeId": listed["agentRuntimeId"]})
        return None

    def endpoints(self, runtime_id: str) -> Iterator[Response]:
        """Yield the endpoints of a runtime, except the one that AgentCore makes."""
        for listed in self._pages("ListAgentRuntimeEndpoints", {"agentRuntimeId": runtime_id}, "runtimeEndpoints"):
            if listed["name"] != DEFAULT_ENDPOINT:
                named = {"agentRuntimeId": runtime_id, "endpointName": listed["name"]}
                if found := self._settled("GetAgentRuntimeEndpoint", named):
                    yield found

    def _pages(self, operation: str, parameters: Mapping[str, object], name: str) -> Iterator[Response]:
        page: dict[str, object] = {}
        while True:
            listed = self._aws.call(CONTROL, operation, {**parameters, **page})
            yield from listed[name]
            if not listed.get("nextToken"):
                return
            page = {"nextToken": listed["nextToken"]}

    def _settled(self, operation: str, parameters: Mapping[str, object]) -> Response | None:
        while found := self._aws.find(CONTROL, operation, parameters):
            if found["status"] not in SETTLING:
                return found
            self._pause(POLL_SECONDS)
        return None

    def _has_repository(self) -> bool:
        found = self._aws.find("ecr", "DescribeRepositories", {"repositoryNames": [self._wanted.repository]})
        if found is None:
            return False
        arn = found["repositories"][0]["repositoryArn"]
        tags = self._aws.call("ecr", "ListTagsForResource", {"resourceArn": arn})["tags"]
        self._check_owner(f"repository {self._wanted.repository}", as_mapping(tags))
        return True

    def _has_image(self) -> bool:
        image = {"repositoryName": self._wanted.repository, "imageIds": [{"imageTag": self._wanted.image_tag}]}
        return self._aws.find("ecr", "DescribeImages", image) is not None

    def _role(self, name: str) -> Role | None:
        found = self._aws.find("iam", "GetRole", {"RoleName": name})
        if found is None:
            return None
        role = found["Role"]
        self._check_owner(f"role {name}", as_mapping(role.get("Tags", [])))
        names = self._aws.call("iam", "ListRolePolicies", {"RoleName": name})["PolicyNames"]
        policies = {
            each: self._aws.call("iam", "GetRolePolicy", {"RoleName": name, "PolicyName": each})["PolicyDocument"]
            for each in names
        }
        return Role(role["AssumeRolePolicyDocument"], policies)

    def _has_bucket(self) -> bool:
        bucket = {"Bucket": self._wanted.bucket, "ExpectedBucketOwner": self._wanted.place.account}
        if self._aws.find("s3", "HeadBucket", bucket) is None:
            return False
        tagging = self._aws.find("s3", "GetBucketTagging", bucket) or {"TagSet": []}
        self._check_owner(f"bucket {self._wanted.bucket}", as_mapping(tagging["TagSet"]))
        return True

    def _has_project(self) -> bool:
        name = self._wanted.project
        projects = self._aws.call("codebuild", "BatchGetProjects", {"names": [name]})["projects"]
        for project in projects:
            self._check_owner(f"project {name}", {each["key"]: each["value"] for each in project.get("tags") or ()})
        return bool(projects)

    def _check_owner(self, resource: str, tags: Mapping[str, str]) -> None:
        if tags.get(OWNER_TAG) != self._wanted.name:
            raise DeployRefused(
                f"{resource} exists, and this deployment did not make it, because it has no tag "
                f"{OWNER_TAG}={self._wanted.name}. Choose another name with --name, or set that tag."
            )


def as_mapping(tags: list[dict[str, Any]]) -> dict[str, str]:
    """Return tags as one mapping."""
    return {each["Key"]: each["Value"] for each in tags}
