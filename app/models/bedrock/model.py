"""One call of Bedrock: in a thread, off the loop, tried again while nothing has been said.

Rules: everything that can take time (building the request, finding credentials, connecting, reading) happens in the
thread; a cancelled caller leaves at once and a read of an answer that has begun is cut short. A try is repeated only
while no delta has left the model, so nothing is ever said twice.
"""

import asyncio
import logging
import random
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from itertools import count

from app.models.bedrock.client import Client, Events
from app.models.bedrock.failures import Fault, failure_of
from app.models.bedrock.options import BedrockOptions
from app.models.bedrock.reply import Reply
from app.models.bedrock.request import request_of
from app.models.bedrock.threads import Busy, Flow, Threads
from app.ports import Delta, Prompt

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
        self.model_id = model_id
        self._options = options or BedrockOptions()
        self._pause = pause
        self._client = Client(self._options)
        self._threads = Threads(self._options.max_calls)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """Call the model and yield what it says."""
        for attempt in count(1):
            said = False
            flow: Flow[Delta] | None = None
            try:
                flow = self._flow(prompt)
                while deltas := await flow.take():
                    for delta in deltas:
                        said = True
                        yield delta
            except Exception as error:  # noqa: BLE001 - every failure has a row
                self._check(error, attempt, said=said)
            else:
                return
            finally:
                if flow is not None:
                    flow.stop()
            await self._pause(attempt)

    def _flow(self, prompt: Prompt) -> Flow[Delta]:
        try:
            return self._threads.flow(_Call(self._client, self.model_id, self._options, prompt))
        except Busy as error:
            raise Fault("busy") from error

    def _check(self, error: Exception, attempt: int, *, said: bool) -> None:
        """Raise the failure, unless the call may be tried again."""
        failure = failure_of(error)
        again = failure.retry and not said and attempt < self._options.max_attempts
        logger.warning(
            "model=<%s> code=<%s> attempt=<%d> again=<%s> | the model call failed",
            self.model_id,
            failure.code,
            attempt,
            again,
            exc_info=error,
        )
        if not again:
            raise failure.error() from error


class _Call:
    """One try, as ``threads.Work``. ``items`` and ``close`` run in the thread, ``abort`` in the loop."""

    def __init__(self, client: Client, model_id: str, options: BedrockOptions, prompt: Prompt) -> None:
        self._client = client
        self._model_id = model_id
        self._options = options
        self._prompt = prompt
        self._lock = threading.Lock()
        self._events: Events | None = None
        self._aborted = False
        self._abortable = False
        self._drain = False

    def items(self) -> Generator[Delta, None, None]:
        """Ask, and turn what comes into deltas until nothing of interest can follow."""
        request = request_of(self._model_id, self._options, self._prompt)
        reply = Reply(self._model_id, request.tool_names)
        if not self._open(self._client.converse(request.body)):
            return
        try:
            yield from self._deltas(reply)
            reply.finish()
        except Exception:
            if not reply.complete:
                raise
            logger.warning("model=<%s> | the answer is complete, its usage did not come", self._model_id, exc_info=True)

    def close(self) -> None:
        """Let the connection go: back to the pool if the answer was read to its end."""
        if self._events is None:
            return
        try:
            if self._drain:
                for _ in self._events:
                    pass
        finally:
            self._events.close()

    def abort(self) -> None:
        """End a read that is going on."""
        with self._lock:
            self._aborted = True
            if self._events is not None and self._abortable:
                self._events.abort()

    def _open(self, events: Events) -> bool:
        with self._lock:
            self._events = events
            self._abortable = True
            return not self._aborted

    def _deltas(self, reply: Reply) -> Generator[Delta, None, None]:
        if self._events is None:
            return
        for event in self._events:
            if "metadata" in event:
                self._last()
            yield from reply.feed(event)
            if reply.ended:
                self._drain = True
                return

    def _last(self) -> None:
        """The last event is here. What follows may give the connection to another call, which no abort may hit."""
        with self._lock:
            self._abortable = False
