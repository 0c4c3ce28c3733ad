"""The command line: ``python -m agui_container serve``, and ``feedback`` and ``runs`` for operators.

Rule: nothing is imported here but what reads the command, so that the server's modules are imported without pauses of
the garbage collector: they make tens of thousands of objects that stay, and hardly any garbage.
"""

import argparse
import gc
import sys


def main(arguments: list[str]) -> int:
    """Run one command; the exit status."""
    asked = parse_args(arguments)
    if asked.command != "serve":
        from agui_container.admin import run_command  # noqa: PLC0415 - see above

        return run_command(asked)
    gc.disable()
    try:
        from agui_container.server.run import serve  # noqa: PLC0415 - see above

        return serve()
    finally:
        gc.enable()


def parse_args(arguments: list[str]) -> argparse.Namespace:
    """What is asked for. Ends the process for what is no command."""
    parser = argparse.ArgumentParser(
        prog="python -m agui_container", description="An AG-UI server for any Python agent."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", help="serve on AGUI_HOST:AGUI_PORT; all settings are AGUI_* variables")
    feedback = commands.add_parser("feedback", help="what users say of messages, in the database of AGUI_STORE")
    actions = feedback.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="what is not resolved, the newest first, as JSON lines")
    listing.add_argument("--all", action="store_true", help="what is resolved, too")
    triage = actions.add_parser("triage", help="write down what is made of one; users never see it")
    for name in ("owner", "thread", "message"):
        triage.add_argument(name, help=f"its {name}, as in the list")
    triage.add_argument("--label", help="a word for what it is about; an empty one takes it away")
    triage.add_argument("--note", help="a note; an empty one takes it away")
    state = triage.add_mutually_exclusive_group()
    state.add_argument("--resolved-by", metavar="NAME", help="it is done, and who says so")
    state.add_argument("--reopen", action="store_true", help="it is not done")
    runs = commands.add_parser("runs", help="the runs of all servers on the database of AGUI_STORE")
    doings = runs.add_subparsers(dest="action", required=True)
    live = doings.add_parser("list", help="what goes on, the newest first, as JSON lines")
    live.add_argument("--all", action="store_true", help="what has ended, too")
    cancel = doings.add_parser("cancel", help="have the server that runs it end it; needs AGUI_BUS")
    for name in ("owner", "thread", "run"):
        cancel.add_argument(name, help=f"its {name}, as in the list")
    return parser.parse_args(arguments)


def cli() -> int:
    """Run the command of the console script ``agui``."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
