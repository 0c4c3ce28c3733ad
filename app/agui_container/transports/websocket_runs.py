"""Runs of one WebSocket: those that it starts, those that it attaches to, and the one that streams.

Rule: runs do not interleave. Their events are sent one run after the other, in the order in which they were added.

Rule: the current run is the first open run that this connection started, or without one the run that it used last. A
cancel without ids means the current run while it is open and its own, and an attach without ids the thread of it.
"""

import asyncio
import contextlib
from collections.abc import Sequence

from ag_ui.core import RunAgentInput
from msgspec import Struct
from starlette.websockets import WebSocketDisconnect

from agui_container.engine.log.subscription import Subscription
from agui_container.engine.policy import OnBusy
from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.ports.records import RunKey
from agui_container.protocol.commands import Attach, Cancel
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import RunRequest
from agui_container.transports.websocket_output import FrameWriter

MAX_WAITING = 16
"""Runs that may wait for their turn on one connection."""


class SocketRun(Struct, frozen=True):
    """A run whose events have not all been sent.

    Attributes:
        subscription: the position of the connection in the run.
        is_own: True if this connection started the run.
    """

    subscription: Subscription
    is_own: bool

    @property
    def is_open(self) -> bool:
        """True until the run ends."""
        return not self.subscription.run.log.has_ended

    @property
    def key(self) -> RunKey:
        """Owner, thread and id of the run."""
        return self.subscription.run.key


class SocketRuns:
    """Runs of one connection.

    Args:
        service: the engine.
        caller: the client.
        output: takes the events.
    """

    def __init__(self, service: Service, caller: Caller, output: FrameWriter) -> None:
        self._service = service
        self._caller = caller
        self._output = output
        self._runs: list[SocketRun] = []
        """Runs that stream or wait to. The first one streams."""
        self._added = asyncio.Semaphore(0)
        """Counts the runs that wait to stream."""
        self._last: RunKey | None = None
        """The run that was started or attached to last."""

    # --- events ---

    async def stream(self) -> None:
        """Send the events of one run after the other, until the client has left."""
        with contextlib.suppress(WebSocketDisconnect):  # a failure would cancel the execution of waiting frames
            while True:
                await self._added.acquire()
                await self._send_run(self._runs[0].subscription)
                self._runs.pop(0).subscription.close()

    async def _send_run(self, subscription: Subscription) -> None:
        try:
            async for batch in subscription:
                await self._output.send_events(batch)
        except AppError as error:  # the run cannot be read any further now, but it may continue
            _, thread_id, run_id = subscription.run.key
            await self._output.send_error(error, threadId=thread_id, runId=run_id)

    def close(self) -> None:
        """Stop reading all runs."""
        for run in self._runs:
            run.subscription.close()
        self._runs.clear()

    # --- starting and attaching ---

    async def start(self, request: RunRequest) -> None:
        """Admit a run and queue its events.

        ``AGUI_ON_BUSY`` decides about a run that arrives while another one is open on this connection, also if their
        threads differ. If the connection already reads the run, nothing happens, so that its events are sent once.

        Raises:
            AppError: THREAD_BUSY, or as raised by ``Service.admit``.
        """
        run_input = request.run_input
        local_run = self._service.runs.find_local(self._caller, run_input.thread_id, run_input.run_id)
        if any(run.subscription.run is local_run for run in self._runs):
            return
        open_runs = [run.key for run in self._runs if run.is_open]
        on_busy = self._service.busy_choice(run_input)
        if open_runs and on_busy is OnBusy.REJECT:
            raise AppError(ErrorCode.THREAD_BUSY, "Another run is streaming on this connection.")
        self._check_capacity()
        before, self._last = self._last, RunKey(self._caller.owner, run_input.thread_id, run_input.run_id)
        try:
            subscription = await self._service.admit(run_input, self._caller, request.size)
        except BaseException:
            self._last = before
            raise
        self._add(subscription, is_own=True)
        if on_busy is OnBusy.INTERRUPT:
            for key in reversed(open_runs):
                with contextlib.suppress(AppError):  # the run has ended in the meantime
                    await self._service.runs.cancel(self._caller, key.thread_id, key.run_id)

    async def attach(self, command: Attach) -> None:
        """Queue the events of a run.

        Raises:
            AppError: THREAD_BUSY, or as raised by ``Service.attach``.
        """
        self._check_capacity()
        subscription = await self._service.attach(self._caller, command.thread_id, command.run_id, command.after)
        self._add(subscription, is_own=False)

    def _check_capacity(self) -> None:
        if len(self._runs) > MAX_WAITING:
            raise AppError(ErrorCode.THREAD_BUSY, "Too many runs wait on this connection.")

    def _add(self, subscription: Subscription, *, is_own: bool) -> None:
        if any(run.subscription.run is subscription.run for run in self._runs):
            subscription.close()
            raise AppError(ErrorCode.THREAD_BUSY, "This run is streaming on this connection already.")
        self._runs.append(SocketRun(subscription, is_own))
        self._last = subscription.run.key
        self._added.release()

    # --- the current run ---

    def may_cancel_now(self, command: Cancel, waiting: Sequence[RunAgentInput]) -> bool:
        """True if a cancel need not wait for earlier requests: its run is open, or is not among those that wait."""
        if has_no_ids(command):
            return self._own_run() is not None
        return all(run_input.run_id != command.run_id for run_input in waiting)

    def with_ids(self, command: Cancel | Attach) -> Cancel | Attach:
        """Return the command with the ids that it refers to on this connection.

        Raises:
            AppError: RUN_NOT_FOUND if this connection has no such run.
        """
        if not has_no_ids(command):
            return command
        key = self._own_run()
        if isinstance(command, Attach):
            if (key := key or self._last) is None:
                raise AppError(ErrorCode.RUN_NOT_FOUND, "This connection has had no run; name a threadId or a runId.")
            return command.model_copy(update={"thread_id": key.thread_id})
        if key is None:
            raise AppError(ErrorCode.RUN_NOT_FOUND, "This connection has started no run that is still open.")
        return command.model_copy(update={"thread_id": key.thread_id, "run_id": key.run_id})

    def _own_run(self) -> RunKey | None:
        """Return the key of the first open run that this connection started, or None. It may be in admission."""
        for run in self._runs:
            if run.is_own and run.is_open:
                return run.key
        if self._last is None or any(run.key == self._last for run in self._runs):
            return None
        in_admission = self._service.runs.find_local(self._caller, self._last.thread_id, self._last.run_id)
        return None if in_admission is None or in_admission.log.has_ended else self._last


def has_no_ids(command: Cancel | Attach) -> bool:
    """True if a command names neither a thread nor a run."""
    return command.thread_id is None and command.run_id is None
