"""Checks of this machine: Python, packages, the port and the clock."""

import os
import platform
import re
import socket
import sys
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, requires, version

import httpx

from agui_container.cli.checks.finding import CheckStatus, Finding
from agui_container.settings import Auth, Settings

PACKAGE = "agui-container"
SHOWN_PACKAGES = (PACKAGE, "ag-ui-protocol", "fastapi", "uvicorn", "pydantic", "mcp", "boto3")
FRAMEWORK_PACKAGES = ("strands-agents", "ag-ui-strands", "langgraph", "ag-ui-langgraph", "pydantic-ai-slim")

REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?(?P<bounds>[^;]*)(;(?P<marker>.*))?")
BOUND = re.compile(r"(>=|<)\s*([0-9.]+)")

HTTP_SECONDS = 5.0
SKEW_WARNING_SECONDS = 30.0
SKEW_FAILURE_SECONDS = 60.0
"""Difference of clocks at which tokens are refused. AWS refuses requests from 300 seconds on."""


def check_python() -> Finding:
    """Show the version of Python and its environment. A version that is too old cannot import this package."""
    place = sys.prefix if sys.prefix != sys.base_prefix else "no virtual environment"
    return Finding("python", CheckStatus.OK, f"{platform.python_version()} on {platform.machine()}, {place}")


def check_packages() -> Finding:
    """Check that all packages that this one needs are installed in versions that fit."""
    shown = ", ".join(f"{name} {found}" for name in SHOWN_PACKAGES + FRAMEWORK_PACKAGES if (found := installed(name)))
    try:
        needed = requires(PACKAGE) or []
    except PackageNotFoundError:  # the image has the package as a folder
        return Finding("packages", CheckStatus.OK, shown)
    faults = [fault for line in needed if (fault := fault_of(line))]
    if faults:
        advice = "Install its wheel again. In a project: pip install --force-reinstall -r requirements.txt."
        return Finding("packages", CheckStatus.FAILED, "; ".join(faults), advice)
    return Finding("packages", CheckStatus.OK, shown)


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def fault_of(requirement: str) -> str | None:
    """Return the fault of a requirement: the package is missing or does not fit. Extras and markers are left out."""
    found = REQUIREMENT.match(requirement)
    if found is None or found["marker"]:
        return None
    name, present = found["name"], installed(found["name"])
    if present is None:
        return f"{name} is missing"
    for operator, bound in BOUND.findall(found["bounds"]):
        if (release(present) >= release(bound)) is not (operator == ">="):
            return f"{name} is {present}, and {operator}{bound} is needed"
    return None


def release(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparison."""
    numbers = re.match(r"[0-9.]+", text)
    parts = [int(part) for part in numbers[0].split(".") if part] if numbers else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


async def check_port(settings: Settings) -> Sequence[Finding]:
    """Check that the server can listen, or that one answers already."""
    host, port = settings.host, settings.port
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family):
            return [Finding("port", CheckStatus.OK, f"{host}:{port} is free")]
    except OSError as error:
        if answer := await ping(host, port):
            return [Finding("port", CheckStatus.OK, f"a server answers on {host}:{port}: {answer}")]
        reason = str(error.strerror).partition(" (while ")[0]
        advice = "Stop the program that listens there, or set AGUI_PORT and AGUI_HOST to an address of this machine."
        return [Finding("port", CheckStatus.FAILED, f"{host}:{port}: {reason}", advice)]


async def ping(host: str, port: int) -> str | None:
    """Return the status of the AG-UI server on a port, or None if there is none."""
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    try:
        async with httpx.AsyncClient(timeout=HTTP_SECONDS, trust_env=False) as client:
            body: object = (await client.get(f"http://{name}:{port}/ping")).json()
    except (httpx.HTTPError, ValueError):
        return None
    return str(body["status"]) if isinstance(body, dict) and "status" in body else None


async def check_clock(settings: Settings) -> Sequence[Finding]:
    """Compare the clock with the ``Date`` of a server that the settings name."""
    url = clock_server(settings)
    if url is None:
        return [Finding("clock", CheckStatus.SKIPPED, "the settings name no server to compare it with")]
    try:
        async with httpx.AsyncClient(timeout=HTTP_SECONDS) as client:
            answer = await client.head(url)
        theirs = parsedate_to_datetime(answer.headers["date"]).timestamp()
    except (httpx.HTTPError, KeyError, ValueError):
        return [Finding("clock", CheckStatus.SKIPPED, f"{httpx.URL(url).host} does not tell its time")]
    skew = abs(time.time() - theirs)
    detail = f"{skew:.0f} seconds from {httpx.URL(url).host}"
    advice = "Synchronize the clock of this machine (NTP): tokens and AWS signatures are refused."
    if skew > SKEW_FAILURE_SECONDS:
        return [Finding("clock", CheckStatus.FAILED, detail, advice)]
    if skew > SKEW_WARNING_SECONDS:
        return [Finding("clock", CheckStatus.WARNING, detail, advice)]
    return [Finding("clock", CheckStatus.OK, detail)]


def clock_server(settings: Settings) -> str | None:
    """Return the URL of a server whose time matters: the issuer of tokens, AWS, or the model's."""
    if settings.auth is Auth.JWT:
        return settings.auth_discovery_url
    if uses_aws(settings):
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        return os.environ.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{region}.amazonaws.com"
    uses_openai = any("openai:" in model for model in (settings.model, *settings.models))
    return settings.openai_base_url if uses_openai else None


def uses_aws(settings: Settings) -> bool:
    """Return True if a setting names a service of AWS."""
    models = (settings.model, *settings.models)
    return any("bedrock:" in each for each in models) or settings.store.get_secret_value().startswith("agentcore-")
