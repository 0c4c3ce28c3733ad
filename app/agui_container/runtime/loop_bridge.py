"""Calls into the event loop from any thread, for tools that emit events outside an agent's generator.

Rule: every call runs on the event loop. A worker thread waits for the outcome. Therefore an invalid event raises where
it was sent, and a tool cannot get ahead of the run's log.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from agui_container.ports import Item

T = TypeVar("T")


class LoopBridge:
    """Bridge to the event loop on which it is created.

    Args:
        send: receives emitted items on the event loop.
    """

    __slots__ = ("_loop", "_send", "_thread")

    def __init__(self, send: Callable[[Item], None]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def emit(self, item: Item) -> None:
        """Emit an event or a string of assistant text. Raises the error of ``send``."""
        self.call(lambda: self._send(item))

    def call(self, function: Callable[[], T]) -> T:
        """Run ``function`` on the event loop and return its result or raise its error."""
        if threading.get_ident() == self._thread:
            return function()
        outcome: Future[T] = Future()
        self._loop.call_soon_threadsafe(_run_into, outcome, function)
        return outcome.result()


def _run_into(outcome: "Future[T]", function: Callable[[], T]) -> None:
    try:
        outcome.set_result(function())
    except Exception as error:  # noqa: BLE001 - raised in the calling thread
        outcome.set_exception(error)
