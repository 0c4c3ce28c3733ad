"""A session: one conversation with an agent behind an AG-UI server.

Rule: everything that AG-UI defines works with any server. Threads, feedback, cancel by command and the
continuation after a drop are features of AGUI Container, and are used if the server's capabilities name them.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Self, Unpack
from uuid import uuid4

from ag_ui.core import AgentCapabilities, BaseEvent, Message, SystemMessage, ToolCallEndEvent
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from agui_client.backoff import Retry
from agui_client.caller import Caller
from agui_client.client_tools import ClientToolResult, run_calls
from agui_client.content import uploaded
from agui_client.errors import Declined
from agui_client.events import ToolCallEvent
from agui_client.interrupts import Answerer, Approver, approval_of
from agui_client.run_reader import RunReader
from agui_client.server import Server
from agui_client.session_options import LOCAL_URL, SessionOptions
from agui_client.session_state import Outcome, SessionState, SessionStatus
from agui_client.transport import Frame, Provided, failed_run
from agui_core.commands import FeedbackCategory, FeedbackSentiment

OnEvent = Callable[[BaseEvent], object]
"""Called for each event. May be ``async``."""

CLOSE_SECONDS = 2.0
"""Time that a new reading waits for the end of a reading that was left."""


class Feedback(BaseModel):
    """Stored feedback on an answer of the agent (a feature of AGUI Container). Times are Unix seconds."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    thread_id: str
    message_id: str
    sentiment: FeedbackSentiment
    categories: list[FeedbackCategory] = []
    notes: str | None = None
    created_at: float | None = None
    changed_at: float | None = None


class Session(SessionState):
    """One conversation with an agent.

    ``run()`` drives it until it is the user's turn, ``events()`` yields what happens and takes no action. Both may be
    left in the middle and called again. Close the session with ``aclose()``, or use it as an async context manager.

    Args:
        url: of HTTP or WebSocket, the ARN of an AgentCore runtime, or a function that makes a URL of WebSocket for each
            connection. A URL without a path gets that of AGUI Container.
        thread_id: of the conversation. One is made if you give none.
        options: see ``SessionOptions``.

    Raises:
        ValueError: the URL, the ARN or the session id cannot be right.
    """

    def __init__(
        self, url: Provided = LOCAL_URL, *, thread_id: str | None = None, **options: Unpack[SessionOptions]
    ) -> None:
        super().__init__(thread_id or str(uuid4()), options)
        self._url, self._options = url, options
        caller = Caller(url, **options)
        if caller.session_id is not None:
            self._options["session_id"] = caller.session_id  # a fork is in the same session of AgentCore
        self._server = Server(caller, options.get("retry", Retry()))
        self._reading = asyncio.Lock()
        self._calls: asyncio.Task[list[ClientToolResult]] | None = None
        self._continuation_token: str | None = None

    @classmethod
    def start(
        cls,
        message: str | Message | Sequence[Message] | None = None,
        *,
        url: Provided = LOCAL_URL,
        thread_id: str | None = None,
        system_prompt: str | None = None,
        **options: Unpack[SessionOptions],
    ) -> Self:
        """Make a session whose first turn is the agent's. ``message`` is a text, a message or several.

        ``system_prompt`` has instructions for the agent. AGUI Container drops them unless its operator trusts callers.
        """
        session = cls(url, thread_id=thread_id, **options)
        if system_prompt is not None:
            session._add(SystemMessage(id=str(uuid4()), content=system_prompt))
        session.send(message)
        return session

    @classmethod
    async def from_id(
        cls, thread_id: str, *, url: Provided = LOCAL_URL, load_messages: bool = True, **options: Unpack[SessionOptions]
    ) -> Self:
        """Return the session of an existing thread.

        With ``load_messages=False`` the server is asked for nothing, and the session has no messages.

        Raises:
            RunRefusedError: there is no such thread.
            UnsupportedError: the server keeps no threads.
        """
        session = cls(url, thread_id=thread_id, **options)
        if "state" not in options:
            session.state = None  # the thread's own counts
        try:
            if load_messages:
                await session.refresh()
        except BaseException:
            await session.aclose()
            raise
        return session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections of this session. A later call opens new ones."""
        await self._server.transport.aclose()

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def run(
        self,
        *,
        on_event: OnEvent | None = None,
        on_approval: Approver | None = None,
        on_interrupt: Answerer | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface of sessions
    ) -> Self:
        """Drive the session until it is the user's turn: read runs, run client tools, ask for answers.

        Args:
            on_event: called for each event.
            on_approval: decides about tool calls that wait for a person. None as its result leaves the call waiting.
            on_interrupt: answers any other interrupt. ``Declined`` abandons it.
            timeout: seconds for all of this. The run continues at the server if it can; ``run()`` follows it again.

        Without a handler interrupts wait in ``interrupts`` for ``answer()``.

        Raises:
            TimeoutError: ``timeout`` is over. It is a ``ConnectionLostError`` if there is no connection then.
            RunFailedError: the run ended with RUN_ERROR.
            RunRefusedError: the server refused the run or a file. The next ``run()`` sends it again.
            ConnectionLostError: the server could not be reached, or cannot continue the run.
        """
        self._failure = None  # of an earlier run
        async with self._until(_deadline(timeout), timeout):
            while True:
                async with aclosing(self.events()) as events:
                    async for event in events:
                        if on_event is not None:
                            await _result_of(on_event(event))
                if self.status is SessionStatus.CLIENT_TOOL_TURN:
                    await self._run_client_tools()
                else:
                    await self._ask(on_approval, on_interrupt)
                if not self._draft.is_due:
                    break
        if (failure := self._failure) is not None:
            raise failed_run(failure)
        return self

    async def events(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface of sessions
    ) -> AsyncGenerator[BaseEvent, None]:
        """Yield the events of the agent's turn up to the end of its run. Client tools are left to you.

        Raises as ``run``, where ``timeout`` is for this one run, and ``RuntimeError`` if the session is read already.
        """
        deadline = _deadline(timeout)
        await self._acquire()
        try:
            async with self._until(deadline, timeout):
                reader = await self._open_run()
            if reader is None:
                return
            async with aclosing(reader.events()) as events:
                while True:
                    async with self._until(deadline, timeout):
                        event = await anext(events, None)
                    if event is None:
                        break
                    self.apply(event)
                    if isinstance(event, ToolCallEndEvent) and (call := self._call(event.tool_call_id)) is not None:
                        event = ToolCallEvent.of(event, call)
                    yield event
            if self.outcome is None:
                self._end(Outcome.CANCELLED)
        finally:
            self._reading.release()

    @asynccontextmanager
    async def _until(self, deadline: float | None, seconds: float | None) -> AsyncGenerator[None, None]:
        """End the work of the block at a time. Raises an error that says what was missing."""
        limit = asyncio.timeout_at(deadline)
        try:
            async with limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            if self._reader is None:
                raise TimeoutError(f"The agent's turn did not end within {seconds:g} s.") from None
            raise self._reader.timeout_error(seconds or 0.0) from None

    async def cancel(self) -> None:
        """Cancel the agent's turn at the server. Nothing happens if it has ended.

        The run then ends for its reader. If nobody reads it, the next ``run()`` does.
        Raises ``CancelTimeoutError`` if the server did not confirm it in time.
        """
        self._draft.is_due = False
        if self._calls is not None:
            self._calls.cancel()
        if self._reader is None:
            return
        await self._reader.cancel()
        if self._reader.has_ended and self.outcome is None:
            self._end(Outcome.CANCELLED)

    async def _acquire(self) -> None:
        """Wait until nobody reads. A reading that was left ends soon, because Python closes its generator later."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._reading.acquire()
        except TimeoutError:
            raise RuntimeError("This session is being read already.") from None

    async def _open_run(self) -> RunReader | None:
        """Return the reader of the open run, or of the next one. None if it is not the agent's turn."""
        if self._is_reading:
            return self._reader
        messages = self._draft.messages if self._draft.is_due else []
        for at, message in enumerate(messages):
            messages[at] = sent = await uploaded(message, self._server)
            if sent is not message:
                self._replace(sent if it.id == sent.id else it for it in self.messages)
        if not self._draft.is_due:  # perhaps cancelled meanwhile
            return None
        run_id = str(uuid4())
        return self._read(RunReader(self._server, self.thread_id, run_id, self._run_input(run_id)))

    async def _run_client_tools(self) -> None:
        """Run the calls that wait, unless the turn is cancelled meanwhile."""
        self._calls = asyncio.create_task(run_calls(self.pending_calls, self._tools, self._tool_timeout))
        try:
            self.submit_client_tool_results(await self._calls)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._end(Outcome.CANCELLED)  # by ``cancel``
        finally:
            self._calls = None

    async def _ask(self, on_approval: Approver | None, on_interrupt: Answerer | None) -> None:
        for interrupt in [*self.interrupts]:
            approval = approval_of(interrupt, self._call(interrupt.tool_call_id or ""))
            try:
                if approval is not None and on_approval is not None:
                    decision = await _result_of(on_approval(approval))
                    if decision is not None:
                        self.answer(interrupt.id, decision)
                elif approval is None and on_interrupt is not None:
                    self.answer(interrupt.id, await _result_of(on_interrupt(interrupt)))
            except Declined:
                self.abandon(interrupt.id)

    # --- features of the server ---------------------------------------------------------------------------------------

    async def capabilities(self) -> AgentCapabilities | None:
        """Return what the server can do. None if it does not answer that question."""
        return await self._server.retrying(self._server.capabilities)

    async def command(self, command: str, /, **fields: object) -> Frame:
        """Send any command that the capabilities name, for example ``threads.list``, and return its result.

        Raises:
            UnsupportedError: the server does not know the command.
            RunRefusedError: the server refuses it.
        """
        return await self._server.command(command, **fields)

    async def refresh(self) -> Self:
        """Take over what has changed in the thread since the last time. Raises as ``command``."""
        if self._continuation_token is None:
            thread = await self.command("threads.get", threadId=self.thread_id)
        else:
            thread = await self.command("threads.delta", threadId=self.thread_id, since=self._continuation_token)
            if self.interrupts or thread.get("messages"):  # a delta does not say what waits
                whole = await self.command("threads.get", threadId=self.thread_id, messages=False)
                thread["waiting"] = whole.get("waiting", [])
        self._take_thread(thread)
        token, active = thread.get("continuationToken"), thread.get("activeRunId")
        self._continuation_token = token if isinstance(token, str) else None
        if isinstance(active, str) and not self._is_reading:
            self._read(RunReader(self._server, self.thread_id, active))
        return self

    async def fork(self, message: str | int) -> Self:
        """Return a session with a copy of the conversation up to a message, named by its id or its index.

        Raises:
            LookupError: there is no such message here.
            RunRefusedError: the server refuses it.
        """
        new_id = str(uuid4())
        message_id = self._message_id(message)
        await self.command("threads.fork", threadId=self.thread_id, messageId=message_id, newThreadId=new_id)
        return await type(self).from_id(new_id, url=self._url, **self._options)

    async def submit_feedback(
        self,
        message: str | int,
        sentiment: FeedbackSentiment | str,
        categories: Iterable[FeedbackCategory | str] = (),
        notes: str | None = None,
    ) -> Feedback:
        """Say what was good or bad about a message of the agent, named by its id or its index. Raises as ``fork``."""
        fields: dict[str, object] = {"threadId": self.thread_id, "messageId": self._message_id(message)}
        if notes is not None:
            fields["notes"] = notes
        result = await self.command("threads.feedback", **fields, sentiment=sentiment, categories=list(categories))
        return Feedback.model_validate(result)

    async def rename(self, title: str | None) -> Self:
        """Give the thread a title. None removes it. Raises as ``command``."""
        result = await self.command("threads.rename", threadId=self.thread_id, title=title)
        self._take_thread(result)
        return self

    async def delete(self) -> None:
        """Delete the thread at the server, and cancel its active run. Raises as ``command``."""
        await self.command("threads.delete", threadId=self.thread_id)


async def _result_of(value: object) -> object:
    return await value if inspect.isawaitable(value) else value


def _deadline(seconds: float | None) -> float | None:
    return None if seconds is None else asyncio.get_running_loop().time() + seconds
