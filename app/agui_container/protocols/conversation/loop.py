"""The conversation loop: admit, forward, wait for answers, continue, follow other clients, cancel.

Rule: this module does I/O for every protocol; a translator turns what passes through it. A conversation continues once
all of its calls are answered, or once another client has continued the thread; then it follows the run of that client,
and answers of its own client that come later are refused. After a client has gone, ``AGUI_ON_DISCONNECT`` decides about
the run, and any other client of the thread can answer open approvals.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Generic, TypeVar

from ag_ui.core import PROTOCOL_VERSION, EventType, RunAgentInput

from agui_container.engine.engine import Engine
from agui_container.log_values import format_fields
from agui_container.ports import ClientOffer
from agui_container.protocol.errors import AppError, ErrorCode, shutting_down, suppress_errors
from agui_container.protocols.conversation import following
from agui_container.protocols.conversation.approvals import ApprovalDecision, Verdict, resume_entry
from agui_container.protocols.conversation.events import (
    RUN_ENDS,
    Cancelled,
    Completed,
    Event,
    Failed,
    Outcome,
    Unanswered,
    outcome_of,
    with_field_names,
)
from agui_container.protocols.conversation.pending import (
    CALL_EVENTS,
    Answer,
    OpenCall,
    PendingCalls,
    answers_call,
    call_id_of,
    result_message,
)
from agui_container.protocols.conversation.translator import Cancellation, ClientConnection, Opening, Translator
from agui_container.run.subscription import Subscription

SKILL = "skill"
"""Name in ``forwardedProps`` that only the first run of a conversation has."""

Request = TypeVar("Request")
In = TypeVar("In")
Out = TypeVar("Out")

logger = logging.getLogger(__name__)


class ConversationLoop(Generic[Request, In, Out]):
    """One request of a client, and all runs that answer it."""

    def __init__(
        self, service: Engine, client: ClientConnection[In, Out], translator: Translator[Request, In, Out]
    ) -> None:
        self.is_admitted = False
        self._service = service
        self._client = client
        self._caller = client.caller
        self._translator = translator
        self._pending = PendingCalls({})
        self._offer = ClientOffer()
        self._early: list[Answer] = []
        """Answers to calls that the thread waits for, until the next run has ended."""
        self._outcome: Outcome = Completed()
        self._thread_id = self._run_id = ""
        self._changed = asyncio.Event()
        self._is_running = self._is_cancelled = self._is_given_up = self._is_over = False
        self._is_half_closed = self._cancels_at_half_close = False

    # --- the client's side ---

    async def serve(self, request: Request) -> None:
        """Answer a request, and take the client's messages meanwhile. A client that sends no more cancels what waits.

        A client that waits while the server shuts down is sent the end of its conversation.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                receiving = tasks.create_task(self._receive(), name="messages of a conversation")
                try:
                    await self.answer(request)
                finally:
                    receiving.cancel()
        except asyncio.CancelledError:
            if self._client.is_open and not self._service.is_serving() and not self._is_over:
                await self._client.send(self._translator.end(Failed(shutting_down())))
            raise

    async def _receive(self) -> None:
        while (message := await self._client.receive()) is not None:
            answers = self._translator.answers(message)
            if not answers:
                logger.info("client message ignored %s", format_fields({"thread": self._thread_id}))
            await self.take(answers)
        self.half_close(cancels=True)

    async def take(self, answers: Sequence[Answer | Cancellation]) -> bool:
        """Take answers of the client. Returns True if one is kept, at the longest until the conversation ends."""
        is_kept = False
        for answer in answers:
            if isinstance(answer, Cancellation):
                await self.cancel()
            elif self._pending.add(answer):
                is_kept = True
                self._changed.set()
            elif await self._is_open(answer):
                is_kept = True
                self._early.append(answer)
            else:
                await self._client.send(self._refuse(answer))
        return is_kept

    async def _is_open(self, answer: Answer) -> bool:
        """Return True if the thread waits for the answer. The end of the run that is open asks for it again."""
        if self._pending.has(call_id_of(answer)):
            return False  # it is answered already
        calls = await following.open_calls(self._service, self._caller, self._thread_id)
        return not self._is_over and answers_call(answer, calls.get(call_id_of(answer)))

    def half_close(self, *, cancels: bool) -> None:
        """Note that the client sends no more. Calls that wait for it stay open, or are cancelled if ``cancels``."""
        self._is_half_closed, self._cancels_at_half_close = True, cancels
        self._changed.set()

    async def cancel(self) -> None:
        """Cancel the conversation: its run, or the approvals that wait. Without effect when called again."""
        if self._is_cancelled:
            return
        self._is_cancelled = True
        self._changed.set()
        if self._is_running:
            await self._cancel_run()

    def _refuse(self, answer: Answer) -> Sequence[Out]:
        logger.info("answer refused %s", format_fields({"call": call_id_of(answer)[:100]}))
        return self._translator.refuse(answer)

    # --- runs ---

    async def answer(self, request: Request) -> None:
        """Answer a request, until no call waits for the client, or the conversation is cancelled."""
        async with self._opened(request) as first:
            condition, offer = first.condition, self._offer
            subscription = await self._service.admit(first.run_input, self._caller, first.size, condition, offer)
            self.is_admitted = True
            await self._forward(subscription, first.messages)
            while self._pending:
                await self._continue()

    @asynccontextmanager
    async def _opened(self, request: Request) -> AsyncGenerator[Opening[Out], None]:
        """Open a conversation, and end it with the block. An ``AppError`` is its outcome."""
        try:
            opening = self._open(request)
            self._thread_id = opening.run_input.thread_id
            self._runs = following.ThreadRuns(self._service, self._caller, self._thread_id)
            yield opening
        except AppError as error:
            logger.info("conversation failed %s", format_fields({"thread": self._thread_id, "code": error.code}))
            self._outcome = Failed(error)
        self._pending.clear()
        self._is_over = True
        outcome = self._outcome
        if isinstance(outcome, Failed):
            outcome = Failed(with_field_names(outcome.error, self._translator.field_names))
        await self._client.send([*self._take_early(), *self._translator.end(outcome)])

    def _open(self, request: Request) -> Opening[Out]:
        self._opening = self._translator.open(request)
        tools = self._opening.run_input.tools or ()
        self._pending.offer({**dict.fromkeys(tool.name for tool in tools), **self._opening.timeouts_ms})
        return self._opening

    def offer(self, request: Request) -> None:
        """Let the next model call of the run, and the runs after it, have the tools and the context of this request."""
        changed = self._open(request).run_input
        self._offer.latest = changed.tools or (), changed.context or ()

    async def answer_open_call(self, request: Request, call: OpenCall, answer: Answer) -> None:
        """Continue the thread with the answer to a call that an earlier conversation has left open.

        The conversation ends with the run that continues. What waits then is left open in the same way.

        ``request`` has no message. It gives the client's tools for the run.
        """
        async with self._opened(request):
            self._run_id = await self._runs.latest() or ""
            self._pending.reopen(call)
            await self._client.send(self._translator.ask(self._pending))
            self._pending.add(answer)
            await self._continue()
            if self._pending:
                self._outcome = Unanswered()

    async def _forward(self, subscription: Subscription, messages: Sequence[Out], *, is_followed: bool = False) -> None:
        key, self._is_running = subscription.run.key, True
        self._thread_id, self._run_id = key.thread_id, key.run_id
        try:
            if self._is_cancelled and not self._is_given_up:
                await self._cancel_run()
            await self._client.send(messages)
            async for batch in subscription:
                if is_followed:  # the first event is there, so the thread has the run's input
                    await self._client.send(await self._close_calls())
                    is_followed = False
                await self._client.send_events(batch, self._feed)
        finally:
            self._is_running = False
            subscription.close()

    def _feed(self, kind: EventType, event: Event) -> Sequence[Out]:
        messages = self._translator.feed(kind, event)
        if kind not in CALL_EVENTS:
            return messages
        self._pending.feed(kind, event)
        if kind in RUN_ENDS:
            self._outcome = outcome_of(kind, event)
            if self._pending and not self._is_given_up:
                messages = [*messages, *self._translator.ask(self._pending)]
            return [*messages, *self._take_early()]
        return messages

    def _take_early(self) -> Sequence[Out]:
        early, self._early = self._early, []
        return [message for answer in early if not self._pending.add(answer) for message in self._refuse(answer)]

    async def _cancel_run(self) -> None:
        with suppress_errors(ErrorCode.RUN_NOT_FOUND):  # the run has ended in the meantime
            await self._service.runs.cancel(self._caller, self._thread_id, self._run_id)

    # --- between runs ---

    async def _continue(self) -> None:
        answers = await self._wait()
        if answers is None:
            await self._give_up()
            return
        next_run = answers if isinstance(answers, str) else await self._resume(answers)
        if next_run is not None:
            await self._follow(next_run)

    async def _wait(self) -> Sequence[Answer] | str | None:
        """Return all answers, the id of another client's run, or None if the client cancels or half-closes before."""
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        while not self._is_cancelled:
            seconds = self._pending.update(time.time(), loop.time() - began_at)
            if (answers := self._pending.answers) is not None:
                return answers
            if self._is_half_closed:
                return None
            if not await self._has_changed(min(seconds, following.POLL_SECONDS)):
                next_run = await self._runs.next_after(self._run_id)
                if next_run is not None:
                    return next_run
        return None

    async def _has_changed(self, seconds: float) -> bool:
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds):
                return await self._changed.wait()
        except TimeoutError:
            return False

    async def _resume(self, answers: Sequence[Answer]) -> str | None:
        """Return the id of the next run if another client has continued the thread before."""
        subscription = await self._runs.resume(self._run_id, self._next_input(answers), self._opening.size, self._offer)
        if isinstance(subscription, str):
            return subscription
        self._pending.clear()
        await self._forward(subscription, self._translator.settle(answers))
        return None

    def _next_input(self, answers: Sequence[Answer]) -> RunAgentInput:
        first = self._opening.run_input
        props = {name: value for name, value in (first.forwarded_props or {}).items() if name != SKILL}
        if self._is_given_up:
            props["approvals"] = {**(props.get("approvals") or {}), "onDenial": "cancel"}
        decisions = [it for it in answers if isinstance(it, ApprovalDecision)]
        return RunAgentInput(
            thread_id=self._thread_id,
            run_id=self._service.new_id(),
            protocol_version=PROTOCOL_VERSION,
            messages=[it for it in answers if not isinstance(it, ApprovalDecision)],
            tools=first.tools,
            context=first.context,
            forwarded_props=props,
            resume=[resume_entry(self._pending.approvals[it.call_id], it) for it in decisions] or None,
        )

    async def _give_up(self) -> None:
        """End the waiting: cancel the approvals, because open ones would block the thread, or leave all calls open."""
        if not self._is_cancelled and not self._cancels_at_half_close:
            self._outcome = Unanswered()
            self._pending.clear()
            return
        self._is_given_up = True
        answers = [ApprovalDecision(call_id, Verdict.CANCELLED) for call_id in self._pending.approvals]
        is_settled = bool(answers) and await self._resume(answers) is None
        if not is_settled or self._pending:
            self._outcome = Cancelled()
        self._pending.clear()

    async def _follow(self, run_id: str) -> None:
        """The client's own decisions come too late."""
        subscription = await self._runs.attach_next(self._run_id, run_id)
        if subscription is None:
            return
        if self._is_cancelled:  # before the client has seen anything of this run
            subscription.close()
            return
        answered = [ApprovalDecision(call_id, Verdict.ELSEWHERE) for call_id in self._pending.approvals]
        refused = [message for answer in self._pending.drop_approvals() for message in self._refuse(answer)]
        messages = [*refused, *self._translator.settle(answered)]
        await self._forward(subscription, messages, is_followed=True)

    async def _close_calls(self) -> Sequence[Out]:
        """Settle the calls of the client's tools that the thread no longer waits for. Results for them are refused.

        A run that is not the thread's latest one closes no calls. The run that has closed them is followed after it.
        """
        if not self._pending.tools:
            return []
        calls = tuple(self._pending.tools)
        since_calls = partial(following.has_call, call_id=calls[0])
        thread = await self._service.threads.messages_since(self._caller, self._thread_id, since_calls)
        if await self._runs.latest() != self._run_id:
            return []
        closed = following.closed_calls(thread, calls)
        messages: list[Out] = []
        for call_id, result in closed.items():
            if (late := self._pending.drop_tool(call_id)) is not None:
                messages += self._refuse(late)
            messages += self._translator.settle([result_message(call_id, result)])
        return messages
