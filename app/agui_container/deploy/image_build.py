"""Steps that build the image and push it: with Docker's buildx here, or with CodeBuild.

Rule: the tag of the image is the digest of its source. An image that the repository has is not built again.
"""

import json
import subprocess
from collections.abc import Iterator
from functools import cache

from agui_container.deploy.deployment import Deployment
from agui_container.deploy.existing import Existing
from agui_container.deploy.policies import build_policy, build_trust
from agui_container.deploy.roles import role_steps
from agui_container.deploy.source import SourceFolder
from agui_container.deploy.steps import CallStep, CommandStep, Step, WaitStep

PLATFORM = "linux/arm64"
"""AgentCore runs no other one."""

SOURCE_KEY = "source/image.zip"
BUILD_IMAGE = "aws/codebuild/amazonlinux-aarch64-standard:3.0"
BUILD_FAILED = ("FAILED", "FAULT", "STOPPED", "TIMED_OUT")
BUILDSPEC = {
    "version": 0.2,
    "phases": {
        "build": {
            "commands": [
                'aws ecr get-login-password | docker login --username AWS --password-stdin "${IMAGE%%/*}"',
                'docker build --tag "$IMAGE" .',
                'docker push "$IMAGE"',
            ]
        }
    },
}


@cache
def find_builder() -> str:
    """Return ``docker`` if this machine has Docker with buildx and its engine, and ``codebuild`` otherwise."""
    try:
        for arguments in (("buildx", "version"), ("info",)):
            subprocess.run(("docker", *arguments), check=True, capture_output=True)  # noqa: S603, S607 - from the PATH
    except (OSError, subprocess.CalledProcessError):
        return "codebuild"
    return "docker"


def plan_image(wanted: Deployment, existing: Existing, source: SourceFolder, builder: str) -> Iterator[Step]:
    """Yield the steps of the repository and the image."""
    if wanted.options.image:
        return
    if not existing.repository:
        yield make_repository(wanted)
    if existing.image:
        return
    yield from (docker_steps(wanted, source) if builder == "docker" else codebuild_steps(wanted, existing, source))


def make_repository(wanted: Deployment) -> CallStep:
    """Return the call that makes the repository. A tag is never moved, so a version keeps its image."""
    parameters = {
        "repositoryName": wanted.repository,
        "imageTagMutability": "IMMUTABLE",
        "imageScanningConfiguration": {"scanOnPush": True},
        "tags": tag_list(wanted),
    }
    purpose = f"make repository {wanted.repository}"
    return CallStep(purpose=purpose, service="ecr", operation="CreateRepository", parameters=parameters)


def docker_steps(wanted: Deployment, source: SourceFolder) -> Iterator[Step]:
    """Yield the steps of a build here."""
    yield CallStep(
        purpose="get a token of the registry",
        service="ecr",
        operation="GetAuthorizationToken",
        parameters={},
        outputs={"authorizationToken": "authorizationData[0].authorizationToken"},
    )
    login = ("docker", "login", "--username", "AWS", "--password-stdin", wanted.place.registry)
    yield CommandStep(purpose="log in to the registry", arguments=login, token="${authorizationToken}")  # noqa: S106
    build = ("docker", "buildx", "build", "--platform", PLATFORM, "--provenance=false", "--tag", wanted.image)
    yield CommandStep(
        purpose=f"build and push {wanted.image}",
        arguments=(*build, "--push", "-"),
        body=source,
    )


def codebuild_steps(wanted: Deployment, existing: Existing, source: SourceFolder) -> Iterator[Step]:
    """Yield the steps of a build in AWS: a bucket with the source, a role, a project, and the build."""
    place = wanted.place
    if not existing.bucket:
        yield make_bucket(wanted)
    blocked = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    closed = {"Bucket": wanted.bucket, "PublicAccessBlockConfiguration": dict.fromkeys(blocked, True)}
    purpose = f"close bucket {wanted.bucket} to the public"
    yield CallStep(purpose=purpose, service="s3", operation="PutPublicAccessBlock", parameters=closed)
    policies = {"build": build_policy(place, wanted.repository_arn, wanted.project, wanted.bucket)}
    trust = build_trust(place, wanted.project)
    yield from role_steps(wanted.build_role, existing.build_role, trust, policies, wanted.tags)
    yield set_project(wanted, existing)
    stored = {"Bucket": wanted.bucket, "Key": SOURCE_KEY}
    yield CallStep(purpose="upload the source", service="s3", operation="PutObject", parameters=stored, body=source)
    yield from run_build(wanted)


def make_bucket(wanted: Deployment) -> CallStep:
    """Return the call that makes the bucket. ``us-east-1`` is no location for S3, because it is the default."""
    region = wanted.place.region
    located = {"LocationConstraint": region} if region != "us-east-1" else {}
    configuration = {**located, "Tags": tag_list(wanted)}
    parameters = {"Bucket": wanted.bucket, "CreateBucketConfiguration": configuration}
    return CallStep(
        purpose=f"make bucket {wanted.bucket}", service="s3", operation="CreateBucket", parameters=parameters
    )


def set_project(wanted: Deployment, existing: Existing) -> CallStep:
    """Return the call that makes or changes the project."""
    parameters = {
        "name": wanted.project,
        "source": {"type": "S3", "location": f"{wanted.bucket}/{SOURCE_KEY}", "buildspec": json.dumps(BUILDSPEC)},
        "artifacts": {"type": "NO_ARTIFACTS"},
        "environment": {
            "type": "ARM_CONTAINER",
            "image": BUILD_IMAGE,
            "computeType": "BUILD_GENERAL1_SMALL",
            "privilegedMode": True,
        },
        "serviceRole": wanted.place.role(wanted.build_role),
        "timeoutInMinutes": 30,
        "tags": [{"key": key, "value": value} for key, value in wanted.tags.items()],
    }
    operation = "UpdateProject" if existing.project else "CreateProject"
    purpose = f"{'change' if existing.project else 'make'} project {wanted.project}"
    return CallStep(purpose=purpose, service="codebuild", operation=operation, parameters=parameters)


def run_build(wanted: Deployment) -> Iterator[Step]:
    """Yield the start of the build, and the wait for its end."""
    variable = {"name": "IMAGE", "value": wanted.image, "type": "PLAINTEXT"}
    yield CallStep(
        purpose=f"build and push {wanted.image}",
        service="codebuild",
        operation="StartBuild",
        parameters={"projectName": wanted.project, "environmentVariablesOverride": [variable]},
        outputs={"buildId": "build.id"},
    )
    call = CallStep(
        purpose="wait until the build has ended",
        service="codebuild",
        operation="BatchGetBuilds",
        parameters={"ids": ["${buildId}"]},
    )
    reason = "join(' ', builds[0].phases[].contexts[].message) || builds[0].logs.deepLink"
    yield WaitStep(call=call, value="builds[0].buildStatus", done="SUCCEEDED", failed=BUILD_FAILED, reason=reason)


def tag_list(wanted: Deployment) -> list[dict[str, str]]:
    """Return the tags as ECR and S3 take them."""
    return [{"Key": key, "Value": value} for key, value in wanted.tags.items()]
