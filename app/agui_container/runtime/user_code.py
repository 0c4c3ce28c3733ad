"""Lines of the user's own code, in tracebacks and in suspended generators, for log lines about faults of agents.

Rule: the user's own code is every file outside this package, the standard library and installed packages. A traceback
is logged without the frames of this package only if it has a frame of the user's code. Otherwise the fault may be ours.
"""

import inspect
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from traceback import TracebackException
from types import CodeType, TracebackType

from msgspec import Struct

PACKAGE = f"{Path(__file__).parents[1]}/"
INSTALLED = ("/site-packages/", "/dist-packages/")


class CodePosition(Struct, frozen=True):
    """An instruction of a function. Its line is looked up when it is needed, because that takes time.

    Attributes:
        code: the function.
        instruction: offset of the instruction; -1 stands for the function's first line.
    """

    code: CodeType
    instruction: int = -1

    def __str__(self) -> str:
        """Return the file and the line, as editors and terminals recognise them."""
        lines = (line for start, end, line in self.code.co_lines() if start <= self.instruction < end)
        return f"{self.code.co_filename}:{next(lines, None) or self.code.co_firstlineno}"


def raised_at(error: BaseException) -> CodePosition | None:
    """Return the innermost position of the user's code in the traceback, or None if there is none."""
    positions = (CodePosition(each.tb_frame.f_code, each.tb_lasti) for each in _entries(error.__traceback__))
    return next((each for each in reversed(list(positions)) if _is_user_code(each.code)), None)


def suspended_at(items: object) -> CodePosition | None:
    """Return the position of the ``yield`` at which the user's own generator is suspended, or None if there is none.

    Of a generator that has ended, it is the first line of the function. Generators of this package are adapters: their
    local variables have the generator that they adapt, or the position at which it yielded the current item in another
    thread.
    """
    if isinstance(items, CodePosition):
        return items
    if inspect.isasyncgen(items):
        code, frame = items.ag_code, items.ag_frame
    elif inspect.isgenerator(items):
        code, frame = items.gi_code, items.gi_frame
    else:
        return None
    if _is_user_code(code):
        return CodePosition(code, frame.f_lasti if frame else -1)
    if frame is None or not code.co_filename.startswith(PACKAGE):
        return None
    return next(filter(None, map(suspended_at, list(frame.f_locals.values()))), None)


def format_exception(error: BaseException) -> str:
    """Return the traceback of an error, without the frames of this package if the user's code is in it."""
    summary = TracebackException.from_exception(error)
    parts = list(_parts(summary))
    if any(_is_user_file(frame.filename) for part in parts for frame in part.stack):
        for part in parts:
            part.stack[:] = [frame for frame in part.stack if not frame.filename.startswith(PACKAGE)]
    return "".join(summary.format()).rstrip("\n")


def _parts(summary: TracebackException) -> Iterator[TracebackException]:
    """Iterate an error, its causes and the members of a group. Python has removed rings."""
    yield summary
    for other in filter(None, (summary.__cause__, summary.__context__, *(summary.exceptions or ()))):
        yield from _parts(other)


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    """Iterate over the entries of a traceback, outermost first."""
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_user_code(code: CodeType) -> bool:
    return _is_user_file(code.co_filename)


def _is_user_file(file: str) -> bool:
    if file.startswith(("<", PACKAGE)) or any(folder in file for folder in INSTALLED):
        return False
    return not file.startswith(_standard_library())


@cache
def _standard_library() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return f"{paths['stdlib']}/", f"{paths['platstdlib']}/"
