"""A door to the event loop for code outside an agent's generator: tools, from any thread.

Rule: everything happens on the event loop. A call from a worker thread waits there for its outcome, so an illegal event
raises where it was sent, and a tool cannot run ahead of the readers' log.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from agui_container.ports import Item

T = TypeVar("T")


class LoopBridge:
    """Make it on the event loop.

    Args:
        send: takes what is emitted; called on the loop.
    """

    __slots__ = ("_loop", "_send", "_thread")

    def __init__(self, send: Callable[[Item], None]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def emit(self, item: Item) -> None:
        """Send an event or a string of assistant text."""
        self.call(lambda: self._send(item))

    def call(self, function: Callable[[], T]) -> T:
        """What the function gives, or raises, on the loop."""
        if threading.get_ident() == self._thread:
            return function()
        outcome: Future[T] = Future()
        self._loop.call_soon_threadsafe(_settle, outcome, function)
        return outcome.result()


def _settle(outcome: "Future[T]", function: Callable[[], T]) -> None:
    try:
        outcome.set_result(function())
    except Exception as error:  # noqa: BLE001 - raised in the thread that asked
        outcome.set_exception(error)
