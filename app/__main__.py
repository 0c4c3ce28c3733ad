"""The command line: ``python -m app serve``.

Rule: nothing is imported here but what reads the command, so that the server's modules are imported without pauses of
the garbage collector: they make tens of thousands of objects that stay, and hardly any garbage.
"""

import argparse
import gc
import sys


def main(arguments: list[str]) -> int:
    """Run one command; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m app", description="An AG-UI server for any Python agent.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", help="serve on AGUI_HOST:AGUI_PORT; all settings are AGUI_* variables")
    parser.parse_args(arguments)
    gc.disable()
    try:
        from app.server import serve  # noqa: PLC0415 - see above

        return serve()
    finally:
        gc.enable()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
