"""``agui serve``: serve an agent until SIGTERM or SIGINT.

Rule: this module imports only click. The server's modules are imported while the garbage collector is off, because they
make tens of thousands of objects that stay.
"""

import gc
import sys
from pathlib import Path

import click

from agui_container.cli.options import agent_argument, config_option, host_option, port_option


@click.command()
@agent_argument
@host_option
@port_option
@config_option
def serve(agent: str | None, host: str | None, port: int | None, config: Path | None) -> int:
    """Serve the agent MODULE:ATTRIBUTE, or that of the setting `agent`.

    Settings are AGUI_* variables, or lines of agui.toml in the working folder.
    """
    make_current_folder_importable()
    gc.disable()
    try:
        from agui_container.server.run import run_server  # noqa: PLC0415 - see above

        return run_server(agent, config=config, host=host, port=port)
    finally:
        gc.enable()


def make_current_folder_importable() -> None:
    """Let ``module:attribute`` name a module of the current folder. A console script does not do that by itself."""
    folder = str(Path.cwd())
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
