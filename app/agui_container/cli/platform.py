"""``agui platform``: a local AgentCore around a container, and ``agui platform check``: the container's conformance.

Rule: this module reads options and makes the parts. The room ``platform`` has the parts.
"""

import asyncio
import logging
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from boto3.session import Session  # type: ignore[import-untyped]

from agui_container.cli.extra import needs_extra
from agui_container.cli.options import agent_argument
from agui_container.platform.application import build_platform
from agui_container.platform.authorizer import (
    InboundAuthorizer,
    JwtAuthorizer,
    NoAuthorizer,
    SigV4Authorizer,
    parse_configuration,
)
from agui_container.platform.check import DEFAULT_PROMPT, check_container
from agui_container.platform.containers import ContainerFactory, DockerContainer, ProcessContainer
from agui_container.platform.data_plane import DataPlane, PlatformOptions
from agui_container.platform.headers import check_allowlist
from agui_container.platform.limits import PlatformClock, PlatformLimits
from agui_container.platform.report import REPORTS
from agui_container.platform.rules import RuleFindings
from agui_container.platform.serving import PlatformServer, make_server
from agui_container.platform.snapshot import ForkedContainer, WarmedProcess

IMAGE_ENVIRONMENT: Mapping[str, str] = {"AGUI_CONSOLE": "off", "AGUI_ERROR_STATUS": "stream", "AGUI_ROBOTO": "off"}
"""Settings of this project's image, for a server that is started without one. Variables of ``--env`` win."""

LOCAL_KEY = ("local", "local")
"""Access key and secret key, where the environment of boto3 has none."""

LIMITS = PlatformLimits()

logger = logging.getLogger(__name__)


class CommandWithCheck(click.Command):
    """The command ``platform``, with the command ``check`` behind it. Any other word is an agent."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        """Parse the arguments of ``platform`` or of ``check``."""
        if args[:1] == ["check"]:
            return check.make_context(f"{info_name} check", args[1:], parent)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command whose arguments were parsed."""
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


@dataclass(frozen=True, slots=True)
class ContainerTarget:
    """The container that the options name.

    Attributes:
        name: for reports.
        make_container: makes the container of a session.
        warmed: the process that is forked for each session, if there is one.
        image: name of the image, if there is one.
    """

    name: str
    make_container: ContainerFactory
    warmed: WarmedProcess | None = None
    image: str | None = None

    async def aclose(self) -> None:
        """End the warmed process."""
        if self.warmed is not None:
            await self.warmed.aclose()


def container_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that name the container."""
    options = (
        agent_argument,
        click.option("--command", help="A command that starts a container. It gets PORT, AGUI_PORT and {port}."),
        click.option("--image", help="An image for docker, which listens on 8080."),
        click.option("--snapshot", is_flag=True, help="Fork each session from one warmed process."),
        click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable of the container."),
        click.option("--path", default="/invocations", show_default=True, help="protocolConfiguration.path"),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(cls=CommandWithCheck)
@container_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of the data plane.")
@click.option("--port", type=click.IntRange(0, 65535), default=8100, show_default=True, help="Port of the data plane.")
@click.option("--auth", type=click.Choice(["sigv4", "none"]), default="sigv4", show_default=True, help="Who may call.")
@click.option("--authorizer", metavar="JSON", help='{"customJWTAuthorizer": {"discoveryUrl": …}}, in place of --auth.')
@click.option("--allow-header", multiple=True, metavar="NAME", help="A header of requestHeaderAllowlist.")
@click.option("--idle-timeout", type=float, default=LIMITS.idle_seconds, show_default=True, metavar="SECONDS")
@click.option("--max-lifetime", type=float, default=LIMITS.lifetime_seconds, show_default=True, metavar="SECONDS")
@click.option("--max-sessions", type=int, default=LIMITS.sessions, show_default=True, help="The quota maxVms.")
@click.option("--time-factor", type=float, default=1.0, help="Seconds of the platform in a real one.")
@click.option("--no-freeze", is_flag=True, help="Leave idle containers running.")
@click.option("--strict", is_flag=True, help="Answer no request once the container has broken a rule.")
def platform(
    agent: str | None,
    command: str | None,
    image: str | None,
    *,
    snapshot: bool,
    env: tuple[str, ...],
    path: str,
    host: str,
    port: int,
    auth: str,
    authorizer: str | None,
    allow_header: tuple[str, ...],
    idle_timeout: float,
    max_lifetime: float,
    max_sessions: int,
    time_factor: float,
    no_freeze: bool,
    strict: bool,
) -> int:
    """Run a local data plane of AgentCore Runtime around MODULE:ATTRIBUTE, a command or an image.

    `agui platform check` reports which rules of AgentCore's AG-UI contract a container keeps.
    """
    log_decisions()
    if time_factor <= 0:
        raise click.BadParameter("must be greater than 0", param_hint="--time-factor")
    if max_lifetime < idle_timeout:
        raise click.BadParameter("must not be less than --idle-timeout", param_hint="--max-lifetime")
    target = make_target(agent, command, image, snapshot=snapshot, env=env)
    options = PlatformOptions(
        target.make_container,
        make_authorizer(auth, authorizer),
        replace(LIMITS, idle_seconds=idle_timeout, lifetime_seconds=max_lifetime, sessions=max_sessions),
        PlatformClock(time_factor),
        make_allowlist(allow_header),
        path,
        freezes=not no_freeze,
        is_strict=strict,
    )
    return asyncio.run(serve_platform(target, options, host, port))


@click.command()
@container_options
@click.option(
    "--prompt", default=DEFAULT_PROMPT, show_default=True, help="The message of each run, best a second long."
)
@click.option(
    "--form", type=click.Choice(list(REPORTS)), default="words", show_default=True, help="Form of the report."
)
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Also write the report as JUnit XML.")
def check(
    agent: str | None,
    command: str | None,
    image: str | None,
    *,
    snapshot: bool,
    env: tuple[str, ...],
    path: str,
    prompt: str,
    form: str,
    junit: Path | None,
) -> int:
    """Report which rules of AgentCore's AG-UI contract a container keeps. The status is 1 if one is broken."""
    log_decisions()
    target = make_target(agent, command, image, snapshot=snapshot, env=env)
    findings = asyncio.run(check_target(target, path, prompt))
    click.echo(REPORTS[form](findings, target.name))
    if junit is not None:
        junit.write_text(REPORTS["junit"](findings, target.name))
    return 1 if findings.broken() else 0


async def serve_platform(target: ContainerTarget, options: PlatformOptions, host: str, port: int) -> int:
    """Serve until SIGINT or SIGTERM. The status is 1 if a strict platform has seen a broken rule."""
    app = build_platform(options)
    plane: DataPlane = app.state.plane
    server = make_server(app, options.limits, host, port)
    announcing = asyncio.create_task(announce(server), name="announcement")
    await server.serve()
    announcing.cancel()
    await target.aclose()
    if options.is_strict and plane.findings.broken():
        click.echo(REPORTS["words"](plane.findings, target.name), err=True)
        return 1
    return 0 if server.started else 1


async def announce(server: PlatformServer) -> None:
    """Log where the platform is, once it listens."""
    await server.has_started.wait()
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    logger.info("platform listens: http://%s:%s/_platform shows its sessions", host, port)
    logger.info("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE=http://%s:%s leads agui chat ARN and SDKs here", host, port)


async def check_target(target: ContainerTarget, path: str, prompt: str) -> RuleFindings:
    """Run the check against new containers."""
    findings = await check_container(target.make_container, path=path, prompt=prompt, image=target.image)
    await target.aclose()
    return findings


def log_decisions() -> None:
    """Log each decision as one line on standard error, and of uvicorn only what is wrong."""
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO, stream=sys.stderr)
    for name in ("httpx", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # Answers that are cut, and sockets that are refused, are the platform's own decisions, and are logged as such.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "without completing" not in record.msg)


# --- from options to parts --------------------------------------------------------------------------------------------


def make_target(
    agent: str | None, command: str | None, image: str | None, *, snapshot: bool, env: Sequence[str]
) -> ContainerTarget:
    """Return the container that the options name. Raises ``UsageError``."""
    if sum(map(bool, (agent, command, image))) > 1:
        raise click.UsageError("Name one of MODULE:ATTRIBUTE, --command and --image.")
    if snapshot and (command or image):
        raise click.UsageError("--snapshot forks this project's own server, so it takes neither --command nor --image.")
    environment = parse_environment(env)
    if image:
        return ContainerTarget(image, lambda: DockerContainer(image, environment), image=image)
    if command:
        words = shlex.split(command)
        return ContainerTarget(command, lambda: ProcessContainer(words, environment))
    name, own = agent or "agui serve", {**IMAGE_ENVIRONMENT, **environment}
    if snapshot:
        warmed = WarmedProcess(agent, own)
        return ContainerTarget(name, lambda: ForkedContainer(warmed), warmed)
    words = [sys.executable, "-m", "agui_container", "serve", *([agent] if agent else [])]
    return ContainerTarget(name, lambda: ProcessContainer(words, own))


def make_authorizer(auth: str, authorizer: str | None) -> InboundAuthorizer:
    """Return the authorizer of the runtime. Raises ``BadParameter``."""
    if authorizer is not None:
        try:
            with needs_extra("platform --authorizer"):
                return JwtAuthorizer(parse_configuration(authorizer))
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--authorizer") from None
    if auth == "none":
        return NoAuthorizer()
    credentials = Session().get_credentials()
    if credentials is not None:
        return SigV4Authorizer(credentials.access_key, credentials.secret_key)
    logger.info("no AWS credentials in the environment: sign with the access key %r and the secret key %r", *LOCAL_KEY)
    return SigV4Authorizer(*LOCAL_KEY)


def make_allowlist(names: Sequence[str]) -> frozenset[str]:
    """Return the allow-list. Raises ``BadParameter``."""
    try:
        return check_allowlist(names)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--allow-header") from None


def parse_environment(entries: Sequence[str]) -> Mapping[str, str]:
    """Return the variables of ``--env``. Raises ``BadParameter``."""
    pairs = [entry.partition("=") for entry in entries]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise click.BadParameter(f"{name!r} must be NAME=VALUE", param_hint="--env")
    return {name: value for name, _, value in pairs}
