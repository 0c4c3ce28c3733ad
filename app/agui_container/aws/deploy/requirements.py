"""Requirements of a project: whether an environment elsewhere can install what they say of our packages.

Rule: no index has our packages, and whoever registers a free name is installed in their place. So a requirement names
the file of a wheel, a repository, or an index of the user's own that replaces the public one.
"""

import re
from collections.abc import Callable

REQUIREMENTS = "requirements.txt"

BARE_NAME = re.compile(r"(?<![\w./=-])agui[-_.]+(?:container|client)(?:\[[^\]]*\])?(?![\w.\[-])(?!\s*@)", re.IGNORECASE)
"""One of our packages by its name, which pip looks up in its index."""

WHEEL_PATH = re.compile(r"(?<![\w/:.-])(?:\./)?((?:[\w.-]+/)*agui_(?:container|client)-[\w.+-]+\.whl)", re.IGNORECASE)
OWN_INDEX = re.compile(r"(?:^|\s)(?:-i|--index-url|--no-index)\b", re.MULTILINE)
INSTALLATION = re.compile(r"^[ \t]*RUN\b.*\binstall\b.*$", re.MULTILINE | re.IGNORECASE)


class RequirementError(Exception):
    """An environment elsewhere cannot install what a file names. The message is for the operator."""


def check_requirements(text: str, file: str, is_file: Callable[[str], bool]) -> None:
    """Check what a file of requirements names. ``is_file`` knows the files beside it. Raises ``RequirementError``."""
    lines = without_comments(text)
    bare = BARE_NAME.search(lines)
    if bare and not OWN_INDEX.search(lines):
        advice = "Name the file of a wheel instead, as a project of `agui init` does."
        raise RequirementError(f"{file} names {bare[0]}, which is on no index. {advice}")
    for path in WHEEL_PATH.findall(lines):
        if not is_file(path):
            advice = "`agui init` makes a project that has its wheels; copy them from one."
            raise RequirementError(f"{file} names {path}, which is not there. {advice}")


def installations(dockerfile: str) -> str:
    """Return the instructions of a Dockerfile that install packages."""
    return "\n".join(INSTALLATION.findall(without_comments(dockerfile).replace("\\\n", "")))


def is_required(package: str, text: str) -> bool:
    name = package.replace("-", "[-_.]")
    return re.search(rf"(?<![\w.-]){name}(?![-_]?[a-z])", without_comments(text), re.IGNORECASE) is not None


def without_comments(text: str) -> str:
    return re.sub(r"(^|\s)#.*", "", text, flags=re.MULTILINE)
