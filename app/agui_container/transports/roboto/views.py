"""Sessions as clients see them, and polls that wait for a change by an active run.

Rule: a session consists of the stored thread and the events so far of its active run. A turn ends when its end is
stored, so that a message that was shown is never missing in between. A poll that waits holds no session.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ag_ui.core import BaseEvent
from msgspec import Struct

from agui_container.engine.admission.quota import IdentityQuota, Limit
from agui_container.engine.log.subscription import Subscription
from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.ports.records import ThreadKey, ThreadRecord, ThreadStatus
from agui_container.protocol.errors import AppError
from agui_container.runtime.log_values import format_fields
from agui_container.runtime.offload import offload_if_large
from agui_container.transports.conversation.approvals import approval_request
from agui_container.transports.conversation.translator import Opening
from agui_container.transports.roboto.position import NOTHING, Position
from agui_container.transports.roboto.records import SessionView, make_delta
from agui_container.transports.roboto.snapshot import SessionSnapshot
from agui_container.transports.roboto.translator import waiting_names
from agui_container.transports.roboto.turn import FollowedTurn

HOLD_SECONDS = 1.0
"""Seconds for which a poll waits for a change. A client looks at the time limit of its user only between polls."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


class SessionClient(Struct, frozen=True):
    """Sender of a request.

    Attributes:
        quota: amounts in use of the caller.
        knows_context: True if the client knows blocks of the type ``client_context``.
        knows_reset: True if the client can drop messages that it has.
        errors_as_text: True if the client does not show blocks of the type ``error``.
    """

    caller: Caller
    quota: IdentityQuota
    knows_context: bool
    knows_reset: bool
    errors_as_text: bool


class SessionReader:
    """Reader of the sessions of one engine. Polls that wait are answered when the engine drains."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._turns: dict[ThreadKey, FollowedTurn] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        service.call_on_drain(self._wake_polls)

    async def aclose(self) -> None:
        """Stop following runs. The engine ends the runs themselves."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- deltas ---

    async def delta(self, client: SessionClient, thread_id: str, token: str | None) -> bytes:
        """Return the changes since a token, as JSON. While a run changes nothing, wait ``HOLD_SECONDS`` for a change.

        Nothing of the session but the answer is kept meanwhile. The poll counts as a stream of its caller.
        """
        position = Position.parse(token) if token else NOTHING
        key, loop = ThreadKey(client.caller.owner, thread_id), asyncio.get_running_loop()
        deadline = loop.time() + HOLD_SECONDS
        find_changes = partial(make_delta, position=position, knows_reset=client.knows_reset)
        while True:
            turn = self._turns.get(key)
            change = None if turn is None else turn.change
            delta = await self.read(client, thread_id, find_changes)
            if not delta.may_wait:
                return delta.json
            if change is not None:
                with client.quota.acquire(Limit.STREAMS):
                    if not await self._wait(change, deadline):
                        return delta.json
            elif key not in self._turns:
                return delta.json

    def _wake_polls(self) -> None:
        for turn in self._turns.values():
            turn.announce()

    async def _wait(self, change: asyncio.Event, deadline: float) -> bool:
        """Wait until the session may have changed. Returns False if it has not until the deadline.

        A change by another process is seen by the next poll.
        """
        if self._service.is_draining:
            return False
        try:
            async with asyncio.timeout_at(deadline):
                await change.wait()
        except TimeoutError:
            return False
        return True

    # --- sessions ---

    async def read(self, client: SessionClient, thread_id: str, work: Callable[[SessionView], T]) -> T:
        """Apply a function to the current state of a session, in a worker thread if the session is large.

        Raises:
            AppError: THREAD_NOT_FOUND; RATE_LIMIT_EXCEEDED if too many bytes are in flight.
        """
        snapshot = await self._snapshot(client, thread_id)
        with client.quota.acquire(Limit.BYTES_IN_FLIGHT, snapshot.size):
            return await offload_if_large(client.caller.identity, snapshot.size, apply_to_view, snapshot, work, client)

    async def _snapshot(self, client: SessionClient, thread_id: str) -> SessionSnapshot:
        caller = client.caller
        thread = await self._service.threads.record(caller, thread_id)
        turn = self._turns.get(thread.key) or await self._join(client, thread)
        if turn is not None:
            turn.note_poll()
            delta = await self._service.threads.delta(caller, thread_id, messages=False)
            if (messages := turn.messages) is not None:
                return SessionSnapshot(delta, ThreadStatus.AGENT_TURN, delta.size + turn.size, messages, turn.active)
        is_users_turn = thread.status is ThreadStatus.USER_TURN
        waiting = await self._waiting(caller, thread_id) if is_users_turn else ""
        delta = await self._service.threads.delta(caller, thread_id)
        status = delta.thread.status if turn is None else ThreadStatus.AGENT_TURN
        return SessionSnapshot(delta, status, delta.size, waiting=waiting if status is ThreadStatus.USER_TURN else "")

    async def _waiting(self, caller: Caller, thread_id: str) -> str:
        """Return the names of the calls of a session that wait for an answer through another protocol."""
        waiting = await self._service.threads.waiting(caller, thread_id)
        return waiting_names(approval_request(interrupt.model_dump(by_alias=True)) for interrupt in waiting)

    def is_active(self, thread: ThreadRecord) -> bool:
        """True while a run of the thread is active."""
        return thread.key in self._turns or thread.status is ThreadStatus.AGENT_TURN

    # --- runs ---

    async def begin(self, client: SessionClient, request: Opening[BaseEvent]) -> None:
        """Begin the run of a request, and follow it to its end. Raises ``AppError`` as ``Service.admit``."""
        turn = FollowedTurn(self._service, client.caller, is_own=True)
        self._follow(turn, await turn.admit(request))

    async def _join(self, client: SessionClient, thread: ThreadRecord) -> FollowedTurn | None:
        """Follow the thread's active run. Returns None if there is none, or if it cannot be read."""
        if thread.active_run is None:
            return None
        try:
            subscription = await self._service.attach(client.caller, thread.key.thread_id, thread.active_run, 0)
        except AppError:
            return None
        if (turn := self._turns.get(thread.key)) is not None:  # another poll has begun to follow it in the meantime
            subscription.close()
            return turn
        return self._follow(FollowedTurn(self._service, client.caller, is_own=False), subscription)

    def _follow(self, turn: FollowedTurn, subscription: Subscription) -> FollowedTurn:
        key = subscription.run.key.thread
        self._turns[key] = turn
        task = asyncio.create_task(self._read(key, turn, subscription), name="roboto turn")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return turn

    async def _read(self, key: ThreadKey, turn: FollowedTurn, subscription: Subscription) -> None:
        try:
            await turn.follow(subscription)
        except AppError as error:
            fields = {"thread": key.thread_id, "code": error.code}
            logger.warning("roboto turn cannot be followed %s", format_fields(fields))
        except Exception:
            logger.exception("roboto turn failed %s", format_fields({"thread": key.thread_id}))
        finally:
            if self._turns.get(key) is turn:
                del self._turns[key]


def apply_to_view(snapshot: SessionSnapshot, work: Callable[[SessionView], T], client: SessionClient) -> T:
    """Call a function with a client's view of a session."""
    return work(snapshot.view(knows_context=client.knows_context, errors_as_text=client.errors_as_text))
