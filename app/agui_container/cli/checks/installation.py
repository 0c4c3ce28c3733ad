"""Check of the requirements of the working folder: an empty environment elsewhere can install them.

Rule: nothing is installed. pip resolves the requirements as if this environment had no package, and says what is wrong.
"""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from pathlib import Path

from agui_container.aws.deploy.requirements import REQUIREMENTS, RequirementError, check_requirements
from agui_container.aws.deploy.wheels import last_line
from agui_container.cli.checks.finding import CheckStatus, Finding
from agui_container.imports import is_installed
from agui_container.settings import Settings

NAME = "install"
DRY_RUN = ("install", "--dry-run", "--ignore-installed", "--quiet", "--no-input", "--retries=0", "-r", REQUIREMENTS)


async def check_installation(_: Settings) -> Sequence[Finding]:
    """Resolve the requirements of the working folder. Raises ``OSError``."""
    try:
        check_folder(Path())
    except FileNotFoundError:
        return [Finding(NAME, CheckStatus.SKIPPED, f"there is no {REQUIREMENTS}")]
    except RequirementError as error:
        return [Finding(NAME, CheckStatus.FAILED, str(error), "Whoever installs this elsewhere would not get it.")]
    if not is_installed("pip"):
        return [Finding(NAME, CheckStatus.SKIPPED, "this environment has no pip to ask")]
    status, reason = await run_pip()
    if status:
        return [Finding(NAME, CheckStatus.FAILED, f"{REQUIREMENTS}: {reason}", "Correct it, or the index of pip.")]
    return [Finding(NAME, CheckStatus.OK, f"an empty environment can install {REQUIREMENTS}")]


def check_folder(folder: Path) -> None:
    """Check what the requirements of a folder name. Raises ``RequirementError`` and ``OSError``."""
    text = (folder / REQUIREMENTS).read_text(encoding="utf-8")
    check_requirements(text, REQUIREMENTS, lambda path: (folder / path).is_file())


async def run_pip() -> tuple[int, str]:
    """Return the status of pip and its last line."""
    pip = await asyncio.create_subprocess_exec(sys.executable, "-I", "-m", "pip", *DRY_RUN, stdout=PIPE, stderr=PIPE)
    try:
        _, errors = await pip.communicate()
    finally:
        if pip.returncode is None:
            pip.kill()
            await pip.wait()
    return pip.returncode or 0, last_line(errors.decode(errors="replace"))
