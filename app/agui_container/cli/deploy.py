"""``agui deploy``: make, change, roll back and delete a deployment on Amazon Bedrock AgentCore Runtime.

Rule: this module reads options and shows progress. The room ``deploy`` has the parts.
"""

import json
import re
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path

import click
from boto3.session import Session  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

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
from agui_container.aws.deploy.source import SourceFolder
from agui_container.aws.deploy.stack import DeployRefused, Response, Stack, open_session
from agui_container.aws.deploy.start_check import check_start
from agui_container.aws.deploy.versions import Versions
from agui_container.cli.config import is_secret, masked_value
from agui_container.cli.failure import CommandFailed
from agui_container.cli.options import agent_argument, config_option
from agui_container.settings import Settings, SettingsError, check_auth
from agui_container.settings_sources import load_with_origins

DEPLOYED = """{arn} version {version} is {status}

agui invoke {arn}{option} hello
agui chat {arn}{option}
agui chat --web {arn}{option}
aws logs tail {log_group} --follow

docs/agentcore.md has the calls of other clients."""

LOG_GROUP = "/aws/bedrock-agentcore/runtimes/{runtime}-{endpoint}"
"""Source: devguide ``observability-view``."""

MASKED = "***"
"""Part of a value that was masked: a secret, or a password of a URL."""

TEMPLATE = Path("infrastructure", "template.json")
ENDPOINT = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,47}")
"""Name of an endpoint. Source: ``EndpointName`` of botocore's ``bedrock-agentcore-control``."""

report = partial(click.echo, err=True)


def check_endpoint(_: click.Context, __: click.Parameter, name: str) -> str:
    if not ENDPOINT.fullmatch(name):
        raise click.BadParameter(f"{name!r} must begin with a letter, and have letters, digits and _, 48 at most")
    return name


@click.command()
@agent_argument
@click.option("--name", help="Name of the runtime. Default: the name of the folder.")
@click.option("--region", help="Region of AWS. Default: that of the environment or the profile.")
@click.option(
    "--endpoint",
    default=DEFAULT_ENDPOINT,
    show_default=True,
    callback=check_endpoint,
    help="Endpoint of the runtime, such as prod.",
)
@click.option("--image", help="URI of an image in ECR, in place of one that is built.")
@click.option("--builder", type=click.Choice(["auto", "docker", "codebuild"]), help="What builds the image.")
@click.option("--plan", "only_plan", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--dry-run", is_flag=True, help="Print each call that makes a first deployment as JSON.")
@click.option("--push", is_flag=True, help="Build and push the image, print its URI, and stop.")
@click.option("--rollback", metavar="VERSION", help="Go back to this version of the runtime.")
@click.option("--destroy", is_flag=True, help="Delete all that was made for this deployment.")
@click.option("--emit", is_flag=True, help=f"Write {TEMPLATE} for CloudFormation in place of a deployment.")
@click.option("--yes", is_flag=True, help="Do not ask before --destroy.")
@config_option
def deploy(
    agent: str | None,
    name: str | None,
    region: str | None,
    endpoint: str,
    image: str | None,
    builder: str | None,
    rollback: str | None,
    config: Path | None,
    *,
    only_plan: bool,
    dry_run: bool,
    emit: bool,
    push: bool,
    destroy: bool,
    yes: bool,
) -> None:
    """Deploy the agent of this folder, or MODULE:ATTRIBUTE, to Amazon Bedrock AgentCore Runtime.

    A second run changes only what differs. Facts of a deployment that are no settings are in the table [deploy] of
    agui.toml.
    """
    if (dry_run or emit) and (push or destroy or rollback):
        raise click.UsageError("--dry-run and --emit are for a first deployment. Use --plan for anything else.")
    overrides = {"name": name, "region": region, "image": image, "builder": builder}
    try:
        if destroy or rollback:
            work = Work.named(config, overrides, endpoint)
        else:
            work = Work.load(agent, config, overrides, endpoint)
        if emit:
            work.emit()
        elif dry_run:
            work.print_calls()
        elif destroy:
            work.destroy(only_plan=only_plan, is_asked=not yes)
        elif only_plan:
            work.plan(rollback, is_pushed=push)
        elif push:
            click.echo(work.make_image())
        else:
            work.deploy(rollback)
            work.describe()
    except (SettingsError, DeployRefused, ClientError, BotoCoreError) as error:
        raise CommandFailed(f"cannot do this: {error}") from None


class Work:
    """The deployment that one call of the command works on."""

    def __init__(self, wanted: Deployment, endpoint: str) -> None:
        self.wanted = wanted
        self.endpoint = endpoint

    @cached_property
    def session(self) -> Session:
        return open_session(self.wanted.options.region)

    @cached_property
    def versions(self) -> Versions:
        return Versions(self.session, self.wanted.name)

    @cached_property
    def _stack(self) -> Stack:
        return Stack(self.session, self.wanted, report)

    @cached_property
    def _image(self) -> ImageBuild:
        return ImageBuild(self.session, self.wanted, self._stack, report)

    @classmethod
    def load(cls, agent: str | None, config: Path | None, overrides: Mapping[str, object], endpoint: str) -> "Work":
        """Read the settings and the options. Settings are refused that a start of the server would refuse."""
        settings, origins = load_with_origins(config)
        if agent:
            settings, origins = settings.model_copy(update={"agent": agent}), {**origins, "agent": "argument"}
        options = read_options(config, overrides)
        check_auth(settings)
        _check_no_secret(settings, origins, options)
        source = None if options.image else SourceFolder(Path.cwd(), options.dockerfile)
        if source and not source.has_dockerfile:
            raise DeployRefused(f"there is no {options.dockerfile}. `agui init` makes a project with one.")
        for fault in source.find_faults() if source else ():
            raise DeployRefused(fault)
        check_start(settings, source)
        settings, origins = with_memory(settings, origins, options)
        environment = make_environment(settings, origins, options)
        tag = source.digest() if source else ""
        wanted = Deployment(options, settings, environment, tag)
        wanted.template()  # refuses a policy or options that cannot be used, before anything is made
        return cls(wanted, endpoint)

    @classmethod
    def named(cls, config: Path | None, overrides: Mapping[str, object], endpoint: str) -> "Work":
        """Read the names only, for commands that need no settings."""
        return cls(Deployment(read_options(config, overrides), Settings(), {}, ""), endpoint)

    def deploy(self, rollback: str | None) -> None:
        if not rollback:
            self.make_image()
        if not self._stack.apply(self._next_template(rollback)):
            report("Nothing differs.")

    def make_image(self) -> str:
        """Make the repository and the image, unless the options name an image. A stack of others is refused before."""
        self._stack.find()
        options = self.wanted.options
        return options.image or self._image.make(SourceFolder(Path.cwd(), options.dockerfile), self._builder())

    def plan(self, rollback: str | None, *, is_pushed: bool) -> None:
        lines = [] if rollback or self.wanted.options.image else self._image.plan()
        lines += [] if is_pushed else self._stack.plan(self._next_template(rollback))
        for line in lines:
            click.echo(line)
        if not lines:
            report("Nothing differs.")

    def destroy(self, *, only_plan: bool, is_asked: bool) -> None:
        """Delete the stack and the repository, after a question."""
        has_repository = not self.wanted.options.image and self._image.find_repository() is not None
        resources = self._stack.resources()
        lines = [f"- delete {each['ResourceType']} {each['PhysicalResourceId']}" for each in resources]
        lines += [f"- delete repository {self.wanted.slug}"] if has_repository else []
        for line in lines:
            click.echo(line)
        if not lines:
            report("There is nothing to delete.")
        elif not only_plan and (not is_asked or click.confirm("Delete all of this?", err=True)):
            self._delete(resources, has_repository=has_repository)

    def emit(self) -> None:
        template = self.wanted.template(image={"Ref": "ImageUri"})
        add_endpoint(template, self.endpoint)
        TEMPLATE.parent.mkdir(exist_ok=True)
        text = json.dumps({**template, "Parameters": IMAGE_PARAMETER}, indent=2, ensure_ascii=False)
        TEMPLATE.write_text(f"{text}\n", encoding="utf-8")
        click.echo(TEMPLATE)

    def print_calls(self) -> None:
        """Print the calls of a first deployment, one in a line."""
        template = self.wanted.template(with_build=self._builder() == "codebuild")
        add_endpoint(template, self.endpoint)
        calls = [("cloudformation", "CreateChangeSet", self.wanted.change_set_request(template, exists=False))]
        if not self.wanted.options.image:
            calls.insert(0, ("ecr", "CreateRepository", self.wanted.repository_request))
        for service, operation, parameters in calls:
            line = {"service": service, "operation": operation, "parameters": parameters}
            click.echo(json.dumps(line, ensure_ascii=False))

    def describe(self) -> None:
        """Print what is deployed, how to call it, and where its log is."""
        runtime = self.versions.find()
        version = self.versions.live(runtime).get(self.endpoint)
        if version is None:
            raise DeployRefused(f"AWS is still making the endpoint {self.endpoint}. Run `agui deploy` again.")
        arn = runtime["agentRuntimeArn"]
        facts = {
            "arn": arn if self.endpoint == DEFAULT_ENDPOINT else f"{arn}/runtime-endpoint/{self.endpoint}",
            "version": version,
            "status": runtime["status"],
            "option": ' --token "$TOKEN"' if runtime.get("authorizerConfiguration") else "",
            "log_group": LOG_GROUP.format(runtime=runtime["agentRuntimeId"], endpoint=self.endpoint),
        }
        click.echo(DEPLOYED.format(**facts))

    def _builder(self) -> str:
        options = self.wanted.options
        if options.image:
            return ""
        return find_builder() if options.builder == "auto" else options.builder

    def _next_template(self, rollback: str | None) -> Template:
        wanted, deployed = self.wanted, self._stack.template()
        if rollback:
            if deployed is None:
                raise DeployRefused(f"stack {wanted.slug} does not exist, so it cannot go back.")
            return self.versions.rollback(deployed, self.endpoint, rollback)
        has_project = deployed is not None and "Project" in deployed["Resources"]
        is_built = not wanted.options.image and not self._image.exists() and self._builder() == "codebuild"
        template = wanted.template(with_build=is_built or has_project)
        if deployed:
            self.versions.keep_endpoints(template, deployed)
        add_endpoint(template, self.endpoint)
        return template

    def _delete(self, resources: list[Response], *, has_repository: bool) -> None:
        for each in resources:
            if each["ResourceType"] == "AWS::S3::Bucket":  # CloudFormation deletes no bucket with an object
                self.session.client("s3").delete_object(Bucket=each["PhysicalResourceId"], Key=SOURCE_KEY)
        self._stack.delete()
        if has_repository:
            self._image.delete_repository()


def _check_no_secret(settings: Settings, origins: Mapping[str, str], options: DeployOptions) -> None:
    left_out = {*options.secrets, *options.leave_in_image}
    for name, origin in origins.items():
        shown = json.dumps(masked_value(name, settings))
        if origin != "default" and name not in left_out and MASKED in shown:
            raise SettingsError(
                f"{name} ({origin}) has a secret, which everybody who may read the runtime could read. Store it in "
                f'Secrets Manager, and name it: [deploy.secrets] {name} = "arn:aws:secretsmanager:…"'
            )
    for name in filter(is_secret, options.environment):
        raise SettingsError(f"[deploy.environment] {name}: is a secret. Let your agent read it from Secrets Manager.")
