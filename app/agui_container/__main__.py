"""The start of the command ``agui``. ``python -m agui_container`` is the same."""

import sys

from agui_container.cli.command_line import main


def cli() -> int:
    """Run the command of the console script ``agui``."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(cli())
