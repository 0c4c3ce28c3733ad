"""The command line: ``agui serve``, and ``feedback`` and ``runs`` for operators.

``python -m agui_container`` is the same.

Rule: this module imports only the parser of the command. The server's modules are imported while the garbage collector
is off, because they make tens of thousands of objects that stay.
"""

import argparse
import gc
import os
import sys

from agui_container import __version__


def main(arguments: list[str]) -> int:
    """Run one command and return the exit status."""
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
    """Parse a command. An invalid one ends the process with status 2."""
    parser = argparse.ArgumentParser(prog="agui", description="An AG-UI server for any Python agent.")
    parser.add_argument("--version", action="version", version=f"agui-container {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser(
        "serve", help="serve an agent; all settings are AGUI_* variables", allow_abbrev=False
    )  # serve_and_reload looks for the whole option
    serve.add_argument("agent", nargs="?", metavar="module:attribute", help="the agent, in place of AGUI_AGENT")
    serve.add_argument("--host", help="the address to listen on, in place of AGUI_HOST")
    serve.add_argument("--port", help="the port to listen on, in place of AGUI_PORT")
    serve.add_argument("--reload", action="store_true", help="restart when a Python file in the current folder changes")
    feedback = commands.add_parser("feedback", help="list and triage feedback in the database of AGUI_STORE")
    actions = feedback.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="list unresolved feedback as JSON lines, newest first")
    listing.add_argument("--all", action="store_true", help="include resolved feedback")
    triage = actions.add_parser("triage", help="record the triage of one feedback; users never see it")
    for name in ("owner", "thread", "message"):
        triage.add_argument(name, help=f"{name}, as in the list")
    triage.add_argument("--label", help="one word for the subject; an empty one removes it")
    triage.add_argument("--note", help="a note; an empty one removes it")
    state = triage.add_mutually_exclusive_group()
    state.add_argument("--resolved-by", metavar="NAME", help="mark the feedback as resolved by this person")
    state.add_argument("--reopen", action="store_true", help="mark the feedback as unresolved")
    runs = commands.add_parser("runs", help="list and cancel the runs of all servers on the database of AGUI_STORE")
    run_actions = runs.add_subparsers(dest="action", required=True)
    listed = run_actions.add_parser("list", help="list open runs as JSON lines, newest first")
    listed.add_argument("--all", action="store_true", help="include ended runs")
    cancel = run_actions.add_parser("cancel", help="cancel a run on any server; without AGUI_BUS it takes two seconds")
    for name in ("owner", "thread", "run"):
        cancel.add_argument(name, help=f"{name}, as in the list")
    return parser.parse_args(arguments)


def cli() -> int:
    """Run the command of the console script ``agui``."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
