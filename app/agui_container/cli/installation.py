"""Checks of the environment: Python, packages, and the requirements of the working folder.

Rule: nothing is installed. pip resolves the requirements as if this environment had no package, and says what is wrong.
"""

import asyncio
import platform
import re
import sys
from asyncio.subprocess import PIPE
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from agui_container.aws.deploy.requirements import REQUIREMENTS, check_requirements
from agui_container.aws.deploy.wheels import last_line
from agui_container.cli.checks import Finding, Findings, failed, ok, skipped
from agui_container.imports import is_installed
from agui_container.settings import Settings

PACKAGE = "agui-container"
SHOWN_PACKAGES = (PACKAGE, "ag-ui-protocol", "fastapi", "uvicorn", "pydantic", "mcp", "boto3")
FRAMEWORK_PACKAGES = ("strands-agents", "ag-ui-strands", "langgraph", "ag-ui-langgraph", "pydantic-ai-slim")

REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?(?P<bounds>[^;]*)(;(?P<marker>.*))?")
BOUND = re.compile(r"(>=|<)\s*([0-9.]+)")

DRY_RUN = ("install", "--dry-run", "--ignore-installed", "--quiet", "--no-input", "--retries=0", "-r", REQUIREMENTS)


def check_python() -> Finding:
    place = sys.prefix if sys.prefix != sys.base_prefix else "no virtual environment"
    return ok("python", f"{platform.python_version()} on {platform.machine()}, {place}")


def check_packages() -> Finding:
    shown = ", ".join(f"{name} {found}" for name in SHOWN_PACKAGES + FRAMEWORK_PACKAGES if (found := installed(name)))
    try:
        needed = requires(PACKAGE) or []
    except PackageNotFoundError:  # the image has the package as a folder
        return ok("packages", shown)
    if faults := "; ".join(filter(None, map(fault_of, needed))):
        advice = "Install its wheel again. In a project: pip install --force-reinstall -r requirements.txt."
        return failed("packages", faults, advice)
    return ok("packages", shown)


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


def release(text: str) -> list[int]:
    """Return the numbers of a version, for comparison. A missing one is 0."""
    numbers = re.match(r"[0-9.]*", text)
    return [*map(int, re.findall(r"[0-9]+", numbers[0] if numbers else "")), 0, 0, 0][:4]


async def check_installation(_: Settings) -> Findings:
    """Let pip resolve the requirements of the working folder."""
    file = Path(REQUIREMENTS)
    if not file.exists():  # noqa: ASYNC240 - it is a file of this machine
        yield skipped("install", f"there is no {REQUIREMENTS}")
        return
    check_requirements(file.read_text(encoding="utf-8"), REQUIREMENTS, lambda path: Path(path).is_file())  # noqa: ASYNC240
    if not is_installed("pip"):
        yield skipped("install", "this environment has no pip to ask")
        return
    pip = await asyncio.create_subprocess_exec(sys.executable, "-I", "-m", "pip", *DRY_RUN, stdout=PIPE, stderr=PIPE)
    try:
        errors = (await pip.communicate())[1]
    finally:
        if pip.returncode is None:
            pip.kill()
            await pip.wait()
    if pip.returncode:
        reason = last_line(errors.decode(errors="replace"))
        yield failed("install", f"{REQUIREMENTS}: {reason}", "Correct it, or the index of pip.")
    else:
        yield ok("install", f"an empty environment can install {REQUIREMENTS}")
