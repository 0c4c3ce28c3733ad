"""Options that several commands have."""

from pathlib import Path

import click

config_option = click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read settings from FILE in place of agui.toml in the working folder. AGUI_* variables win over both.",
)
