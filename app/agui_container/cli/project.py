"""An agent of the working folder, as commands serve it for its author.

Rules:

- Threads are in one database of the project unless a setting names a store, so that each command finds those of the
  others.
- Clients read tracebacks of the agent. No other server does so, because the text of an exception may hold secrets.
"""

import asyncio
import logging
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, redirect_stdout
from pathlib import Path
from traceback import format_exception_only

from agui_container.agents.as_agent import AgentLoadError
from agui_container.cli.failure import CommandFailed
from agui_container.cli.local_server import LOOPBACK, listen, local_server
from agui_container.cli.serve import make_current_folder_importable
from agui_container.log_values import mask_passwords
from agui_container.main import create_app
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.run.endings import describe_failure
from agui_container.run.user_code import format_exception, raised_at
from agui_container.settings import SettingsError
from agui_container.settings_sources import load_settings, load_with_origins
from agui_container.tools.loader import ToolLoadError

FOLDER = Path(".agui")
"""Folder of the database. Git ignores it."""

STOP_SECONDS = 12.0
POLL_SECONDS = 0.02


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
    return f"sqlite:///{FOLDER}/dev.db"


def load_error_text(error: Exception) -> str:
    """Return the sentence of an error, with the traceback of its cause if that is in the user's code."""
    cause: BaseException = error
    while cause.__cause__ is not None and raised_at(cause) is None:
        cause = cause.__cause__
    text = str(error)
    if raised_at(cause):
        text += f"\n\n{format_exception(cause)}"
    elif isinstance(cause, SyntaxError):  # the file itself has no frame
        text += f"\n\n{''.join(format_exception_only(cause)).rstrip()}"
    return mask_passwords(text)


def with_traceback(error: BaseException) -> AppError:
    """Return what clients read of an exception of the agent, with its traceback."""
    described = describe_failure(error)
    if described.code is not ErrorCode.AGENT_ERROR or (described is error and error.__cause__ is None):
        return described  # a message that the agent has chosen
    return AppError(described.code, f"{described.message}\n\n{mask_passwords(format_exception(error))}")


@asynccontextmanager
async def serve_agent(agent: str) -> AsyncIterator[str]:
    """Serve an agent in a thread of this process until the block ends. Raises ``CommandFailed``."""
    make_current_folder_importable()
    try:
        store = project_store(load_with_origins()[1])
        settings = load_settings(host=LOOPBACK, store=store).model_copy(update={"grpc": False, "console": False})
        with redirect_stdout(sys.stderr):  # an agent may print while it is imported
            app = create_app(agent, settings)
    except (SettingsError, AgentLoadError, ToolLoadError) as error:
        raise CommandFailed(f"The agent could not be served.\n{load_error_text(error)}") from None
    app.state.service.describe_failure = with_traceback
    logger = logging.getLogger("agui_container")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # an error that it would log ends a run, so the client shows it
    with listen(LOOPBACK, 0) as listener:
        server = local_server(app)
        thread = threading.Thread(target=server.run, args=([listener],), name="agent", daemon=True)
        thread.start()
        try:
            while not server.started:
                if not thread.is_alive():
                    raise CommandFailed("The agent could not be served.")
                await asyncio.sleep(POLL_SECONDS)
            yield f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(STOP_SECONDS)
            logger.setLevel(level)
