"""Requirements of a project: why an environment elsewhere could not install what they name of our packages.

Rule: no index has our packages, and whoever registers a free name is installed in their place. So a requirement names
the file of a wheel, a repository, or an index of the user's own that replaces the public one.
"""

import re
from collections.abc import Callable, Iterator, Mapping

REQUIREMENTS = "requirements.txt"

BARE_NAME = re.compile(r"(?<![\w./=-])agui[-_.]+(?:container|client)(?:\[[^\]]*\])?(?![\w.\[-])(?!\s*@)", re.IGNORECASE)
"""One of our packages by its name, which pip looks up in its index."""

SERVER = re.compile(r"(?<![\w.-])agui[-_.]+container(?![-_]?[a-z])", re.IGNORECASE)
CLIENT = re.compile(r"(?<![\w.-])agui[-_.]+client(?![-_]?[a-z])", re.IGNORECASE)
WHEEL_PATH = re.compile(r"(?<![\w/:.-])(?:\./)?((?:[\w.-]+/)*agui_(?:container|client)-[\w.+-]+\.whl)", re.IGNORECASE)
OWN_INDEX = re.compile(
    r"""(?<!\S)(?:-i\s+["']?(?:https?:|\$)|--(?:index-url|default-index|no-index)\b)"""
    r"|\b(?:PIP|UV)_(?:INDEX_URL|DEFAULT_INDEX|NO_INDEX)\b"
)
INSTALLATION = re.compile(r"^[ \t]*(?:RUN\b.*\binstall\b|(?:ENV|ARG)\s+(?:PIP|UV)_).*$", re.MULTILINE | re.IGNORECASE)
COMMENT = re.compile(r"(^|\s)#.*", re.MULTILINE)


def find_faults(texts: Mapping[str, str], is_file: Callable[[str], bool]) -> Iterator[str]:
    """Yield sentences for the operator.

    Args:
        texts: ``REQUIREMENTS`` and a Dockerfile, by the names of their files.
        is_file: knows the files of the project by their paths.
    """
    texts = {file: COMMENT.sub("", text) for file, text in texts.items()}
    texts = {file: text if file == REQUIREMENTS else _installations(text) for file, text in texts.items()}
    everything = "\n".join(texts.values())
    has_own_index = OWN_INDEX.search(everything) is not None
    for file, text in texts.items():
        bare = BARE_NAME.search(text)
        if bare and not has_own_index:
            advice = "Name the file of a wheel instead, as a project of `agui init` does."
            yield f"{file} names {bare[0]}, which is on no index. {advice}"
        for path in WHEEL_PATH.findall(text):
            if not is_file(path):
                yield f"{file} names {path}, which is not there. Copy it from a project of `agui init`."
    if SERVER.search(everything) and not CLIENT.search(everything) and not has_own_index:
        yield "agui-container is named without agui-client, which it needs and no index has. Name the wheels of both."


def _installations(dockerfile: str) -> str:
    return "\n".join(INSTALLATION.findall(dockerfile.replace("\\\n", "")))
