"""Arguments and options that several commands have."""

from pathlib import Path

import click

agent_argument = click.argument("agent", metavar="[MODULE:ATTRIBUTE]", required=False)
host_option = click.option("--host", help="The address to listen on, in place of the setting.")
port_option = click.option(
    "--port", type=click.IntRange(0, 65535), help="The port to listen on, in place of the setting. 0 takes a free one."
)
config_option = click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read settings from FILE in place of agui.toml in the working folder. AGUI_* variables win over both.",
)

token_option = click.option(
    "--token", envvar="BEARER_TOKEN", help="Send this bearer token. Default: the variable BEARER_TOKEN."
)
