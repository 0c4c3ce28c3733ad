"""``agui serve``: serve an agent until SIGTERM or SIGINT.

Rule: this module imports only click. The server's modules are imported while the garbage collector is off, because they
make tens of thousands of objects that stay.
"""

import gc
import sys
from pathlib import Path

import click

from agui_container.cli.options import config_option


@click.command()
@click.argument("agent", metavar="[MODULE:ATTRIBUTE]", required=False)
@click.option("--host", help="The address to listen on, in place of AGUI_HOST.")
@click.option("--port", help="The port to listen on, in place of AGUI_PORT.")
@config_option
@click.option("--reload", is_flag=True, help="Restart when a Python file in the current folder changes.")
def serve(agent: str | None, host: str | None, port: str | None, config: Path | None, *, reload: bool) -> int:
    """Serve the agent MODULE:ATTRIBUTE, or that of the setting `agent`.

    Settings are AGUI_* variables, or lines of agui.toml in the working folder.
    """
    if reload:
        from agui_container.server.reload import serve_and_reload  # noqa: PLC0415 - see above

        return serve_and_reload([argument for argument in sys.argv[1:] if argument != "--reload"])
    make_current_folder_importable()
    gc.disable()
    try:
        from agui_container.server.run import run_server  # noqa: PLC0415 - see above

        return run_server(agent=agent, config=config, host=host, port=port)
    finally:
        gc.enable()


def make_current_folder_importable() -> None:
    """Let ``module:attribute`` name a module of the current folder. A console script does not do that by itself."""
    folder = str(Path.cwd())
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
