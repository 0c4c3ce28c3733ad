"""The command line: ``agui serve``, and ``feedback`` and ``runs`` for operators.

``python -m agui_container`` is the same.

Rule: nothing is imported here but what reads the command, so that the server's modules are imported without pauses of
the garbage collector: they make tens of thousands of objects that stay, and hardly any garbage.
"""

import argparse
import gc
import os
import sys

from agui_container import __version__


def main(arguments: list[str]) -> int:
    """Run one command; the exit status."""
    options = parse_args(arguments)
    if options.command != "serve":
        from agui_container.admin import run_command  # noqa: PLC0415 - see above

        return run_command(options)
    if options.reload:
        from agui_container.server.reload import serve_and_reload  # noqa: PLC0415 - see above

        return serve_and_reload([argument for argument in arguments if argument != "--reload"])
    make_current_folder_importable()
    gc.disable()
    try:
        from agui_container.server.run import run_server  # noqa: PLC0415 - see above

        return run_server(agent=options.agent, host=options.host, port=options.port)
    finally:
        gc.enable()


def make_current_folder_importable() -> None:
    """Let ``module:attribute`` name a module of the current folder. A console script does not do that by itself."""
    folder = os.getcwd()  # noqa: PTH109 - pathlib would be imported for it
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)


def parse_args(arguments: list[str]) -> argparse.Namespace:
    """Parse a command. Ends the process for anything else."""
    parser = argparse.ArgumentParser(prog="agui", description="An AG-UI server for any Python agent.")
    parser.add_argument("--version", action="version", version=f"agui-container {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve an agent; all settings are AGUI_* variables")
    serve.add_argument("agent", nargs="?", metavar="module:attribute", help="the agent, in place of AGUI_AGENT")
    serve.add_argument("--host", help="the address to listen on, in place of AGUI_HOST")
    serve.add_argument("--port", help="the port to listen on, in place of AGUI_PORT")
    serve.add_argument("--reload", action="store_true", help="start again when a Python file below this folder changes")
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
