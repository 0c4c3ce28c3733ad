"""Lines of the standard input, read on the event loop.

Rule: no thread reads them. One that waits for a line could not be ended, and would keep the program from its end.
"""

import asyncio
import codecs
import os
import sys

PIECE_BYTES = 65536


class InputLines:
    """Lines of the standard input: a terminal, a pipe or a file."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""

    async def next(self) -> str:
        """Return the next line without its end. Raises ``EOFError``."""
        while "\n" not in self._text:
            await _wait_for_input()
            piece = os.read(sys.stdin.fileno(), PIECE_BYTES)
            self._text += self._decoder.decode(piece, final=not piece)
            if not piece:
                break
        if not self._text:
            raise EOFError
        line, _, self._text = self._text.partition("\n")
        return line.removesuffix("\r")

    def clear(self) -> None:
        """Forget what was read and not returned."""
        self._text = ""


async def _wait_for_input() -> None:
    """Wait until a read does not block. A file never blocks."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(sys.stdin.fileno(), ready.set)
    except PermissionError:
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
