"""``agui doctor``: check what an agent needs, and say what to do about each fault.

Rule: no check changes anything. No secret is printed.
"""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path

import click
import msgspec
from pydantic import SecretStr

from agui_container.agents.as_agent import AgentLoadError
from agui_container.aws.deploy.requirements import REQUIREMENTS
from agui_container.cli.checks.finding import Check, CheckStatus, Finding
from agui_container.cli.checks.installation import check_installation
from agui_container.cli.checks.machine import check_clock, check_packages, check_port, check_python
from agui_container.cli.checks.providers import check_aws, check_mcp_servers, check_models
from agui_container.cli.checks.storage import check_bus, check_store
from agui_container.cli.config import MASK
from agui_container.cli.options import agent_argument, config_option
from agui_container.cli.serve import make_current_folder_importable
from agui_container.main import build_app
from agui_container.runtime.log_values import mask_passwords
from agui_container.settings import MissingExtra, Settings, SettingsError
from agui_container.settings_sources import load_with_origins
from agui_container.tools.loader import ToolLoadError

CHECK_SECONDS = 120.0
"""Limit of one check."""

INSTALL = f"Install what is missing: pip install -r {REQUIREMENTS}"

COLOURS = {CheckStatus.OK: "green", CheckStatus.WARNING: "yellow", CheckStatus.FAILED: "red", CheckStatus.SKIPPED: None}


async def check_agent(settings: Settings) -> Sequence[Finding]:
    """Load the agent, its tools and all other settings, as a start does. Raises as ``build_app``."""
    with redirect_stdout(sys.stderr):  # an agent may print while it is imported
        build_app(settings)
    return [Finding("agent", CheckStatus.OK, f"{', '.join(settings.agent_references)} can be served")]


CHECKS: Mapping[str, Check] = {
    "agent": check_agent,
    "port": check_port,
    "store": check_store,
    "bus": check_bus,
    "aws": check_aws,
    "model": check_models,
    "mcp": check_mcp_servers,
    "clock": check_clock,
    "install": check_installation,
}
"""Checks that need settings, in the order of the report."""


@click.command()
@agent_argument
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with all findings.")
def doctor(agent: str | None, config: Path | None, *, as_json: bool) -> int:
    """Check Python, packages, settings, agent, port, store, bus, AWS, models, MCP servers, the clock, requirements.

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


async def examine(agent: str | None, config: Path | None) -> AsyncIterator[Finding]:
    """Yield the findings of all checks. Without settings, there are no others than those of the machine."""
    yield check_python()
    yield check_packages()
    try:
        settings, origins = load_with_origins(config)
    except SettingsError as error:
        yield Finding("settings", CheckStatus.FAILED, str(error), "Correct it there. `agui config` shows all settings.")
        return
    settings = settings.model_copy(update={"agent": agent} if agent else {})
    named = [f"{name} ({origin})" for name, origin in origins.items() if origin != "default"]
    yield Finding("settings", CheckStatus.OK, ", ".join(named) or "the defaults")
    for name, check in CHECKS.items():
        for finding in await run_check(name, check, settings):
            yield without_secrets(finding, settings)


async def run_check(name: str, check: Check, settings: Settings) -> Sequence[Finding]:
    """Return the findings of a check. An exception and the timeout are findings, so that the others still run."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check(settings)
    except TimeoutError:
        return [Finding(name, CheckStatus.FAILED, f"no answer within {CHECK_SECONDS:g} seconds", "Check the network.")]
    except (SettingsError, AgentLoadError, ToolLoadError) as error:
        return [Finding(name, CheckStatus.FAILED, str(error), advice_for_start(error))]
    except Exception as error:  # noqa: BLE001 - the other checks still have something to say
        return [Finding(name, CheckStatus.FAILED, f"{type(error).__name__}: {error}", "See the reason.")]


def advice_for_start(error: BaseException) -> str:
    """Return what to do about an error that would stop the start, by its causes."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MissingExtra | ModuleNotFoundError):
            return INSTALL if Path(REQUIREMENTS).is_file() else "Install the package that is missing."
        cause = cause.__cause__
    return "Correct this setting or the code that it names."


def without_secrets(finding: Finding, settings: Settings) -> Finding:
    """Return a finding without passwords of URLs and secret settings, which texts of others may repeat."""
    detail = mask_passwords(finding.detail)
    for name in Settings.model_fields:
        value = getattr(settings, name)
        secret = value.get_secret_value() if isinstance(value, SecretStr) else ""
        if secret and name.endswith("key"):
            detail = detail.replace(secret, MASK)
    return msgspec.structs.replace(finding, detail=detail)
