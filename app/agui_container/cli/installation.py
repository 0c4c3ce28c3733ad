"""Checks of the environment: Python, packages, and the requirements of the working folder.

Rule: nothing is installed. pip says what is wrong with the packages of this environment, and resolves the requirements
as if it had none.
"""

import asyncio
import platform
import sys
from asyncio.subprocess import PIPE
from importlib.metadata import distributions
from pathlib import Path

from agui_container.aws.deploy.requirements import REQUIREMENTS, check_requirements
from agui_container.aws.deploy.wheels import last_line
from agui_container.cli.checks import Finding, Findings, failed, ok, skipped
from agui_container.imports import is_installed
from agui_container.settings import Settings

SHOWN_PACKAGES = (
    *("agui-container", "ag-ui-protocol", "fastapi", "uvicorn", "pydantic", "mcp", "boto3", "strands-agents"),
    *("ag-ui-strands", "langgraph", "ag-ui-langgraph", "pydantic-ai-slim"),
)

PIP = (sys.executable, "-P", "-m", "pip")
DRY_RUN = ("install", "--dry-run", "--ignore-installed", "--quiet", "--no-input", "--retries=0", "-r", REQUIREMENTS)


def check_python() -> Finding:
    place = sys.prefix if sys.prefix != sys.base_prefix else "no virtual environment"
    return ok("python", f"{platform.python_version()} on {platform.machine()}, {place}")


def check_packages() -> Finding:
    installed = {each.name: each.version for each in distributions()}
    return ok("packages", ", ".join(f"{name} {installed[name]}" for name in SHOWN_PACKAGES if name in installed))


async def check_installation(_: Settings) -> Findings:
    """Let pip compare what is installed with what our packages need, and resolve the requirements of the folder."""
    if not is_installed("pip"):
        yield skipped("install", "this environment has no pip to ask")
        return
    printed = (await run_pip("check"))[1]
    if faults := [line for line in printed.splitlines() if line.startswith(("agui-container ", "agui-client "))]:
        advice = "Install its wheel again. In a project: pip install --force-reinstall -r requirements.txt."
        yield failed("install", " ".join(faults), advice)
    file = Path(REQUIREMENTS)
    if not file.exists():  # noqa: ASYNC240 - it is a file of this machine
        yield skipped("install", f"there is no {REQUIREMENTS}")
        return
    check_requirements(file.read_text(encoding="utf-8"), REQUIREMENTS, lambda path: Path(path).is_file())  # noqa: ASYNC240
    status, _printed, errors = await run_pip(*DRY_RUN)
    if status:
        yield failed("install", f"{REQUIREMENTS}: {last_line(errors)}", "Correct it, or the index of pip.")
    else:
        yield ok("install", f"an empty environment can install {REQUIREMENTS}")


async def run_pip(*arguments: str) -> tuple[int | None, str, str]:
    """Run pip, and return its exit status, its output and its errors."""
    pip = await asyncio.create_subprocess_exec(*PIP, *arguments, stdout=PIPE, stderr=PIPE)
    try:
        output, errors = await pip.communicate()
    finally:
        if pip.returncode is None:
            pip.kill()
            await pip.wait()
    return pip.returncode, output.decode(errors="replace"), errors.decode(errors="replace")
