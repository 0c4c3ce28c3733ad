"""The image of a deployment: its repository, and builds with Docker's buildx here or with CodeBuild.

Rule: the tag of the image is the digest of its source. An image that the repository has is not built again.
"""

import base64
import shlex
import subprocess
from functools import cache

import jmespath  # type: ignore[import-untyped]

from agui_container.aws.deploy.aws import Aws
from agui_container.aws.deploy.deployment import SOURCE_KEY, Deployment
from agui_container.aws.deploy.source import SourceFolder
from agui_container.aws.deploy.stack import DeployRefused, Stack, Waiter, check_owner

PLATFORM = "linux/arm64"
"""AgentCore runs no other one."""

STANDARD_ERROR = 2


@cache
def find_builder() -> str:
    """Return ``docker`` if this machine has Docker with buildx and its engine, and ``codebuild`` otherwise."""
    try:
        for arguments in (("buildx", "version"), ("info",)):
            subprocess.run(("docker", *arguments), check=True, capture_output=True)  # noqa: S603, S607 - from the PATH
    except (OSError, subprocess.CalledProcessError):
        return "codebuild"
    return "docker"


class ImageBuild:
    """The image of a deployment, and its repository. The stack has the project of CodeBuild."""

    def __init__(self, aws: Aws, wanted: Deployment, stack: Stack, waiter: Waiter) -> None:
        self._aws = aws
        self._wanted = wanted
        self._stack = stack
        self._waiter = waiter

    def has_repository(self) -> bool:
        """Return True if there is the repository. Raises ``DeployRefused`` if somebody else made it."""
        name = self._wanted.repository
        found = self._aws.find("ecr", "DescribeRepositories", {"repositoryNames": [name]})
        if found:
            named = {"resourceArn": found["repositories"][0]["repositoryArn"]}
            tags = self._aws.call("ecr", "ListTagsForResource", named)["tags"]
            check_owner(f"repository {name}", tags, self._wanted.name)
        return found is not None

    def exists(self) -> bool:
        wanted = self._wanted
        image = {"repositoryName": wanted.repository, "imageIds": [{"imageTag": wanted.image_tag}]}
        return self._aws.find("ecr", "DescribeImages", image) is not None

    def repository_request(self) -> dict[str, object]:
        """Return the parameters that make the repository. A tag is never moved, so a version keeps its image."""
        return {
            "repositoryName": self._wanted.repository,
            "imageTagMutability": "IMMUTABLE",
            "imageScanningConfiguration": {"scanOnPush": True},
            "tags": self._wanted.tags,
        }

    def plan(self) -> list[str]:
        missing = [] if self.has_repository() else [f"+ make repository {self._wanted.repository}"]
        return missing if not missing and self.exists() else [*missing, f"+ build and push {self._wanted.image}"]

    def make(self, source: SourceFolder, builder: str) -> None:
        """Make the repository and the image, where they are missing. Raises ``DeployRefused``."""
        if not self.has_repository():
            self._waiter.report(f"make repository {self._wanted.repository}")
            self._aws.call("ecr", "CreateRepository", self.repository_request())
        if not self.exists():
            (self._build_here if builder == "docker" else self._build_in_aws)(source)

    def delete_repository(self) -> None:
        self._waiter.report(f"delete repository {self._wanted.repository}")
        self._aws.call("ecr", "DeleteRepository", {"repositoryName": self._wanted.repository, "force": True})

    def _build_here(self, source: SourceFolder) -> None:
        wanted = self._wanted
        data = self._aws.call("ecr", "GetAuthorizationToken", {})["authorizationData"]
        password = base64.b64decode(data[0]["authorizationToken"]).partition(b":")[2]
        self._docker(password, "login", "--username", "AWS", "--password-stdin", wanted.place.registry)
        self._waiter.report(f"build and push {wanted.image}")
        options = ("--platform", PLATFORM, "--provenance=false", "--tag", wanted.image, "--push", "-")
        self._docker(source.tarred(), "buildx", "build", *options)

    def _docker(self, given: bytes, *arguments: str) -> None:
        """Run Docker, which prints on standard error. Raises ``DeployRefused``."""
        command = ("docker", *arguments)
        try:
            done = subprocess.run(command, input=given, stdout=STANDARD_ERROR, check=False)  # noqa: S603 - see find_builder
        except OSError as error:
            raise DeployRefused(f"cannot run docker: {error}") from None
        if done.returncode:
            raise DeployRefused(f"the command `{shlex.join(command)}` ended with status {done.returncode}.")

    def _build_in_aws(self, source: SourceFolder) -> None:
        wanted, call = self._wanted, self._aws.call
        bucket = self._bucket()
        self._waiter.report(f"build and push {wanted.image}")
        call("s3", "PutObject", {"Bucket": bucket, "Key": SOURCE_KEY, "Body": source.tarred()})
        variables = {"IMAGE": wanted.image, "SOURCE": f"s3://{bucket}/{SOURCE_KEY}"}
        overrides = [{"name": name, "value": value, "type": "PLAINTEXT"} for name, value in variables.items()]
        started = {"projectName": wanted.project, "environmentVariablesOverride": overrides}
        named = {"ids": [call("codebuild", "StartBuild", started)["build"]["id"]]}

        def read() -> str:
            return str(call("codebuild", "BatchGetBuilds", named)["builds"][0]["buildStatus"])

        if (status := self._waiter.settle("the build", read)) != "SUCCEEDED":
            build = call("codebuild", "BatchGetBuilds", named)["builds"][0]
            messages = " ".join(jmespath.search("phases[].contexts[].message", build) or ())
            reason = messages or build.get("logs", {}).get("deepLink", "AWS gives no reason")
            raise DeployRefused(f"cannot build {wanted.image}: {status}: {reason}")

    def _bucket(self) -> str:
        """Return the bucket of the stack. A stack without a project gets one first, and keeps all that it has."""
        deployed, build = self._stack.template(), self._wanted.build_template()
        if deployed is None:
            self._stack.apply(build)
        elif "Project" not in deployed["Resources"]:
            self._stack.apply({**deployed, "Resources": deployed["Resources"] | build["Resources"]})
        for each in self._stack.resources():
            if each["LogicalResourceId"] == "Bucket":
                return str(each["PhysicalResourceId"])
        raise DeployRefused(f"stack {self._wanted.slug} has no bucket for the source.")
