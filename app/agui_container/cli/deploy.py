"""``agui deploy``: make, change, roll back and delete a deployment on Amazon Bedrock AgentCore Runtime.

Rule: this module reads options and shows progress. The room ``deploy`` has the parts.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Column

from agui_container.cli.config import is_secret, masked_value
from agui_container.cli.failure import CommandFailed
from agui_container.cli.options import agent_argument, config_option, token_option
from agui_container.deploy.aws import Aws, AwsError
from agui_container.deploy.deployment import Deployment
from agui_container.deploy.environment import make_environment
from agui_container.deploy.executor import Executor, Report, StepFailed
from agui_container.deploy.existing import DEFAULT_ENDPOINT, EVERYTHING, DeployRefused, Existing, ExistingReader
from agui_container.deploy.image_build import find_builder, plan_image
from agui_container.deploy.infrastructure import EMITTERS
from agui_container.deploy.options import DeployOptions, read_options
from agui_container.deploy.place import AwsPlace
from agui_container.deploy.plan import plan_deployment, plan_destruction, plan_rollback
from agui_container.deploy.rollback import former_parameters, former_version
from agui_container.deploy.smoke_test import RunFailed, smoke_calls, smoke_test
from agui_container.deploy.source import EMITTED, SourceFolder
from agui_container.deploy.start_check import check_start
from agui_container.deploy.steps import CommandStep, Step
from agui_container.deploy.usage import endpoint_arn, how_to_call
from agui_container.settings import Auth, Settings, SettingsError, check_auth
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
@click.option("--emit", type=click.Choice(list(EMITTERS)), help="Write infrastructure code in place of a deployment.")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Folder of that code.")
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
    emit: str | None,
    output: Path | None,
    rollback: str | None,
    prompt: str,
    token: str | None,
    config: Path | None,
    *,
    only_plan: bool,
    dry_run: bool,
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
        kind = {"is_offline": bool(dry_run or emit), "is_started": not (destroy or rollback)}
        work = Work.load(agent, config, overrides, endpoint, **kind)
        if emit:
            return write_files(EMITTERS[emit](work.wanted, endpoint), output or Path(EMITTED))
        if dry_run:
            check_no_rollback(rollback)
            return print_calls(work.first_steps(None if no_test else prompt, is_destroyed=destroy, is_pushed=push))
        existing = work.read(is_destroyed=destroy)
        steps = work.chosen_steps(existing, rollback, is_destroyed=destroy, is_pushed=push)
        if only_plan or not steps:
            show_plan(steps)
        elif not destroy or yes or confirm(steps):
            work.execute(steps)
        if push:
            click.echo(work.wanted.image)
        if not (only_plan or destroy or push):
            work.finish(prompt, token, is_tested=not no_test)
    return 0


class Work:
    """The deployment that one call of the command works on.

    Attributes:
        wanted: the deployment as it should be.
        endpoint: that the command names.
        aws: calls of AWS.
    """

    def __init__(self, wanted: Deployment, endpoint: str, aws: Aws) -> None:
        self.wanted = wanted
        self.endpoint = endpoint
        self.aws = aws
        self.source = SourceFolder(Path.cwd(), wanted.options.dockerfile)

    @classmethod
    def load(
        cls,
        agent: str | None,
        config: Path | None,
        overrides: Mapping[str, object],
        endpoint: str,
        *,
        is_offline: bool,
        is_started: bool = True,
    ) -> "Work":
        """Read the settings and the options.

        Without ``is_offline`` AWS is asked which account this is. With ``is_started`` settings are refused that a start
        of the server would refuse.
        """
        settings, origins = load_with_origins(config)
        if agent:
            settings, origins = settings.model_copy(update={"agent": agent}), {**origins, "agent": "argument"}
        options = read_options(config, overrides)
        check_auth(settings)
        check_no_secret(settings, origins, options)
        aws = Aws(options.region, fallback="us-east-1" if is_offline else None)
        environment = make_environment(settings, origins, options)
        source = None if options.image else SourceFolder(Path.cwd(), options.dockerfile)
        if is_started:
            check_start(settings, source)
        tag = source.digest() if source else ""
        place = find_place(aws, is_offline=is_offline)
        return cls(Deployment(place, options, settings, environment, tag), endpoint, aws)

    @classmethod
    def named(cls, config: Path | None, overrides: Mapping[str, object], endpoint: str = DEFAULT_ENDPOINT) -> "Work":
        """Read the names only, for commands that change nothing."""
        options = read_options(config, overrides)
        aws = Aws(options.region)
        return cls(Deployment(find_place(aws, is_offline=False), options, Settings(), {}, ""), endpoint, aws)

    def read(self, *, is_destroyed: bool) -> Existing:
        """Return what exists. CodeBuild and its bucket are asked only if CodeBuild builds, or for a deletion."""
        reader = ExistingReader(self.aws, self.wanted)
        existing = reader.read()
        is_needed = is_destroyed or self.builder(existing) == "codebuild"
        return reader.add_build(existing) if is_needed else existing

    def chosen_steps(
        self, existing: Existing, rollback: str | None, *, is_destroyed: bool, is_pushed: bool
    ) -> list[Step]:
        """Return the steps of a deletion, of the way back to a version, of the image alone, or of a deployment."""
        if is_destroyed:
            return self.destruction(existing)
        if rollback:
            return self.rollback(existing, rollback)
        return self.image_steps(existing) if is_pushed else self.steps(existing)

    def steps(self, existing: Existing) -> list[Step]:
        """Return the steps of a deployment."""
        return plan_deployment(self.wanted, existing, self.source, self.builder(existing), self.endpoint)

    def first_steps(self, prompt: str | None, *, is_destroyed: bool, is_pushed: bool) -> list[Step]:
        """Return the steps where nothing exists, or of a deletion where everything does. ``prompt`` tests the first."""
        if is_destroyed:
            return self.destruction(EVERYTHING)
        if is_pushed:
            return self.image_steps(Existing())
        tests = () if prompt is None else smoke_calls("${agentRuntimeArn}", self.endpoint, prompt)
        return [*self.steps(Existing()), *tests]

    def image_steps(self, existing: Existing) -> list[Step]:
        """Return the steps of the image alone."""
        return list(plan_image(self.wanted, existing, self.source, self.builder(existing)))

    def destruction(self, existing: Existing) -> list[Step]:
        """Return the steps that delete everything."""
        return plan_destruction(self.wanted, existing)

    def rollback(self, existing: Existing, version: str) -> list[Step]:
        """Return the steps back to a version, or to the one before."""
        found = former_version(self.aws, existing, self.endpoint) if version == "previous" else version
        former = former_parameters(self.aws, existing, found)
        return plan_rollback(self.wanted, existing, self.endpoint, found, former)

    def builder(self, existing: Existing) -> str:
        """Return what builds the image, or an empty text if none is built."""
        if self.wanted.options.image or existing.image:
            return ""
        chosen = self.wanted.options.builder
        return find_builder() if chosen == "auto" else chosen

    def execute(self, steps: Sequence[Step]) -> None:
        """Execute steps with a progress bar on the standard error."""
        with progress(len(steps)) as report:
            Executor(self.aws, report).run(steps)

    def finish(self, prompt: str, token: str | None, *, is_tested: bool) -> None:
        """Run the agent, and print how to call it."""
        reader = ExistingReader(self.aws, self.wanted)
        runtime = reader.runtime()
        if runtime is None:
            raise DeployRefused(f"runtime {self.wanted.name} does not exist.")
        arn, with_token = runtime["agentRuntimeArn"], self.wanted.settings.auth is Auth.JWT
        if with_token and not token:
            click.echo("The agent was not run, because it asks for a token: name one with --token.", err=True)
        elif is_tested:
            answer = smoke_test(self.aws.region, arn, self.endpoint, prompt, token if with_token else None)
            click.echo(f"It answers: {answer}\n", err=True)
        found = Existing(runtime=runtime, endpoints=tuple(reader.endpoints(runtime["agentRuntimeId"])))
        shown = endpoint_arn(arn, self.endpoint)
        click.echo(f"{shown} version {found.version(self.endpoint)} is {runtime['status']}\n")
        click.echo(how_to_call(self.wanted.place, arn, self.endpoint, with_token=with_token))


@contextmanager
def explained() -> Iterator[None]:
    """End the command with one line if something cannot be done."""
    try:
        yield
    except (SettingsError, AwsError, DeployRefused, BotoCoreError) as error:
        raise CommandFailed(f"cannot do this: {error}") from None
    except StepFailed as error:
        raise CommandFailed(f"{error}\nNothing is undone. The next run continues from here.") from None
    except RunFailed as error:
        raise CommandFailed(f"it is deployed, but the run that tests it failed: {error}\nSee `agui logs`.") from None


def find_place(aws: Aws, *, is_offline: bool) -> AwsPlace:
    """Return the account and the region. Raises ``SettingsError`` if nothing names a region."""
    if aws.region is None:
        raise SettingsError("there is no region. Name one: --region, AWS_REGION, or a profile.")
    account = NOBODY if is_offline else aws.call("sts", "GetCallerIdentity", {})["Account"]
    return AwsPlace(aws.partition, aws.region, account)


def check_no_secret(settings: Settings, origins: Mapping[str, str], options: DeployOptions) -> None:
    """Check that no secret would be readable in the runtime's variables. Raises ``SettingsError``."""
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


def check_no_rollback(rollback: str | None) -> None:
    """Check that a dry run is none of a rollback. Raises ``DeployRefused``."""
    if rollback:
        raise DeployRefused("--dry-run asks AWS nothing, so it knows no version. Use --rollback with --plan.")


def write_files(files: Mapping[str, str], folder: Path) -> int:
    """Write files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
        click.echo(folder / name)
    return 0


def print_calls(steps: Sequence[Step]) -> int:
    """Print each step as one line of JSON."""
    for step in steps:
        click.echo(json.dumps(step.shown(), ensure_ascii=False))
    return 0


def show_plan(steps: Sequence[Step]) -> None:
    """Print each step in words."""
    for step in steps:
        click.echo(f"+ {step.purpose}")
    if not steps:
        click.echo("Nothing differs.", err=True)


def confirm(steps: Sequence[Step]) -> bool:
    """Show what would be deleted, and ask."""
    show_plan(steps)
    return click.confirm("Delete all of this?", err=True)


@contextmanager
def progress(total: int) -> Iterator[Report]:
    """Show the steps as a bar, or as lines if the standard error is no terminal."""
    console = Console(file=sys.stderr)
    rest = TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True))
    columns = (SpinnerColumn(), MofNCompleteColumn(), BarColumn(bar_width=16), rest)
    with Progress(*columns, console=console, transient=True, expand=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        seen: list[Step] = []

        def show(line: str) -> None:
            console.print(line, markup=False, highlight=False, soft_wrap=True)

        def report(step: Step, status: str) -> None:
            if not seen or seen[-1] is not step:
                seen.append(step)
                show(f"[{len(seen)}/{total}] {step.purpose}")
            elif isinstance(step, CommandStep):
                show(status)
            bar.update(task, completed=len(seen) - 1, description=status or step.purpose, refresh=True)

        yield report
        bar.update(task, completed=total, refresh=True)
