"""The command ``agui platform``: run the platform around a container, or check a container against the contract.

Rule: this module only reads arguments. A wrong one ends the command with status 2 and one line.
"""

import argparse
import asyncio
import logging
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from boto3.session import Session  # type: ignore[import-untyped]

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
from agui_container.platform.serving import make_server
from agui_container.platform.snapshot import ForkedContainer, WarmedProcess

IMAGE_ENVIRONMENT: Mapping[str, str] = {"AGUI_CONSOLE": "off", "AGUI_ERROR_STATUS": "stream", "AGUI_ROBOTO": "off"}
"""Settings of this project's image, for a server that is started without one. Variables of ``--env`` win."""

LOCAL_KEY = ("local", "local")
"""Access key and secret key, where the environment of boto3 has none."""

ARN = "arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/local"

logger = logging.getLogger(__name__)


class ArgumentProblem(Exception):
    """An argument that cannot be used. The text is the line to show."""


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    given = parse_arguments(arguments)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO, stream=sys.stderr)
    for name in ("httpx", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # Answers that are cut, and sockets that are refused, are the platform's own decisions, and are logged as such.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "without completing" not in record.msg)
    try:
        if given.command_name == "check":
            return asyncio.run(run_check(given))
        return asyncio.run(run_platform(given))
    except ArgumentProblem as problem:
        print(f"agui platform: {problem}", file=sys.stderr)  # noqa: T201 - the line for the person who has called
        return 2


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments. ``check`` as the first one asks for the conformance run."""
    is_check = arguments[:1] == ["check"]
    parser = argparse.ArgumentParser(
        prog="agui platform check" if is_check else "agui platform",
        description=CHECK_HELP if is_check else PLATFORM_HELP,
    )
    parser.set_defaults(command_name="check" if is_check else "platform")
    add_container_arguments(parser)
    if is_check:
        parser.add_argument(
            "--prompt", default=DEFAULT_PROMPT, help="the user message of each run; one that takes a second shows most"
        )
        parser.add_argument("--form", choices=REPORTS, default="words", help="form of the report on standard output")
        parser.add_argument("--junit", type=Path, metavar="FILE", help="also write the report as JUnit XML")
        return parser.parse_args(arguments[1:])
    add_platform_arguments(parser)
    return parser.parse_args(arguments)


PLATFORM_HELP = "A local data plane of Bedrock AgentCore Runtime: one process per session of your container."
CHECK_HELP = "Check a container against the AG-UI contract of AgentCore. The exit status is 1 if a rule is broken."


def add_container_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the container."""
    parser.add_argument("agent", nargs="?", metavar="module:attribute", help="an agent for this project's own server")
    parser.add_argument("--command", help="a command that starts a container; it gets PORT, AGUI_PORT and {port}")
    parser.add_argument("--image", help="an image that docker runs; it listens on 8080")
    parser.add_argument("--snapshot", action="store_true", help="fork each session from one warmed process")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a variable of the container")
    parser.add_argument("--path", default="/invocations", help="protocolConfiguration.path")


def add_platform_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the runtime and of the platform around it."""
    limits = PlatformLimits()
    parser.add_argument("--host", default="127.0.0.1", help="address of the data plane")
    parser.add_argument("--port", type=int, default=8100, help="port of the data plane")
    parser.add_argument("--auth", choices=("sigv4", "none"), default="sigv4", help="who may call")
    parser.add_argument(
        "--authorizer", metavar="JSON", help='{"customJWTAuthorizer": {"discoveryUrl": …}}, in place of --auth'
    )
    parser.add_argument("--allow-header", action="append", default=[], metavar="NAME", help="requestHeaderAllowlist")
    parser.add_argument(
        "--idle-timeout", type=float, default=limits.idle_seconds, help="idleRuntimeSessionTimeout in s"
    )
    parser.add_argument("--max-lifetime", type=float, default=limits.lifetime_seconds, help="maxLifetime in s")
    parser.add_argument("--max-sessions", type=int, default=limits.sessions, help="the quota maxVms")
    parser.add_argument("--time-factor", type=float, default=1.0, help="seconds of the platform in a real one")
    parser.add_argument("--no-freeze", action="store_true", help="leave idle containers running, for a debugger")
    parser.add_argument("--strict", action="store_true", help="answer no request after the container has broken a rule")


async def run_platform(given: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM. With ``--strict`` the exit status is 1 if a rule was broken."""
    warmed = make_warmed(given)
    options = platform_options(given, make_factory(given, warmed))
    app = build_platform(options)
    plane: DataPlane = app.state.plane
    server = make_server(app, options.limits, given.host, given.port)
    logger.info("platform: http://%s:%s/_platform shows sessions; the runtime is %s", given.host, given.port, ARN)
    await server.serve()
    if warmed is not None:
        await warmed.aclose()
    if given.strict and plane.findings.broken():
        print(REPORTS["words"](plane.findings, target_of(given)), file=sys.stderr)  # noqa: T201
        return 1
    return 0 if server.started else 1


async def run_check(given: argparse.Namespace) -> int:
    """Check the container and print the report."""
    warmed = make_warmed(given)
    image = given.image
    findings = await check_container(make_factory(given, warmed), path=given.path, prompt=given.prompt, image=image)
    if warmed is not None:
        await warmed.aclose()
    print(REPORTS[given.form](findings, target_of(given)))  # noqa: T201 - the report
    if given.junit is not None:
        given.junit.write_text(REPORTS["junit"](findings, target_of(given)))
    return 1 if findings.broken() else 0


# --- from arguments to parts ------------------------------------------------------------------------------------------


def platform_options(given: argparse.Namespace, make_container: ContainerFactory) -> PlatformOptions:
    """Return the configuration that the arguments describe. Raises ``ArgumentProblem``."""
    if given.time_factor <= 0:
        raise ArgumentProblem("--time-factor must be greater than 0")
    if given.max_lifetime < given.idle_timeout:
        raise ArgumentProblem("--max-lifetime must not be less than --idle-timeout")
    try:
        allowed = check_allowlist(given.allow_header)
    except ValueError as error:
        raise ArgumentProblem(f"--allow-header: {error}") from None
    limits = replace(
        PlatformLimits(),
        idle_seconds=given.idle_timeout,
        lifetime_seconds=given.max_lifetime,
        sessions=given.max_sessions,
    )
    return PlatformOptions(
        make_container,
        make_authorizer(given),
        limits,
        PlatformClock(given.time_factor),
        allowed,
        given.path,
        freezes=not given.no_freeze,
        is_strict=given.strict,
    )


def make_authorizer(given: argparse.Namespace) -> InboundAuthorizer:
    """Return the authorizer. Raises ``ArgumentProblem``."""
    if given.authorizer is not None:
        try:
            return JwtAuthorizer(parse_configuration(given.authorizer))
        except ValueError as error:
            raise ArgumentProblem(f"--authorizer: {error}") from None
    if given.auth == "none":
        return NoAuthorizer()
    credentials = Session().get_credentials()
    if credentials is not None:
        return SigV4Authorizer(credentials.access_key, credentials.secret_key)
    logger.info(
        "credentials: none in your environment, so use AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s", *LOCAL_KEY
    )
    return SigV4Authorizer(*LOCAL_KEY)


def make_warmed(given: argparse.Namespace) -> WarmedProcess | None:
    """Return the process that is forked, if ``--snapshot`` is given. Raises ``ArgumentProblem``."""
    if not given.snapshot:
        return None
    if given.command or given.image:
        raise ArgumentProblem("--snapshot forks this project's own server, so it takes neither --command nor --image")
    return WarmedProcess(given.agent, {**IMAGE_ENVIRONMENT, **parse_environment(given.env)})


def make_factory(given: argparse.Namespace, warmed: WarmedProcess | None) -> ContainerFactory:
    """Return the function that makes the container of a session. Raises ``ArgumentProblem``."""
    if sum(map(bool, (given.agent, given.command, given.image))) > 1:
        raise ArgumentProblem("name one of module:attribute, --command and --image")
    environment = parse_environment(given.env)
    if given.image:
        return lambda: DockerContainer(given.image, environment)
    if warmed is not None:
        return lambda: ForkedContainer(warmed)
    if given.command:
        command = shlex.split(given.command)
        return lambda: ProcessContainer(command, environment)
    own = [sys.executable, "-m", "agui_container", "serve", *([given.agent] if given.agent else [])]
    return lambda: ProcessContainer(own, {**IMAGE_ENVIRONMENT, **environment})


def parse_environment(entries: Sequence[str]) -> Mapping[str, str]:
    """Return the variables of ``--env``. Raises ``ArgumentProblem``."""
    pairs = [entry.partition("=") for entry in entries]
    if bad := [name for name, equals, _ in pairs if not (name and equals)]:
        raise ArgumentProblem(f"--env {bad[0]}: must be NAME=VALUE")
    return {name: value for name, _, value in pairs}


def target_of(given: argparse.Namespace) -> str:
    """Return the name of the container in reports."""
    return str(given.image or given.command or given.agent or "agui serve")
