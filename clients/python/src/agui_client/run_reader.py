"""One run, read to its end over as many connections as that takes.

Rules:

- The cursor is the number of the last event that has arrived, and a new connection attaches after it.
- No input is run twice. It is sent again if no connection was made, or if the server names ``attach`` in its
  capabilities: such a server returns the run that has these ids. From any other server a run that has dropped is lost.
- A run is cancelled by the server's command, and by closing the connection where the server has none.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from uuid import uuid4

from ag_ui.core import BaseEvent, RunAgentInput

from agui_client.backoff import Backoff
from agui_client.errors import (
    AgentClientError,
    CancelTimeoutError,
    ConnectionDropped,
    ConnectionLostError,
    RunRefusedError,
)
from agui_client.events import TERMINAL, parse_event
from agui_client.server import Server
from agui_client.transport import Frame, Received
from agui_core.expander import Expander, IllegalEvent


class RunReader:
    """Reads one run, which ``run_input`` starts, or which the server knows. ``events`` continues after the last event.

    Attributes:
        has_ended: True after the event that ends the run, and after a cancel of a run that has no such event.
    """

    def __init__(self, server: Server, thread_id: str, run_id: str, run_input: RunAgentInput | None = None) -> None:
        self.has_ended = False
        self._ids = {"threadId": thread_id, "runId": run_id}
        self._input = run_input
        self._server = server
        self._cancelled = asyncio.Event()
        self._backoff = Backoff(server.retry, server.place, self._cancelled)
        self._expander = Expander(lambda: str(uuid4()))
        self._ready: deque[BaseEvent] = deque()
        self._cursor = 0
        self._has_begun = False
        self._was_sent = False
        self._is_cut_off = False
        self._limit: asyncio.Timeout | None = None
        self._must_end_by: float | None = None

    def timeout_error(self, seconds: float) -> Exception:
        """Return the error of a reading that has not ended in time: ``TimeoutError``, unless there is no connection."""
        if self._backoff.is_retrying:
            return self._backoff.lost(f" within {seconds:g} s")
        if self._has_begun:
            return TimeoutError(f"The agent's turn did not end within {seconds:g} s.")
        return TimeoutError(f"{self._server.place} sent no event within {seconds:g} s.")

    async def events(self) -> AsyncGenerator[BaseEvent, None]:
        """Yield the events that have not been delivered yet.

        Raises ``RunRefusedError``, ``ConnectionLostError``, ``CancelTimeoutError`` if a cancelled run did not end in
        time, and ``AgentClientError`` for something that is no event.
        """
        if self._was_sent and not self.has_ended:
            await self._check_can_continue(ConnectionDropped("The reading was stopped."))
        while self._ready:  # left over from a reading that stopped between them
            yield self._next_ready()
        while not self.has_ended:
            try:
                async with aclosing(self._server.transport.stream(self._request())) as received:
                    while await self._receive(received):
                        while self._ready:
                            yield self._next_ready()
                failure: ConnectionDropped | RunRefusedError = ConnectionDropped("The stream ended before the run did.")
            except (ConnectionDropped, RunRefusedError) as error:
                failure = error
            if not self.has_ended:
                await self._recover(failure)

    def _next_ready(self) -> BaseEvent:
        event = self._ready.popleft()
        self.has_ended = event.type in TERMINAL
        return event

    def _request(self) -> str:
        is_lost, self._was_sent = self._cancelled.is_set() and self._was_sent, True
        if self._input is not None and not self._has_begun and not is_lost:
            return self._input.model_dump_json(by_alias=True)
        return json.dumps({"command": {"type": "attach", **self._ids, "after": self._cursor}, "id": 1})

    async def _receive(self, stream: AsyncGenerator[Received, None]) -> bool:
        """Read one event into ``_ready``. Return False at the end of the run or of the stream."""
        if self.has_ended:
            return False
        try:
            async with asyncio.timeout_at(self._must_end_by) as self._limit:
                received = await anext(stream, None)
        except TimeoutError as error:
            if self._must_end_by is None:
                raise
            if self._is_cut_off:
                self.has_ended = True
                return False
            raise self._not_cancelled() from error
        finally:
            self._limit = None
        if received is None:
            return False
        self._cursor = received.seq or self._cursor
        self._has_begun = True
        self._backoff.reset()
        try:
            self._ready.extend(self._expander.expand(parse_event(received.frame)))
        except IllegalEvent as error:
            raise AgentClientError(f"The server sent an event that does not fit: {error}") from error
        return True

    # --- drops --------------------------------------------------------------------------------------------------------

    async def _recover(self, error: ConnectionDropped | RunRefusedError) -> None:
        """Wait before the next attempt, or raise the error that ends the run.

        The input of a cancelled run may not have arrived at the server, or its connection was all there was.
        """
        is_not_found = isinstance(error, RunRefusedError) and error.code == "RUN_NOT_FOUND"
        if is_not_found and self._cancelled.is_set() and not self._has_begun and self._input is not None:
            self.has_ended = True
            return
        if not self._is_temporary(error):
            self.has_ended = True
            raise error
        if self._must_end_by is not None and asyncio.get_running_loop().time() >= self._must_end_by:
            raise self._not_cancelled() from error
        await self._backoff.pause(error)
        if self._has_begun or not isinstance(error, ConnectionDropped) or error.was_sent:
            await self._check_can_continue(error)

    async def _check_can_continue(self, error: ConnectionDropped | RunRefusedError) -> None:
        """Raise ``ConnectionLostError`` if the server cannot continue a run. Ask until it says what it can do."""
        if not await self._server.retrying(partial(self._server_knows, "attach"), self._backoff):
            self.has_ended = True
            raise ConnectionLostError(f"This server cannot continue a run: {error}", 1) from error

    async def _server_knows(self, command: str) -> bool:
        """Return False without a question for a server whose first event has no number: AGUI Container has them."""
        return not (self._has_begun and not self._cursor) and await self._server.knows(command)

    def _is_temporary(self, error: ConnectionDropped | RunRefusedError) -> bool:
        """True for a drop, and after one for a refusal that says so, such as SHUTTING_DOWN. A first one is final."""
        if isinstance(error, ConnectionDropped):
            return True
        if error.code == "THREAD_BUSY":
            return False
        return error.retryable and (self._has_begun or self._backoff.is_retrying)

    # --- cancel -------------------------------------------------------------------------------------------------------

    async def cancel(self) -> None:
        """Cancel the run at the server, and end the reading of a run that the server cannot cancel.

        Raises ``CancelTimeoutError`` if the server did not confirm it in time.
        """
        if self.has_ended or self._cancelled.is_set():
            return
        self._cancelled.set()
        if not self._was_sent and self._input is not None:
            self.has_ended = True
            return
        seconds = self._server.retry.cancel_timeout
        self._end_reading(asyncio.get_running_loop().time() + seconds)
        try:
            async with asyncio.timeout(seconds):
                await self._send_cancel()
        except TimeoutError as error:
            raise self._not_cancelled() from error

    async def _send_cancel(self) -> None:
        """Send the command, and again after a failure: a cancel that arrives before its run is refused."""
        command: Frame = {"type": "cancel", **self._ids}
        not_found = 0
        while not self.has_ended:
            try:
                if not await self._server_knows("cancel"):
                    self._is_cut_off = True
                    self.has_ended = self._limit is None  # nobody waits for an event
                    self._end_reading(asyncio.get_running_loop().time())
                else:
                    await self._server.transport.command(command)
            except (ConnectionDropped, RunRefusedError) as error:
                is_not_found = isinstance(error, RunRefusedError) and error.code == "RUN_NOT_FOUND"
                if isinstance(error, RunRefusedError) and not (error.retryable or is_not_found):
                    raise
                not_found += is_not_found
                if not_found > 1 and self._limit is None:
                    self.has_ended = True  # nobody reads the run, so its input is on its way no longer
                await asyncio.sleep(self._server.retry.initial_delay)
            else:
                return

    def _end_reading(self, when: float) -> None:
        self._must_end_by = when
        if self._limit is not None:
            self._limit.reschedule(when)

    def _not_cancelled(self) -> CancelTimeoutError:
        seconds = self._server.retry.cancel_timeout
        return CancelTimeoutError(f"The server did not end run {self._ids['runId']} within {seconds:g} s.")
