"""The database of the project in the working folder: it keeps threads where no setting names a store.

Rule: ``agui dev`` and commands that serve an agent of the project keep threads there, so that each one finds the
threads of the others.
"""

from collections.abc import Mapping
from pathlib import Path

from agui_container.cli.failure import CommandFailed

FOLDER = Path(".agui")
"""Folder of the database. Git ignores it."""

DATABASE = FOLDER / "dev.db"


def project_store(origins: Mapping[str, str]) -> str | None:
    """Return the URL of the database, and make its folder. None if a setting names another store.

    Raises:
        CommandFailed: the folder cannot be made.
    """
    if origins["store"] != "default":
        return None
    try:
        FOLDER.mkdir(exist_ok=True)
        FOLDER.joinpath(".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as error:
        advice = "AGUI_STORE=memory keeps threads only as long as the command runs."
        raise CommandFailed(f"cannot write to {FOLDER.absolute()}: {error.strerror}. {advice}") from None
    return f"sqlite:///{DATABASE}"
