"""Check of what a start of the server would refuse, before anything is made for it.

Rule: no code of the user is imported, because the packages that it needs may be in the image only.
"""

import re
from collections.abc import Mapping
from contextlib import suppress

from agui_container.deploy.source import SourceFolder
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
    """Check the settings as a start does, and that the modules which they name exist.

    Settings that need a package which is not installed here are left to the start itself.

    Args:
        settings: of the server.
        source: the folder that the image is built from, or None for an image that exists already.

    Raises:
        SettingsError: a start would refuse the settings.
    """
    references = settings.agent_references.values()
    for reference in (*references, settings.tools):
        if reference not in ("", ASSISTANT):
            check_reference(reference, source)
    if ASSISTANT not in references:
        check_assistant_settings(settings, takes_tools=True)
    with suppress(MissingExtra):
        build_app(settings.model_copy(update={**WITHOUT_CODE, **({} if source else WITHOUT_FILES)}))


def check_reference(reference: str, source: SourceFolder | None) -> None:
    """Check that a module is in the folder of the image, or installed. Raises ``SettingsError``."""
    try:
        module, _ = split_reference(reference)
    except BadReference as error:
        raise SettingsError(str(error)) from None
    if source is None or is_installed(module.partition(".")[0]):
        return
    file = re.compile(rf"(?:.*/)?{re.escape(module.replace('.', '/'))}(?:\.py|/__init__\.py)")
    if not any(file.fullmatch(path.as_posix()) for path in source.files()):
        raise SettingsError(f"there is no module '{module}' (wanted for '{reference}'), neither here nor installed.")
