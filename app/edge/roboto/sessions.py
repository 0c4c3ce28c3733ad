"""The sessions of a server: what clients ask of them, and what is read of those that go on.

Rule: whatever changes a session goes through the engine's door. So a session is a thread like any other, which can be
read, continued or cancelled through every protocol.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import anyio.to_thread
from ag_ui.core import Message as AguiMessage
from ag_ui.core import RunAgentInput, UserMessage

from app.core.commands import ThreadsFeedback, ThreadsFork, ThreadsGet
from app.core.errors import AppError, Code
from app.core.history import MESSAGE
from app.edge.roboto import inputs
from app.edge.roboto.messages import ASSISTANT, Active, Message, shown, unanswered
from app.edge.roboto.notes import LOCAL, Failure, MessageNotes, Notes, written
from app.edge.roboto.position import NOTHING, Position
from app.edge.roboto.records import (
    JSON,
    View,
    delta_record,
    feedback_record,
    goal_records,
    session_record,
    unchanged_record,
)
from app.edge.roboto.requests import (
    FeedbackRequest,
    ForkRequest,
    SendRequest,
    StartRequest,
    ToolResultsRequest,
    goals_of,
    read,
)
from app.edge.roboto.turn import Turn
from app.engine.reader import Reader
from app.engine.service import Service
from app.ports import Caller
from app.ports.conversation import Delta, ThreadRecord, ThreadStatus
from app.ports.records import ThreadKey

HOLD_SECONDS = 20.0
"""How long a delta is held back while nothing has changed. Clients wait for 30 s."""

POLLING_SECONDS = 2.0
"""A client that asks again so soon after it was told that nothing has changed is polling, and is made to wait."""

LOOK_SECONDS = 2.0
"""How often a session where no run is active is looked at for the sake of clients that wait."""

END_SECONDS = 5.0
END_LOOK_SECONDS = 0.01
"""How long the end of a run may be on its way to the store, and how often that is looked at."""

LARGE_BYTES = 100_000
"""Messages above this are read in a thread."""

logger = logging.getLogger(__name__)

BUSY = "The session is not waiting for a message: the agent is at work."


class Sessions:
    """Sessions over one engine. ``aclose`` ends what is read of them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._turns: dict[ThreadKey, Turn] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._resting: dict[ThreadKey, set[asyncio.Event]] = {}

    async def aclose(self) -> None:
        """Stop reading runs. The engine ends them, or has ended them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- requests that begin a turn ---

    async def start(self, caller: Caller, body: object, size: int, org_id: str | None, *, with_context: bool) -> JSON:
        """Begin a session. Returns its record; raises ``AppError`` as ``Service.admit``."""
        request = read(StartRequest, body)
        goals = goals_of(request)
        notes = Notes(
            tools=Notes().with_tools(request.client_tools),
            scope=request.analysis_scope,
            model_profile=request.model_profile,
            visibility=request.visibility,
            org_id=org_id or LOCAL,
        )
        thread_id, run_id = new_session_id(), self._service.new_id()
        run_input = inputs.started(inputs.Run(thread_id, run_id, time.time(), notes, goals), request)
        reader = await self._admit(caller, run_input, size)
        await self._follow(caller, run_input, reader, notes.model_dump(mode="json"))
        return session_record(await self._view(caller, thread_id, with_context=with_context))

    async def send(self, caller: Caller, thread_id: str, body: object, size: int) -> None:
        """Speak to a session. Raises ``AppError`` VALIDATION_ERROR while the agent is at work, and as ``start``."""
        request = read(SendRequest, body)
        goals = goals_of(request)
        thread = (await self._service.threads.delta(caller, thread_id, messages=False)).thread
        if self._is_active(thread):
            raise AppError(Code.VALIDATION_ERROR, BUSY)
        notes = Notes.of(thread.metadata)
        facts = {"tools": notes.with_tools(request.client_tools), "scope": request.analysis_scope or notes.scope}
        notes = notes.model_copy(update=facts)
        run = inputs.Run(thread_id, self._service.new_id(), time.time(), notes, goals)
        run_input = inputs.sent(run, request)
        await self._follow(caller, run_input, await self._admit(caller, run_input, size), facts)

    async def answer(self, caller: Caller, thread_id: str, body: object, size: int) -> None:
        """Go on with the results of client tools.

        Raises:
            AppError: VALIDATION_ERROR for a result that the session does not wait for, and as ``start``.
        """
        request = read(ToolResultsRequest, body)
        delta = await self._service.threads.delta(caller, thread_id)
        notes = Notes.of(delta.thread.metadata)
        facts = {"tools": notes.with_tools(request.client_tools)}
        notes = notes.model_copy(update=facts)
        if not request.tool_results:
            await self.annotate(caller, thread_id, **facts)
            return
        if self._is_active(delta.thread) or delta.thread.status is not ThreadStatus.CLIENT_TOOL_TURN:
            raise AppError(Code.VALIDATION_ERROR, "The session is not waiting for results of client tools.")
        check_results(request, unanswered(await parsed(delta)))
        run = inputs.Run(thread_id, self._service.new_id(), time.time(), notes)
        run_input = inputs.answered(run, request.tool_results)
        await self._follow(caller, run_input, await self._admit(caller, run_input, size), facts)

    async def _admit(self, caller: Caller, run_input: RunAgentInput, size: int) -> Reader:
        with refused_while_busy():
            return await self._service.admit(run_input, caller, size)

    # --- other requests ---

    async def get(self, caller: Caller, thread_id: str, *, with_messages: bool, with_context: bool) -> JSON:
        """Return a session's record."""
        view = await self._view(caller, thread_id, with_context=with_context)
        return session_record(view, with_messages=with_messages)

    async def give_feedback(self, caller: Caller, thread_id: str, at: int, body: object) -> JSON:
        """Keep an opinion on a message. Returns its record."""
        request = read(FeedbackRequest, body)
        view = await self._view(caller, thread_id)
        message = message_at(view, at, Code.THREAD_NOT_FOUND)
        if message.role != ASSISTANT or not message.ids:
            raise AppError(Code.VALIDATION_ERROR, "message_sequence_num: is not an answer of the assistant.")
        fields = {"threadId": thread_id, "messageId": message.ids[-1], **request.model_dump(mode="json")}
        given = await self._service.threads.answer(caller, read(ThreadsFeedback, fields))
        return feedback_record(view, at, message.ids[-1], given)

    async def fork(self, caller: Caller, thread_id: str, body: object, *, with_context: bool) -> JSON:
        """Copy a session up to a message, that message included. Returns the copy's record."""
        at = read(ForkRequest, body).message_sequence_num
        view = await self._view(caller, thread_id)
        message_at(view, at, Code.VALIDATION_ERROR)
        last = next(message.ids[-1] for message in reversed(view.messages[: at + 1]) if message.ids)
        command = ThreadsFork(thread_id=thread_id, message_id=last, new_thread_id=new_session_id())
        with refused_while_busy():
            new_id = str((await self._service.threads.answer(caller, command))["threadId"])
        facts = view.notes.model_dump(mode="json", exclude={"visibility", "pinned_at", "forked_from"})
        await self.annotate(caller, new_id, **facts, forked_from=at)
        return session_record(await self._view(caller, new_id, with_context=with_context))

    async def annotate(self, caller: Caller, thread_id: str, **facts: object) -> None:
        """Keep facts of a session. Raises ``AppError`` THREAD_NOT_FOUND."""
        await self._service.threads.annotate(caller, thread_id, written(**facts))

    async def pin(self, caller: Caller, thread_id: str, *, is_pinned: bool) -> None:
        """Pin a session, or unpin it. Raises ``AppError`` THREAD_NOT_FOUND."""
        await self.annotate(caller, thread_id, pinned_at=time.time() if is_pinned else None)

    # --- deltas ---

    async def delta(
        self, caller: Caller, thread_id: str, token: str | None, *, knows_reset: bool, with_context: bool
    ) -> JSON:
        """Return what is new behind a token. While nothing is, wait for it, for ``HOLD_SECONDS`` at most."""
        position = Position.parse(token) if token else NOTHING
        key, loop = ThreadKey(caller.owner, thread_id), asyncio.get_running_loop()
        deadline = loop.time() + HOLD_SECONDS
        while True:
            with self._change(key) as change:
                view = await self._view(caller, thread_id, with_context=with_context)
                record = delta_record(view, position, knows_reset=knows_reset)
                if record is not None:
                    return record
                left = deadline - loop.time()
                if left <= 0 or not is_held_back(view, position, time.time()) or self._service.is_draining:
                    return unchanged_record(view, time.time())
                await self._wait(caller, view, change, left)

    @contextmanager
    def _change(self, key: ThreadKey) -> Iterator[asyncio.Event]:
        """An event that is set when there may be something new."""
        if (turn := self._turns.get(key)) is not None:
            yield turn.change
            return
        change = asyncio.Event()
        waiting = self._resting.setdefault(key, set())
        waiting.add(change)
        try:
            yield change
        finally:
            waiting.discard(change)
            if not waiting and self._resting.get(key) is waiting:
                del self._resting[key]

    async def _wait(self, caller: Caller, view: View, change: asyncio.Event, seconds: float) -> None:
        """Wait until the session may have changed. What another process does is only seen in the store."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        is_followed = view.thread.key in self._turns
        while (left := deadline - loop.time()) > 0 and not self._service.is_draining:
            _, waiting = await asyncio.wait(
                [task := asyncio.ensure_future(change.wait())], timeout=left if is_followed else min(left, LOOK_SECONDS)
            )
            if not waiting:
                return
            task.cancel()
            if is_followed:
                continue
            found = await self._service.threads.delta(caller, view.thread.key.thread_id, messages=False)
            if found.thread != view.thread:
                return

    # --- what is shown ---

    async def _view(self, caller: Caller, thread_id: str, *, with_context: bool = False) -> View:
        """Read a session as it is. Raises ``AppError`` THREAD_NOT_FOUND."""
        key = ThreadKey(caller.owner, thread_id)
        delta = await self._service.threads.delta(caller, thread_id, messages=False)
        turn = self._turns.get(key) or await self._join(caller, delta.thread)
        if turn is not None:
            turn.polled()
        messages = None if turn is None else turn.messages
        if messages is None:
            delta = await self._service.threads.delta(caller, thread_id)
            messages = await parsed(delta)
        status = delta.thread.status if turn is None else ThreadStatus.AGENT_TURN
        active = None if status is not ThreadStatus.AGENT_TURN else Active() if turn is None else turn.active
        notes = Notes.of(delta.thread.metadata)
        rows = shown(messages, notes, delta.thread.created_at, active, with_context=with_context)
        goals = goal_records(delta.goals or (), rows, declared_in(messages))
        calls = unanswered(messages) if status is ThreadStatus.USER_TURN else {}
        activity = await self._question(caller, thread_id, calls) if calls else None
        return View(delta.thread, notes, status, rows, goals, activity)

    async def _question(self, caller: Caller, thread_id: str, calls: Mapping[str, str]) -> str | None:
        """Say which calls wait for an answer that these clients cannot give, such as an approval."""
        found = await self._service.threads.answer(caller, ThreadsGet(thread_id=thread_id, messages=False))
        return (
            f"Waiting for an answer through another protocol: {', '.join(calls.values())}" if found["waiting"] else None
        )

    def _is_active(self, thread: ThreadRecord) -> bool:
        return thread.key in self._turns or thread.status is ThreadStatus.AGENT_TURN

    # --- runs ---

    async def _follow(
        self, caller: Caller, run_input: RunAgentInput, reader: Reader, facts: Mapping[str, object]
    ) -> None:
        """Read a run that a client of this protocol began, and keep the facts that came with it."""
        self._begin(caller, run_input.thread_id, run_input.run_id, reader, is_own=True)
        await self.annotate(caller, run_input.thread_id, **facts)

    async def _join(self, caller: Caller, thread: ThreadRecord) -> Turn | None:
        """Read the thread's active run; None where there is none, or where it cannot be read."""
        if thread.active_run is None:
            return None
        try:
            reader = await self._service.attach(caller, thread.key.thread_id, thread.active_run, 0)
        except AppError:
            return None
        if (turn := self._turns.get(thread.key)) is not None:  # another poll was faster
            reader.close()
            return turn
        return self._begin(caller, thread.key.thread_id, thread.active_run, reader, is_own=False)

    def _begin(self, caller: Caller, thread_id: str, run_id: str, reader: Reader, *, is_own: bool) -> Turn:
        key = ThreadKey(caller.owner, thread_id)
        turn = Turn(
            run_id,
            reader,
            is_own=is_own,
            before=partial(self._before, caller, thread_id, run_id),
            on_end=partial(self._ended, caller, thread_id, run_id),
        )
        self._turns[key] = turn
        task = asyncio.create_task(self._read(key, turn), name=f"roboto turn {run_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        for change in self._resting.get(key, ()):
            change.set()
        return turn

    async def _read(self, key: ThreadKey, turn: Turn) -> None:
        try:
            await turn.follow()
        except Exception:
            logger.exception("turn cannot be read thread=%s", key.thread_id)
        finally:
            if self._turns.get(key) is turn:
                del self._turns[key]

    async def _before(self, caller: Caller, thread_id: str, run_id: str) -> Sequence[AguiMessage] | None:
        """The thread's messages before a run that is active; None once it is over."""
        delta = await self._service.threads.delta(caller, thread_id)
        return await parsed(delta) if delta.thread.active_run == run_id else None

    async def _ended(self, caller: Caller, thread_id: str, run_id: str, failure: Failure | None) -> None:
        """Wait until the end of a run is stored, and note why it failed."""
        deadline = asyncio.get_running_loop().time() + END_SECONDS
        delta = await self._service.threads.delta(caller, thread_id, messages=failure is not None)
        while delta.thread.active_run == run_id and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(END_LOOK_SECONDS)
            delta = await self._service.threads.delta(caller, thread_id, messages=failure is not None)
        if failure is not None and delta.messages:
            failures = Notes.of(delta.thread.metadata).with_failure(delta.messages[-1].id, failure)
            await self.annotate(caller, thread_id, failures=failures)


@contextmanager
def refused_while_busy() -> Iterator[None]:
    """Refuse what comes while the agent is at work as a mistake of the client, as Roboto does."""
    try:
        yield
    except AppError as error:
        if error.code is not Code.THREAD_BUSY:
            raise
        raise AppError(Code.VALIDATION_ERROR, BUSY) from None


def new_session_id() -> str:
    """Make an id in the form of Roboto's."""
    return f"ags_{uuid.uuid4().hex}"


def is_held_back(view: View, position: Position, now: float) -> bool:
    """Tell whether an answer without news waits: while the agent is at work, and for a client that keeps polling."""
    return view.status is ThreadStatus.AGENT_TURN or now - position.unchanged_at <= POLLING_SECONDS


def message_at(view: View, at: int, code: Code) -> Message:
    """Return a message that is complete. Raises ``AppError`` with this code where there is none of this index."""
    if not 0 <= at < len(view.messages):
        raise AppError(code, "message_sequence_num: there is no such message in this session.")
    message = view.messages[at]
    if not message.is_final:
        raise AppError(Code.VALIDATION_ERROR, "message_sequence_num: this message is still being generated.")
    return message


def check_results(request: ToolResultsRequest, calls: Mapping[str, str]) -> None:
    """Raise ``AppError`` VALIDATION_ERROR for a result of a call that is unknown, or that has one already."""
    waiting = dict(calls)
    for at, result in enumerate(request.tool_results):
        if waiting.pop(result.tool_use_id, None) is None:
            message = f"tool_results.{at}.tool_use_id: no call of this id is waiting for a result."
            raise AppError(Code.VALIDATION_ERROR, message)


def declared_in(messages: Sequence[AguiMessage]) -> dict[str, tuple[str, Sequence[JSON]]]:
    """Return the goals that messages declare: by run, the message's id and the goals."""
    found: dict[str, tuple[str, Sequence[JSON]]] = {}
    for message in messages:
        if isinstance(message, UserMessage):
            notes = MessageNotes.of(message.metadata)
            if notes.run_id is not None:
                found[notes.run_id] = message.id, notes.goals
    return found


async def parsed(delta: Delta) -> list[AguiMessage]:
    """Return a thread's messages, read off the event loop where there is much of them."""
    data = [message.data for message in delta.messages]
    if sum(map(len, data)) <= LARGE_BYTES:
        return list(map(MESSAGE.validate_json, data))
    return await anyio.to_thread.run_sync(lambda: list(map(MESSAGE.validate_json, data)))
