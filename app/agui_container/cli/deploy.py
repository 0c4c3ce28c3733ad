"""``agui deploy``: make, change, roll back and delete a deployment on Amazon Bedrock AgentCore Runtime.

Rule: this module reads options and shows progress. The room ``deploy`` has the parts.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from agui_container.aws.deploy.aws import Aws, Response
from agui_container.aws.deploy.deployment import (
    DEFAULT_ENDPOINT,
    IMAGE_PARAMETER,
    SOURCE_KEY,
    Deployment,
    Template,
    add_endpoint,
)
from agui_container.aws.deploy.environment import make_environment, with_memory
from agui_container.aws.deploy.image import ImageBuild, find_builder
from agui_container.aws.deploy.options import DeployOptions, read_options
from agui_container.aws.deploy.policies import AwsPlace
from agui_container.aws.deploy.requirements import RequirementError
from agui_container.aws.deploy.source import EMITTED, TEMPLATE, SourceFolder
from agui_container.aws.deploy.stack import DeployRefused, Stack, Waiter
from agui_container.aws.deploy.start_check import check_start
from agui_container.aws.deploy.usage import RunFailed, endpoint_arn, how_to_call, run_once
from agui_container.aws.deploy.versions import find_runtime, keep_endpoints, live_versions, rollback_template
from agui_container.aws.deploy.wheels import WheelError
from agui_container.cli.config import is_secret, masked_value
from agui_container.cli.failure import CommandFailed
from agui_container.cli.options import agent_argument, config_option, token_option
from agui_container.settings import Settings, SettingsError, check_auth
from agui_container.settings_sources import load_with_origins

MASKED = re.compile(r"\*\*\*")
"""In a value that was masked: a secret, or a password of a URL."""

NOBODY = "123456789012"
"""Account of AWS's examples, where nobody asks for the real one."""

name_option = click.option("--name", help="Name of the runtime. Default: the name of the folder.")
region_option = click.option("--region", help="Region of AWS. Default: that of the environment or the profile.")
endpoint_option = click.option(
    "--endpoint", default=DEFAULT_ENDPOINT, show_default=True, help="Endpoint of the runtime, such as prod."
)


@click.command()
@agent_argument
@name_option
@region_option
@endpoint_option
@click.option("--image", help="URI of an image in ECR, in place of one that is built.")
@click.option("--builder", type=click.Choice(["auto", "docker", "codebuild"]), help="What builds the image.")
@click.option("--plan", "only_plan", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--dry-run", is_flag=True, help="Print each call that makes a first deployment as JSON.")
@click.option("--push", is_flag=True, help="Build and push the image, print its URI, and stop.")
@click.option("--rollback", is_flag=False, flag_value="previous", metavar="[VERSION]", help="Go back to a version.")
@click.option("--destroy", is_flag=True, help="Delete all that was made for this deployment.")
@click.option("--emit", is_flag=True, help="Write a template of CloudFormation in place of a deployment.")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Folder of that template.")
@click.option("--prompt", default="hello", show_default=True, help="Message of the run that tests the deployment.")
@click.option("--no-test", is_flag=True, help="Do not run the agent afterwards.")
@click.option("--yes", is_flag=True, help="Do not ask before --destroy.")
@token_option
@config_option
def deploy(
    agent: str | None,
    name: str | None,
    region: str | None,
    endpoint: str,
    image: str | None,
    builder: str | None,
    output: Path | None,
    rollback: str | None,
    prompt: str,
    token: str | None,
    config: Path | None,
    *,
    only_plan: bool,
    dry_run: bool,
    emit: bool,
    push: bool,
    destroy: bool,
    no_test: bool,
    yes: bool,
) -> int:
    """Deploy the agent of this folder, or MODULE:ATTRIBUTE, to Amazon Bedrock AgentCore Runtime.

    A second run changes only what differs. Facts of a deployment that are no settings are in the table [deploy] of
    agui.toml.
    """
    overrides = {"name": name, "region": region, "image": image, "builder": builder}
    with explained():
        if (dry_run or emit) and (push or destroy or rollback):
            raise DeployRefused("--dry-run and --emit are for a first deployment. Use --plan for anything else.")
        if destroy or rollback:
            work = Work.named(config, overrides, endpoint)
        else:
            work = Work.load(agent, config, overrides, endpoint, is_offline=dry_run or emit)
        if emit:
            return work.emit(output or Path(EMITTED))
        if dry_run:
            return work.print_calls()
        if destroy:
            return work.destroy(only_plan=only_plan, is_asked=not yes)
        if only_plan:
            return work.plan(rollback, is_pushed=push)
        if push:
            work.make_image()
            click.echo(work.wanted.image)
            return 0
        work.deploy(rollback)
        work.finish(prompt, token, is_tested=not no_test)
    return 0


class Work:
    """The deployment that one call of the command works on."""

    def __init__(self, wanted: Deployment, endpoint: str, aws: Aws) -> None:
        self.wanted = wanted
        self.endpoint = endpoint
        self.aws = aws
        waiter = Waiter(partial(click.echo, err=True))
        self._stack = Stack(aws, wanted, waiter)
        self._image = ImageBuild(aws, wanted, self._stack, waiter)

    @classmethod
    def load(
        cls, agent: str | None, config: Path | None, overrides: Mapping[str, object], endpoint: str, *, is_offline: bool
    ) -> "Work":
        """Read the settings and the options. Settings are refused that a start of the server would refuse."""
        settings, origins = load_with_origins(config)
        if agent:
            settings, origins = settings.model_copy(update={"agent": agent}), {**origins, "agent": "argument"}
        options = read_options(config, overrides)
        check_auth(settings)
        _check_no_secret(settings, origins, options)
        source = None if options.image else SourceFolder(Path.cwd(), options.dockerfile)
        check_start(settings, source)
        settings, origins = with_memory(settings, origins, options)
        environment = make_environment(settings, origins, options)
        if source:
            source.check_requirements()
        tag = source.digest() if source else ""
        aws, place = _find_place(options, is_offline=is_offline)
        wanted = Deployment(place, options, settings, environment, tag)
        wanted.template()  # refuses a policy or options that cannot be used, before anything is made
        return cls(wanted, endpoint, aws)

    @classmethod
    def named(cls, config: Path | None, overrides: Mapping[str, object], endpoint: str = DEFAULT_ENDPOINT) -> "Work":
        """Read the names only, for commands that need no settings."""
        options = read_options(config, overrides)
        aws, place = _find_place(options, is_offline=False)
        return cls(Deployment(place, options, Settings(), {}, ""), endpoint, aws)

    def runtime(self) -> Response:
        runtime = find_runtime(self.aws, self.wanted.name)
        if runtime is None:
            raise DeployRefused(f"runtime {self.wanted.name} does not exist. `agui deploy` makes it.")
        return runtime

    def deploy(self, rollback: str | None) -> None:
        if not rollback:
            self.make_image()
        if not self._stack.apply(self._next_template(rollback)):
            click.echo("Nothing differs.", err=True)

    def make_image(self) -> None:
        """Make the repository and the image, unless the options name an image. A stack of others is refused before."""
        self._stack.template()
        if not self.wanted.options.image:
            self._image.make(SourceFolder(Path.cwd(), self.wanted.options.dockerfile), self._builder())

    def plan(self, rollback: str | None, *, is_pushed: bool) -> int:
        lines = [] if rollback or self.wanted.options.image else self._image.plan()
        lines += [] if is_pushed else self._stack.plan(self._next_template(rollback))
        for line in lines:
            click.echo(line)
        if not lines:
            click.echo("Nothing differs.", err=True)
        return 0

    def destroy(self, *, only_plan: bool, is_asked: bool) -> int:
        """Delete the stack and the repository, after a question."""
        has_repository = not self.wanted.options.image and self._image.has_repository()
        resources = self._stack.resources()
        lines = [f"- delete {each['ResourceType']} {each['PhysicalResourceId']}" for each in resources]
        lines += [f"- delete repository {self.wanted.repository}"] if has_repository else []
        for line in lines:
            click.echo(line)
        if not lines:
            click.echo("There is nothing to delete.", err=True)
        elif not only_plan and (not is_asked or click.confirm("Delete all of this?", err=True)):
            self._delete(resources, has_repository=has_repository)
        return 0

    def emit(self, folder: Path) -> int:
        template = self.wanted.template(image={"Ref": "ImageUri"})
        add_endpoint(template, self.endpoint)
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**template, "Parameters": IMAGE_PARAMETER}, indent=2, ensure_ascii=False)
        (folder / TEMPLATE).write_text(f"{text}\n", encoding="utf-8")
        click.echo(folder / TEMPLATE)
        return 0

    def print_calls(self) -> int:
        """Print the calls of a first deployment, one in a line."""
        template = self.wanted.template(with_build=self._builder() == "codebuild")
        add_endpoint(template, self.endpoint)
        calls = [("cloudformation", "CreateChangeSet", self._stack.request(template, exists=False))]
        if not self.wanted.options.image:
            calls.insert(0, ("ecr", "CreateRepository", self._image.repository_request()))
        for service, operation, parameters in calls:
            line = {"service": service, "operation": operation, "parameters": parameters}
            click.echo(json.dumps(line, ensure_ascii=False))
        return 0

    def finish(self, prompt: str, token: str | None, *, is_tested: bool) -> None:
        runtime = self.runtime()
        arn, with_token = runtime["agentRuntimeArn"], bool(runtime.get("authorizerConfiguration"))
        if with_token and not token:
            click.echo("The agent was not run, because it asks for a token: name one with --token.", err=True)
        elif is_tested:
            answer = run_once(arn, self.endpoint, prompt, token if with_token else None)
            click.echo(f"It answers: {answer}\n", err=True)
        shown, version = endpoint_arn(arn, self.endpoint), live_versions(self.aws, runtime).get(self.endpoint)
        if version is None:
            raise DeployRefused(f"endpoint {self.endpoint} has no version yet. `agui status` shows it.")
        click.echo(f"{shown} version {version} is {runtime['status']}\n")
        click.echo(how_to_call(shown, self.wanted.place.region, with_token=with_token))

    def _builder(self) -> str:
        options = self.wanted.options
        if options.image:
            return ""
        return find_builder() if options.builder == "auto" else options.builder

    def _next_template(self, rollback: str | None) -> Template:
        wanted, deployed = self.wanted, self._stack.template()
        if rollback:
            runtime = self.runtime()
            if deployed is None:
                raise DeployRefused(f"stack {wanted.slug} does not exist, so it cannot go back.")
            version = None if rollback == "previous" else rollback
            return rollback_template(deployed, self.aws, runtime, self.endpoint, version)
        has_project = deployed is not None and "Project" in deployed["Resources"]
        is_built = not wanted.options.image and not self._image.exists() and self._builder() == "codebuild"
        template = wanted.template(with_build=is_built or has_project)
        if deployed:
            keep_endpoints(template, deployed, self.aws, wanted.name)
        add_endpoint(template, self.endpoint)
        return template

    def _delete(self, resources: list[Response], *, has_repository: bool) -> None:
        for each in resources:
            if each["ResourceType"] == "AWS::S3::Bucket":  # CloudFormation deletes no bucket with an object
                self.aws.call("s3", "DeleteObject", {"Bucket": each["PhysicalResourceId"], "Key": SOURCE_KEY})
        if resources:
            self._stack.delete()
        if has_repository:
            self._image.delete_repository()


@contextmanager
def explained() -> Iterator[None]:
    """End the command with one line if something cannot be done."""
    try:
        yield
    except (SettingsError, RequirementError, WheelError, DeployRefused, ClientError, BotoCoreError) as error:
        raise CommandFailed(f"cannot do this: {error}") from None
    except RunFailed as error:
        raise CommandFailed(f"it is deployed, but the run that tests it failed: {error}\nSee `agui logs`.") from None


def _find_place(options: DeployOptions, *, is_offline: bool) -> tuple[Aws, AwsPlace]:
    aws = Aws(options.region, fallback="us-east-1" if is_offline else None)
    if aws.region is None:
        raise SettingsError("there is no region. Name one: --region, AWS_REGION, or a profile.")
    account = NOBODY if is_offline else aws.call("sts", "GetCallerIdentity", {})["Account"]
    return aws, AwsPlace(aws.partition, aws.region, account)


def _check_no_secret(settings: Settings, origins: Mapping[str, str], options: DeployOptions) -> None:
    left_out = {*options.secrets, *options.leave_in_image}
    for name, origin in origins.items():
        shown = json.dumps(masked_value(name, settings))
        if origin != "default" and name not in left_out and MASKED.search(shown):
            raise SettingsError(
                f"{name} ({origin}) has a secret, which everybody who may read the runtime could read. Store it in "
                f'Secrets Manager, and name it: [deploy.secrets] {name} = "arn:aws:secretsmanager:…"'
            )
    for name in filter(is_secret, options.environment):
        raise SettingsError(f"[deploy.environment] {name}: is a secret. Let your agent read it from Secrets Manager.")
