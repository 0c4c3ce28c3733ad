"""Runs of one WebSocket: those that it starts, those that it attaches to, and the one that streams.

Rule: runs do not interleave. Their events are sent one run after the other, in the order in which they were added.

Rule: the current run is the first open run that this connection started, or without one the run that it used last. A
cancel without ids means the current run while it is open and its own, and an attach without ids the thread of it.
"""

import asyncio
import contextlib
from collections.abc import Collection

from msgspec import Struct
from starlette.websockets import WebSocketDisconnect

from agui_container.engine.engine import Engine
from agui_container.ports import Caller
from agui_container.ports.records import RunKey
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import RunRequest
from agui_container.run.policy import OnBusy
from agui_container.run.subscription import Subscription
from agui_container.web.formats import is_legacy_client, reduced
from agui_container.web.websocket_output import FrameWriter
from agui_core.commands import Attach, Cancel

MAX_WAITING = 16
"""Runs that may wait for their turn on one connection."""


class SocketRun(Struct, frozen=True):
    """A run whose events have not all been sent."""

    subscription: Subscription
    is_own: bool
    is_of_legacy_client: bool

    @property
    def is_open(self) -> bool:
        return not self.subscription.run.log.has_ended

    @property
    def key(self) -> RunKey:
        return self.subscription.run.key


class SocketRuns:
    def __init__(self, service: Engine, caller: Caller, output: FrameWriter) -> None:
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
        with contextlib.suppress(WebSocketDisconnect):  # a failure would cancel the execution of waiting frames
            while True:
                await self._added.acquire()
                await self._send_run(self._runs[0])
                self._runs.pop(0).subscription.close()

    async def _send_run(self, run: SocketRun) -> None:
        try:
            async for batch in run.subscription:
                await self._output.send_events(reduced(batch) if run.is_of_legacy_client else batch)
        except AppError as error:  # the run cannot be read any further now, but it may continue
            _, thread_id, run_id = run.key
            await self._output.send_error(error, threadId=thread_id, runId=run_id)

    def close(self) -> None:
        for run in self._runs:
            run.subscription.close()
        self._runs.clear()

    # --- starting and attaching ---

    async def start(self, request: RunRequest) -> None:
        """Admit a run and queue its events.

        ``AGUI_ON_BUSY`` decides about a run that arrives while another one is open on this connection, also if their
        threads differ. If the connection already reads the run, nothing happens, so that its events are sent once.

        Raises:
            AppError: THREAD_BUSY, or as raised by ``Engine.admit``.
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
        self._add(SocketRun(subscription, is_own=True, is_of_legacy_client=is_legacy_client(request)))
        if on_busy is OnBusy.INTERRUPT:
            for key in reversed(open_runs):
                with contextlib.suppress(AppError):  # the run has ended in the meantime
                    await self._service.runs.cancel(self._caller, key.thread_id, key.run_id)

    async def attach(self, command: Attach, *, is_of_legacy_client: bool) -> None:
        """Queue the events of a run. Raises ``AppError`` THREAD_BUSY, or as ``attach`` of the engine."""
        self._check_capacity()
        subscription = await self._service.attach(self._caller, command.thread_id, command.run_id, command.after)
        self._add(SocketRun(subscription, is_own=False, is_of_legacy_client=is_of_legacy_client))

    def _check_capacity(self) -> None:
        if len(self._runs) > MAX_WAITING:
            raise AppError(ErrorCode.THREAD_BUSY, "Too many runs wait on this connection.")

    def _add(self, added: SocketRun) -> None:
        if any(run.subscription.run is added.subscription.run for run in self._runs):
            added.subscription.close()
            raise AppError(ErrorCode.THREAD_BUSY, "This run is streaming on this connection already.")
        self._runs.append(added)
        self._last = added.key
        self._added.release()

    # --- the current run ---

    def may_cancel_now(self, command: Cancel, waiting: Collection[str]) -> bool:
        """True if a cancel need not wait for earlier requests: its run is open, or is not among those that wait."""
        return self._own_run() is not None if has_no_ids(command) else command.run_id not in waiting

    def with_ids(self, command: Cancel | Attach) -> Cancel | Attach:
        """Return the command with the ids that it refers to on this connection. Raises ``AppError`` RUN_NOT_FOUND."""
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
        for run in self._runs:
            if run.is_own and run.is_open:
                return run.key
        if self._last is None or any(run.key == self._last for run in self._runs):
            return None
        in_admission = self._service.runs.find_local(self._caller, self._last.thread_id, self._last.run_id)
        return None if in_admission is None or in_admission.log.has_ended else self._last


def has_no_ids(command: Cancel | Attach) -> bool:
    return command.thread_id is None and command.run_id is None
