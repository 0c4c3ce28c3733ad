"""The event loop of a command: its errors are one line, and signals end it in order.

Rule: handlers of Ctrl-C are Python's own and not those of the event loop, because a prompt of prompt_toolkit restores
only the former.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TypeVar

from agui_client import AgentClientError
from agui_container.cli.failure import CommandFailed, error_text

T = TypeVar("T")

ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that end a command. Windows has no SIGHUP."""


def run_command(work: Coroutine[object, object, T]) -> T:
    """Run a command on an event loop. A signal that ends it cancels its tasks, and is its exit status.

    Raises:
        CommandFailed: the server cannot be reached or refuses, its URL or session cannot be right, or a file fails.
    """
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        for number in ENDINGS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
                signal.signal(number, lambda received, _: loop.call_soon_threadsafe(sys.exit, 128 + received))
        try:
            return runner.run(work)
        except (AgentClientError, OSError, ValueError) as error:
            raise CommandFailed(error_text(error)) from None


@contextmanager
def ctrl_c_calls(handler: Callable[[], object]) -> Iterator[None]:
    """Call a function in the event loop at each Ctrl-C."""
    loop = asyncio.get_running_loop()
    before = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(handler))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
