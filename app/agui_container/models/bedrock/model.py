"""One call of Bedrock: in a thread, off the loop, tried again while nothing has been said.

Rules: everything that can take time (building the request, finding credentials, connecting, reading) happens in the
thread; a cancelled caller leaves at once and a read of an answer that has begun is cut short. A try is repeated only
while no delta has left the model, so nothing is ever said twice.
"""

import asyncio
import logging
import random
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import count

from agui_container.models.bedrock.client import BedrockClient, BedrockEvents
from agui_container.models.bedrock.failures import StreamFault, failure_of
from agui_container.models.bedrock.options import BedrockOptions
from agui_container.models.bedrock.request import request_of
from agui_container.models.bedrock.stream_parser import BedrockStreamParser
from agui_container.ports import Delta, Prompt
from agui_container.runtime.daemon_threads import DaemonThreadPool, ThreadPoolBusy, ThreadStream

logger = logging.getLogger(__name__)

Pause = Callable[[int], Awaitable[None]]
"""Waits after the try of that number has failed."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0


async def backoff(attempt: int) -> None:
    """Twice as long after each try, and not the same for everybody."""
    longest = min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE)
    await asyncio.sleep(longest * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, hides nothing


class BedrockModel:
    """Implements ``ports.Model``. One instance serves any number of runs; making it does nothing yet.

    Args:
        model_id: what Bedrock calls the model: a model id, an inference profile or an ARN.
        pause: waits between tries.
    """

    def __init__(self, model_id: str, options: BedrockOptions | None = None, *, pause: Pause = backoff) -> None:
        self.provider, self.name = "bedrock", model_id
        self._options = options or BedrockOptions()
        self._pause = pause
        self._client = BedrockClient(self._options)
        self._threads = DaemonThreadPool(self._options.max_calls)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """Call the model and yield what it says."""
        for attempt in count(1):
            said = False
            try:
                with self._asked(prompt) as deltas:
                    while await deltas.wait_for_items():
                        for delta in deltas.take_items():
                            said = True
                            yield delta
            except Exception as error:  # noqa: BLE001 - every failure has a row
                self._check(error, attempt, said=said)
            else:
                return
            await self._pause(attempt)

    @contextmanager
    def _asked(self, prompt: Prompt) -> Iterator[ThreadStream[Delta]]:
        call = _BedrockCall(self._client, self.name, self._options, prompt)
        try:
            deltas = self._threads.stream("model", call.run)
        except ThreadPoolBusy as error:
            raise StreamFault("busy") from error
        try:
            yield deltas
        finally:
            deltas.stop()
            call.abort()

    def _check(self, error: Exception, attempt: int, *, said: bool) -> None:
        """Raise the failure, unless the call may be tried again."""
        failure = failure_of(error)
        again = failure.retry and not said and attempt < self._options.max_attempts
        logger.warning(
            "model=<%s> code=<%s> attempt=<%d> again=<%s> | the model call failed",
            self.name,
            failure.code,
            attempt,
            again,
            exc_info=error,
        )
        if not again:
            raise failure.error() from error


class _BedrockCall:
    """One try. ``run`` is the thread's, ``abort`` the loop's."""

    def __init__(self, client: BedrockClient, model_id: str, options: BedrockOptions, prompt: Prompt) -> None:
        self._client = client
        self._model_id = model_id
        self._options = options
        self._prompt = prompt
        self._lock = threading.Lock()
        self._events: BedrockEvents | None = None
        self._aborted = False
        self._abortable = False
        self._drain = False

    def run(self, deltas: ThreadStream[Delta]) -> None:
        """Hand over what the model says, to its end; then clean up, for which nobody waits."""
        try:
            deltas.feed(self._read_deltas())
        except BaseException as error:  # noqa: BLE001 - carried to the loop
            deltas.fail(error)
        self._last()
        deltas.end()
        try:
            self._close()
        except Exception:
            logger.debug("| cleaning up after a model call failed", exc_info=True)

    def abort(self) -> None:
        """End a read that is going on. Must not block."""
        with self._lock:
            self._aborted = True
            if self._events is not None and self._abortable:
                self._events.abort()

    def _read_deltas(self) -> Generator[Delta, None, None]:
        """Ask, and turn what comes into deltas until nothing of interest can follow."""
        request = request_of(self._model_id, self._options, self._prompt)
        reply = BedrockStreamParser(self._model_id, request.tool_names)
        if not self._open(self._client.converse(request.body)):
            return
        try:
            yield from self._deltas(reply)
            reply.finish()
        except Exception:
            if not reply.is_complete:
                raise
            logger.warning("model=<%s> | the answer is complete, its usage did not come", self._model_id, exc_info=True)

    def _close(self) -> None:
        """Let the connection go: back to the pool if the answer was read to its end."""
        if self._events is None:
            return
        try:
            if self._drain:
                for _ in self._events:
                    pass
        finally:
            self._events.close()

    def _open(self, events: BedrockEvents) -> bool:
        with self._lock:
            self._events = events
            self._abortable = True
            return not self._aborted

    def _deltas(self, reply: BedrockStreamParser) -> Generator[Delta, None, None]:
        if self._events is None:
            return
        for event in self._events:
            if "metadata" in event:
                self._last()
            yield from reply.feed(event)
            if reply.is_ended:
                self._drain = True
                return

    def _last(self) -> None:
        """No more is read of what may be cut off. The connection may soon be another call's, which no abort may hit."""
        with self._lock:
            self._abortable = False
