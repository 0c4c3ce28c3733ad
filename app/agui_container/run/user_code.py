"""Tracebacks cut to the user's own code, for log lines about faults of agents.

Rule: the user's own code is every file outside our packages, the standard library and installed packages. A traceback
is logged without frames of our packages only if it has a frame of the user's code. Otherwise the fault may be ours.
"""

import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from traceback import TracebackException, extract_tb

import agui_core

OURS = tuple(f"{folder}/" for folder in (Path(__file__).parents[1], *agui_core.__path__))
IMPORTS = "<frozen importlib."
INSTALLED = ("/site-packages/", "/dist-packages/")


def raised_at(error: BaseException) -> str | None:
    """Return ``FILE:LINE`` of the innermost frame of the user's code, which editors recognise, or None."""
    frames = [frame for frame in extract_tb(error.__traceback__) if _is_user_file(frame.filename)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None


def format_exception(error: BaseException) -> str:
    """Return the traceback of an error. With frames of the user's code it has none of ours and of imports."""
    summary = TracebackException.from_exception(error)
    parts = list(_parts(summary))
    if any(_is_user_file(frame.filename) for part in parts for frame in part.stack):
        for part in parts:
            part.stack[:] = [frame for frame in part.stack if not frame.filename.startswith((*OURS, IMPORTS))]
    return "".join(summary.format()).rstrip("\n")


def _parts(summary: TracebackException) -> Iterator[TracebackException]:
    """Iterate an error, its causes and the members of a group. Python has removed rings."""
    yield summary
    for other in filter(None, (summary.__cause__, summary.__context__, *(summary.exceptions or ()))):
        yield from _parts(other)


def _is_user_file(file: str) -> bool:
    if file.startswith(("<", *OURS)) or any(folder in file for folder in INSTALLED):
        return False
    return not file.startswith(_standard_library())


@cache
def _standard_library() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return f"{paths['stdlib']}/", f"{paths['platstdlib']}/"
