"""The image of a deployment: its repository, and builds with Docker's buildx here or with CodeBuild.

Rule: the tag of the image is the digest of its source. An image that the repository has is not built again.
"""

import base64
import shlex
import subprocess
from functools import cache

import jmespath  # type: ignore[import-untyped]
from boto3.session import Session  # type: ignore[import-untyped]
from botocore.exceptions import WaiterError  # type: ignore[import-untyped]
from botocore.waiter import WaiterModel, create_waiter_with_client  # type: ignore[import-untyped]

from agui_container.aws.deploy.deployment import SOURCE_KEY, Deployment
from agui_container.aws.deploy.source import SourceFolder
from agui_container.aws.deploy.stack import WAIT, DeployRefused, Report, Response, Stack, check_owner

PLATFORM = "linux/arm64"
"""AgentCore runs no other one."""

STANDARD_ERROR = 2
END = {"matcher": "path", "argument": "builds[0].buildStatus != 'IN_PROGRESS'", "expected": True, "state": "success"}
END_OF_BUILD = {
    "operation": "BatchGetBuilds",
    "delay": WAIT["Delay"],
    "maxAttempts": WAIT["MaxAttempts"],
    "acceptors": [END],
}
"""A waiter, because botocore has none for builds."""


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

    def __init__(self, session: Session, wanted: Deployment, stack: Stack, report: Report) -> None:
        self._session = session
        self._ecr = session.client("ecr")
        self._wanted = wanted
        self._stack = stack
        self._report = report

    def find_repository(self) -> Response | None:
        """Return the repository, or None if there is none. Raises ``DeployRefused`` if somebody else made it."""
        name = self._wanted.slug
        try:
            [found] = self._ecr.describe_repositories(repositoryNames=[name])["repositories"]
        except self._ecr.exceptions.RepositoryNotFoundException:
            return None
        tags = self._ecr.list_tags_for_resource(resourceArn=found["repositoryArn"])["tags"]
        check_owner(f"repository {name}", tags, self._wanted.name)
        return dict(found)

    def exists(self) -> bool:
        errors = self._ecr.exceptions
        try:
            self._ecr.describe_images(repositoryName=self._wanted.slug, imageIds=[{"imageTag": self._wanted.image_tag}])
        except (errors.RepositoryNotFoundException, errors.ImageNotFoundException):
            return False
        return True

    def plan(self) -> list[str]:
        missing = [] if self.find_repository() else [f"+ make repository {self._wanted.slug}"]
        is_built = not missing and self.exists()
        return missing if is_built else [*missing, f"+ build and push {self._wanted.slug}:{self._wanted.image_tag}"]

    def make(self, source: SourceFolder, builder: str) -> str:
        """Make the repository and the image, where they are missing. Return its URI. Raises ``DeployRefused``."""
        repository = self.find_repository()
        if repository is None:
            self._report(f"make repository {self._wanted.slug}")
            repository = self._ecr.create_repository(**self._wanted.repository_request)["repository"]
        uri = f"{repository['repositoryUri']}:{self._wanted.image_tag}"
        if not self.exists():
            (self._build_here if builder == "docker" else self._build_in_aws)(source, uri)
        return uri

    def delete_repository(self) -> None:
        self._report(f"delete repository {self._wanted.slug}")
        self._ecr.delete_repository(repositoryName=self._wanted.slug, force=True)

    def _build_here(self, source: SourceFolder, uri: str) -> None:
        [data] = self._ecr.get_authorization_token()["authorizationData"]
        password = base64.b64decode(data["authorizationToken"]).partition(b":")[2]
        self._docker(password, "login", "--username", "AWS", "--password-stdin", uri.partition("/")[0])
        self._report(f"build and push {uri}")
        options = ("--platform", PLATFORM, "--provenance=false", "--tag", uri, "--push", "-")
        self._docker(source.tarred(), "buildx", "build", *options)

    def _docker(self, given: bytes, *arguments: str) -> None:
        """Run Docker, which prints on standard error. Raises ``DeployRefused``."""
        command = ("docker", *arguments)
        try:
            subprocess.run(command, input=given, stdout=STANDARD_ERROR, check=True)  # noqa: S603 - see find_builder
        except OSError as error:
            raise DeployRefused(f"cannot run docker: {error}") from None
        except subprocess.CalledProcessError as error:
            raise DeployRefused(f"the command `{shlex.join(command)}` ended with status {error.returncode}.") from None

    def _build_in_aws(self, source: SourceFolder, uri: str) -> None:
        bucket = self._bucket()
        self._report(f"build and push {uri}")
        self._session.client("s3").put_object(Bucket=bucket, Key=SOURCE_KEY, Body=source.tarred())
        variables = {"IMAGE": uri, "SOURCE": f"s3://{bucket}/{SOURCE_KEY}"}
        overrides = [{"name": name, "value": value, "type": "PLAINTEXT"} for name, value in variables.items()]
        builds = self._session.client("codebuild")
        started = builds.start_build(projectName=self._wanted.project, environmentVariablesOverride=overrides)
        named = {"ids": [started["build"]["id"]]}
        try:
            model = WaiterModel({"version": 2, "waiters": {"Build": END_OF_BUILD}})
            create_waiter_with_client("Build", model, builds).wait(**named)
        except WaiterError:
            raise DeployRefused(f"cannot build {uri}: the build is not finished after half an hour.") from None
        [build] = builds.batch_get_builds(**named)["builds"]
        if build["buildStatus"] != "SUCCEEDED":
            messages = " ".join(jmespath.search("phases[].contexts[].message", build) or ())
            reason = messages or build.get("logs", {}).get("deepLink", "AWS gives no reason")
            raise DeployRefused(f"cannot build {uri}: {build['buildStatus']}: {reason}")

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
