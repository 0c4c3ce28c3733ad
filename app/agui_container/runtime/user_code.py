"""Lines of the user's own code, in tracebacks and in suspended generators, for log lines about faults of agents.

Rule: the user's own code is every file outside this package, the standard library and installed packages. Frames of
this package are removed from a traceback only if it has a frame of the user's code. Otherwise the fault may be ours.
"""

import inspect
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, TracebackType

from msgspec import Struct

PACKAGE = f"{Path(__file__).parents[1]}/"
INSTALLED = ("/site-packages/", "/dist-packages/")

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


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


def user_exc_info(error: BaseException) -> ExcInfo:
    """Return ``exc_info`` for a log line, without the frames of this package if the user's code raised the error."""
    if raised_at(error) is not None:
        _remove_own_frames(error, set())
    return type(error), error, error.__traceback__


def _remove_own_frames(error: BaseException, seen: set[int]) -> None:
    """Remove the frames from the error, its causes and the members of a group."""
    if id(error) in seen:
        return
    seen.add(id(error))
    remaining = None
    for entry in reversed(list(_entries(error.__traceback__))):
        if not entry.tb_frame.f_code.co_filename.startswith(PACKAGE):
            remaining = TracebackType(remaining, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = remaining
    members = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for other in filter(None, (error.__cause__, error.__context__, *members)):
        _remove_own_frames(other, seen)


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    """Iterate over the entries of a traceback, outermost first."""
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_user_code(code: CodeType) -> bool:
    file = code.co_filename
    if file.startswith(("<", PACKAGE)) or any(folder in file for folder in INSTALLED):
        return False
    return not file.startswith(_standard_library())


@cache
def _standard_library() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return f"{paths['stdlib']}/", f"{paths['platstdlib']}/"
