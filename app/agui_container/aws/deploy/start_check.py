"""Check of what a start of the server would refuse, before anything is made for it.

Rule: no code of the user is imported, because the packages that it needs may be in the image only.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agui_container.aws.deploy.source import SourceFolder
from agui_container.imports import BadReference, is_installed, split_reference
from agui_container.main import build_app
from agui_container.settings import ASSISTANT, MissingExtra, Settings, SettingsError, check_assistant_settings

WITHOUT_CODE: Mapping[str, object] = {
    "agent": ASSISTANT,
    "agents": (),
    "tools": "",
    "mcp_servers": "[]",
    "grpc": False,
    "metrics": False,
}
"""Settings that import code or start something. The others are checked without them."""

WITHOUT_FILES: Mapping[str, object] = {"skills": "", "context_files": (), "console_logo": ""}
"""Settings that name files. Those of an image that is not built here are in the image only."""


def check_start(settings: Settings, source: SourceFolder | None) -> None:
    """Check the settings as a start does, and that the modules which they name exist. Raises ``SettingsError``.

    Settings that need a package which is not installed here are left to the start itself. ``source`` is the folder of
    the image, or None for an image that exists already.
    """
    references = settings.agent_references.values()
    for reference in (*references, settings.tools):
        if reference not in ("", ASSISTANT):
            _check_reference(reference, source)
    if ASSISTANT not in references:
        check_assistant_settings(settings, takes_tools=True)
    with suppress(MissingExtra):
        build_app(settings.model_copy(update={**WITHOUT_CODE, **({} if source else WITHOUT_FILES)}))


def _check_reference(reference: str, source: SourceFolder | None) -> None:
    try:
        module, attribute = split_reference(reference)
    except BadReference as error:
        raise SettingsError(str(error)) from None
    if source is None:
        return
    file = re.compile(rf"(?:.*/)?{re.escape(module.replace('.', '/'))}(?:\.py|/__init__\.py)")
    found = next((path for path in source.files() if file.fullmatch(path.as_posix())), None)
    if found is None and not is_installed(module.partition(".")[0]):
        raise SettingsError(f"there is no module '{module}' (wanted for '{reference}'), neither here nor installed.")
    if found is not None and not _may_have(source.path / found, attribute.partition(".")[0]):
        raise SettingsError(f"{found} has no '{attribute}' (wanted for '{reference}').")


def _may_have(file: Path, name: str) -> bool:
    """Return True if the code names it anywhere, or may get any name from elsewhere. The start says more about it."""
    text = file.read_text(encoding="utf-8", errors="replace")
    return re.search(rf"\b{re.escape(name)}\b|import \*|\b__getattr__\b", text) is not None
