"""``agui platform``: a local AgentCore around a container, and ``agui platform check``: the container's conformance."""

import asyncio
import logging
import shlex
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import click
import uvicorn
from boto3.session import Session  # type: ignore[import-untyped]

from agui_container.aws.platform import authorizer as inbound
from agui_container.aws.platform.check import DEFAULT_PROMPT, check_container
from agui_container.aws.platform.containers import ContainerFactory, ProcessContainer
from agui_container.aws.platform.data_plane import build_platform, server_config
from agui_container.aws.platform.headers import check_allowlist
from agui_container.aws.platform.options import PlatformLimits, PlatformOptions
from agui_container.aws.platform.rules import report
from agui_container.cli.failure import CommandFailed
from agui_container.cli.local_server import listen
from agui_container.cli.options import agent_argument
from agui_container.logging import without_refusals
from agui_container.settings import ASSISTANT, Auth, Settings, SettingsError, check_auth
from agui_container.settings_sources import load_settings

IMAGE_ENVIRONMENT: Mapping[str, str] = {"AGUI_CONSOLE": "off", "AGUI_ERROR_STATUS": "stream", "AGUI_ROBOTO": "off"}
"""Settings of this project's image, for a server that is started without one. Variables of ``--env`` win."""

LOCAL_KEY = ("local", "local")
"""Access key and secret key, where the environment of boto3 has none."""

OFFLINE_PROMPT = "wait 1"
"""A message for the offline model whose run is long enough to be seen in ``/ping``."""

LIMITS = PlatformLimits()

logger = logging.getLogger(__name__)


SECONDS = click.FloatRange(min=0, min_open=True)


class CommandWithCheck(click.Command):
    """The command ``platform``, with the command ``check`` behind it. Any other word is an agent."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        if args[:1] == ["check"]:
            return check.make_context(f"{info_name} check", args[1:], parent)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)


def parse_environment(_: click.Context, __: click.Parameter, entries: Sequence[str]) -> Mapping[str, str]:
    pairs = [entry.partition("=") for entry in entries]
    for name, equals, _value in pairs:
        if not (name and equals):
            raise click.BadParameter(f"{name!r} must be NAME=VALUE")
    return {name: value for name, _equals, value in pairs}


def parse_command(_: click.Context, __: click.Parameter, line: str | None) -> Sequence[str]:
    try:
        return shlex.split(line or "")
    except ValueError as error:
        raise click.BadParameter(f"{line!r} cannot be read: {error}") from None


def check_path(_: click.Context, __: click.Parameter, path: str) -> str:
    if not path.startswith("/"):
        raise click.BadParameter(f"{path!r} must begin with /")
    return path


def container_options(command: Callable[..., int]) -> Callable[..., int]:
    options = (
        agent_argument,
        click.option(
            "--command",
            callback=parse_command,
            help="A command that starts a container. It gets PORT, AGUI_PORT and {port}.",
        ),
        click.option(
            "--env",
            multiple=True,
            metavar="NAME=VALUE",
            callback=parse_environment,
            help="A variable of the container.",
        ),
        click.option(
            "--path",
            default="/invocations",
            show_default=True,
            callback=check_path,
            help="Path of the container for runs.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(cls=CommandWithCheck)
@container_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of the data plane.")
@click.option("--port", type=click.IntRange(0, 65535), default=8100, show_default=True, help="Port of the data plane.")
@click.option(
    "--auth",
    type=click.Choice(["sigv4", "jwt", "none"]),
    default="sigv4",
    show_default=True,
    help="Who may call. Tokens (jwt) are verified by the settings auth_….",
)
@click.option("--allow-header", multiple=True, metavar="NAME", help="A header of requestHeaderAllowlist.")
@click.option(
    "--idle-timeout",
    type=SECONDS,
    default=LIMITS.idle_seconds,
    show_default=True,
    metavar="SECONDS",
    help="When a session without requests ends.",
)
@click.option(
    "--max-lifetime",
    type=SECONDS,
    default=LIMITS.lifetime_seconds,
    show_default=True,
    metavar="SECONDS",
    help="When any session ends.",
)
@click.option("--no-freeze", is_flag=True, help="Leave idle containers running.")
def platform(
    agent: str | None,
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    path: str,
    host: str,
    port: int,
    auth: str,
    allow_header: tuple[str, ...],
    idle_timeout: float,
    max_lifetime: float,
    no_freeze: bool,
) -> int:
    """Run a local data plane of AgentCore Runtime around MODULE:ATTRIBUTE or a command.

    `agui platform check` reports which rules of AgentCore's AG-UI contract a container keeps.
    """
    log_decisions()
    if max_lifetime < idle_timeout:
        raise click.BadParameter("must not be less than --idle-timeout", param_hint="--max-lifetime")
    if auth == "jwt":  # the container has the settings auth_… of this environment, too
        env = {"AGUI_AUTH": "jwt", **env}
    make_container = container_factory(agent, command, env)
    with listen(host, port) as listener:
        authorizer = make_authorizer(auth)
        tokens = ("Authorization",) if authorizer.forwards_token else ()
        try:
            allowed = check_allowlist((*tokens, *allow_header))
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--allow-header") from None
        options = PlatformOptions(
            make_container,
            authorizer,
            replace(LIMITS, idle_seconds=idle_timeout, lifetime_seconds=max_lifetime),
            allowed,
            path,
            freezes=not no_freeze,
        )
        return asyncio.run(serve_platform(options, listener))


@click.command()
@container_options
@click.option(
    "--prompt",
    help="The message of each run, best one that takes a second.  [default: hello; wait 1 for the offline model]",
)
def check(
    agent: str | None,
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    path: str,
    prompt: str | None,
) -> int:
    """Report which rules of AgentCore's AG-UI contract a container keeps. The status is 1 if one is broken."""
    log_decisions()
    make_container = container_factory(agent, command, env)
    prompt = prompt or (DEFAULT_PROMPT if agent or command else own_prompt())
    findings = asyncio.run(check_container(make_container, path=path, prompt=prompt))
    click.echo(report(findings, agent or shlex.join(command) or "agui serve"))
    return 1 if findings.broken else 0


def own_prompt() -> str:
    """Return a prompt for the agent of the settings: the offline model runs for as long as it says."""
    settings = own_settings()
    return OFFLINE_PROMPT if (settings.agent, settings.model) == (ASSISTANT, "offline") else DEFAULT_PROMPT


def own_settings() -> Settings:
    try:
        return load_settings()
    except SettingsError as error:
        raise CommandFailed(f"cannot start: {error}") from None


async def serve_platform(options: PlatformOptions, listener: socket.socket) -> int:
    """Serve until SIGINT or SIGTERM."""
    server = uvicorn.Server(server_config(build_platform(options)))
    address = url_of(*listener.getsockname()[:2])
    logger.info("platform listens: %s", address)
    logger.info("%s leads agui chat ARN and SDKs here", f"AWS_ENDPOINT_URL_BEDROCK_AGENTCORE={address}")
    await server.serve([listener])
    return 0 if server.started else 1


def url_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def log_decisions() -> None:
    """Log each decision as one line on standard error, and of uvicorn only what is wrong."""
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO, stream=sys.stderr)
    for name in ("httpx", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(without_refusals)


# --- from options to parts --------------------------------------------------------------------------------------------


def container_factory(agent: str | None, command: Sequence[str], env: Mapping[str, str]) -> ContainerFactory:
    if agent and command:
        raise click.UsageError("Name one of MODULE:ATTRIBUTE and --command.")
    if command:
        return lambda: ProcessContainer(command, env)
    words = [sys.executable, "-m", "agui_container", "serve", *([agent] if agent else [])]
    own = {**IMAGE_ENVIRONMENT, **env}
    return lambda: ProcessContainer(words, own)


def make_authorizer(auth: str) -> inbound.InboundAuthorizer:
    if auth == "jwt":
        settings = own_settings().model_copy(update={"auth": Auth.JWT})
        try:
            check_auth(settings)
            return inbound.JwtAuthorizer(settings)
        except SettingsError as error:
            raise CommandFailed(f"cannot start: {error}") from None
    if auth == "none":
        return inbound.NoAuthorizer()
    credentials = Session().get_credentials()
    if credentials is not None:
        return inbound.SigV4Authorizer(credentials.access_key, credentials.secret_key)
    logger.info("no AWS credentials in the environment: sign with the access key %r and the secret key %r", *LOCAL_KEY)
    return inbound.SigV4Authorizer(*LOCAL_KEY)
