"""``agui doctor``: check what an agent needs, and say what to do about each fault.

Rule: no check changes anything. No secret is printed.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import distributions
from pathlib import Path
from platform import machine, python_version

import click
import msgspec
from pydantic import SecretStr

from agui_container.aws.deploy.requirements import REQUIREMENTS
from agui_container.cli import checks
from agui_container.cli.checks import CheckStatus, Finding, Findings, failed, ok
from agui_container.cli.config import MASK
from agui_container.cli.options import agent_argument, config_option
from agui_container.cli.serve import make_current_folder_importable
from agui_container.log_values import mask_passwords
from agui_container.settings import MissingExtra, Settings, SettingsError, with_agent
from agui_container.settings_sources import load_with_origins

CHECK_SECONDS = 300.0
"""Limit of one check. On a busy machine pip takes minutes to resolve what a project requires."""

INSTALL = f"Install what is missing: in a project, pip install -r {REQUIREMENTS}"

SHOWN_PACKAGES = (
    *("agui-container", "ag-ui-protocol", "fastapi", "uvicorn", "pydantic", "mcp", "boto3", "strands-agents"),
    *("ag-ui-strands", "langgraph", "ag-ui-langgraph", "pydantic-ai-slim"),
)

COLOURS = {CheckStatus.OK: "green", CheckStatus.WARNING: "yellow", CheckStatus.FAILED: "red", CheckStatus.SKIPPED: None}

Check = Callable[[Settings], Findings]

CHECKS: Mapping[str, Check] = {
    "agent": checks.check_agent,
    "store": checks.check_store,
    "files": checks.check_files,
    "bus": checks.check_bus,
    "auth": checks.check_issuer,
    "model": checks.check_models,
    "mcp": checks.check_mcp_servers,
    "install": checks.check_installation,
}
"""Checks of the project and of what its settings name, in the order of the report."""


@click.command()
@agent_argument
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all findings.")
def doctor(agent: str | None, config: Path | None, *, as_json: bool) -> int:
    """Check Python, packages, settings, the agent, what it reaches, and requirements.

    Reached are its store, files, bus, issuer of tokens, models and MCP servers.
    Each model is asked for one token. The exit status is 1 if a check failed, and else 0.
    """
    make_current_folder_importable()
    logging.disable(logging.ERROR)  # what the checks meet is in their findings
    try:
        return asyncio.run(report(agent, config, as_json=as_json))
    finally:
        logging.disable(logging.NOTSET)


async def report(agent: str | None, config: Path | None, *, as_json: bool) -> int:
    """Run all checks, print each finding when it is there, and return the exit status."""
    findings = []
    async for finding in examine(agent, config):
        findings.append(finding)
        if not as_json:
            show(finding)
    has_failed = any(finding.status is CheckStatus.FAILED for finding in findings)
    if as_json:
        click.echo(json.dumps({"ok": not has_failed, "checks": msgspec.to_builtins(findings)}, indent=2))
    return 1 if has_failed else 0


def show(finding: Finding) -> None:
    """Print a finding, and its advice in a line of its own."""
    status = click.style(f"{finding.status:8}", fg=COLOURS[finding.status], dim=finding.status is CheckStatus.SKIPPED)
    click.echo(f"{status} {finding.name:13} {finding.detail}")
    if finding.advice:
        click.echo(f"{'':22} {click.style(f'-> {finding.advice}', bold=True)}")


async def examine(agent: str | None, config: Path | None) -> Findings:
    """Yield the findings of all checks. Without settings, there are no others than those of the machine."""
    yield check_python()
    yield check_packages()
    try:
        settings, origins = load_with_origins(config)
    except SettingsError as error:
        yield failed("settings", str(error), "Correct it there. `agui config` shows all settings.")
        return
    settings = with_agent(settings, agent) if agent else settings
    named = [f"{name} ({origin})" for name, origin in origins.items() if origin != "default"]
    yield ok("settings", ", ".join(named) or "the defaults")
    for name, check in CHECKS.items():
        async for finding in run_check(name, check, settings):
            yield without_secrets(finding, settings)


def check_python() -> Finding:
    place = sys.prefix if sys.prefix != sys.base_prefix else "no virtual environment"
    return ok("python", f"{python_version()} on {machine()}, {place}")


def check_packages() -> Finding:
    installed = {each.name: each.version for each in distributions()}
    return ok("packages", ", ".join(f"{name} {installed[name]}" for name in SHOWN_PACKAGES if name in installed))


async def run_check(name: str, check: Check, settings: Settings) -> Findings:
    """Yield the findings of a check. An exception and the timeout are findings, so that the others still run."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            async for finding in check(settings):
                yield finding
    except TimeoutError:
        yield failed(name, f"no answer within {CHECK_SECONDS:g} seconds", "Check the network.")
    except Exception as error:  # noqa: BLE001 - the other checks still have something to say
        is_sentence = type(error).__module__.startswith("agui_")  # others need their type to be understood
        detail = str(error) if is_sentence else f"{type(error).__name__}: {error}"
        yield failed(name, detail, INSTALL if lacks_package(error) else "")


def lacks_package(error: BaseException | None) -> bool:
    """Return True if a package that is not installed is the cause of an error."""
    return error is not None and (
        isinstance(error, MissingExtra | ModuleNotFoundError) or lacks_package(error.__cause__)
    )


def without_secrets(finding: Finding, settings: Settings) -> Finding:
    """Return a finding without passwords of URLs and secret settings, which texts of others may repeat."""
    detail = mask_passwords(finding.detail)
    for name in Settings.model_fields:
        value = getattr(settings, name)
        secret = value.get_secret_value() if isinstance(value, SecretStr) else ""
        if secret and name.endswith("key"):
            detail = detail.replace(secret, MASK)
    return msgspec.structs.replace(finding, detail=detail)
