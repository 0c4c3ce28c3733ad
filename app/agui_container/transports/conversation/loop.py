"""The conversation loop: admit, forward, wait for answers, continue, follow other clients, cancel.

Rule: this module does I/O for every protocol; a translator turns what passes through it. A conversation continues once
all of its calls are answered, or once another client has continued the thread; then it follows the run of that client,
and answers of its own client that come later are refused. After a client has gone, ``AGUI_ON_DISCONNECT`` decides about
the run, and any other client of the thread can answer open approvals.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import Generic, TypeVar

from ag_ui.core import PROTOCOL_VERSION, EventType, RunAgentInput

from agui_container.engine.log.subscription import Subscription
from agui_container.engine.service import Service
from agui_container.protocol.errors import AppError, ErrorCode, shutting_down
from agui_container.runtime.log_values import format_fields
from agui_container.transports.conversation import following
from agui_container.transports.conversation.approvals import ApprovalDecision, Verdict, resume_entry
from agui_container.transports.conversation.events import (
    RUN_ENDS,
    Cancelled,
    Completed,
    Event,
    Failed,
    Outcome,
    Unanswered,
    outcome_of,
)
from agui_container.transports.conversation.pending import CALL_EVENTS, Answer, PendingCalls, call_id_of, result_message
from agui_container.transports.conversation.translator import Cancellation, ClientConnection, Opening, Translator

Request = TypeVar("Request")
In = TypeVar("In")
Out = TypeVar("Out")

logger = logging.getLogger(__name__)


class ConversationLoop(Generic[Request, In, Out]):
    """One request of a client, and all runs that answer it.

    Attributes:
        is_admitted: True once the engine has admitted the request.
    """

    def __init__(
        self, service: Service, client: ClientConnection[In, Out], translator: Translator[Request, In, Out]
    ) -> None:
        self.is_admitted = False
        self._service = service
        self._client = client
        self._caller = client.caller
        self._translator = translator
        self._pending = PendingCalls({})
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
            else:
                await self._client.send(self._refuse(answer))
        return is_kept

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
        try:
            subscription = await self.admit(request)
        except AppError as error:
            await self._end(Failed(error))
        else:
            await self.forward(subscription, self._opening.messages)

    async def admit(self, request: Request) -> Subscription:
        """Admit the first run of a request. Returns its events, for ``forward``.

        Raises:
            AppError: as ``Translator.open`` and ``Service.admit``. The conversation has not begun then.
        """
        self._opening: Opening[Out] = self._translator.open(request)
        run_input = self._opening.run_input
        self._runs = following.ThreadRuns(self._service, self._caller, run_input.thread_id)
        timeouts = self._opening.timeouts_ms
        self._pending = PendingCalls({tool.name: timeouts.get(tool.name) for tool in run_input.tools or ()})
        subscription = await self._service.admit(run_input, self._caller, self._opening.size, self._opening.condition)
        self.is_admitted = True
        return subscription

    async def forward(self, subscription: Subscription, messages: Sequence[Out] = ()) -> None:
        """Forward the events of a run, after these messages, and of the runs that continue it, to the end.

        The run is the one that ``admit`` has begun. A client that has half-closed can also be shown one of another
        client, because it continues none.
        """
        try:
            await self._forward(subscription, messages)
            while self._pending:
                await self._continue()
        except AppError as error:
            logger.info("conversation failed %s", format_fields({"run": self._run_id, "code": error.code}))
            self._outcome = Failed(error)
        await self._end(self._outcome)

    async def _end(self, outcome: Outcome) -> None:
        self._pending.clear()
        self._is_over = True
        await self._client.send(self._translator.end(outcome))

    async def _forward(self, subscription: Subscription, messages: Sequence[Out], *, is_followed: bool = False) -> None:
        """Forward the events of a run, after these messages. A followed run is one of another client."""
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
            self._client.leave(subscription)

    def _feed(self, kind: EventType, event: Event) -> Sequence[Out]:
        messages = self._translator.feed(kind, event)
        if kind not in CALL_EVENTS:
            return messages
        self._pending.feed(kind, event)
        if kind in RUN_ENDS:
            self._outcome = outcome_of(kind, event)
            if self._pending and not self._is_given_up:
                return [*messages, *self._translator.ask(self._pending)]
        return messages

    async def _cancel_run(self) -> None:
        try:
            await self._service.runs.cancel(self._caller, self._thread_id, self._run_id)
        except AppError as error:
            if error.code is not ErrorCode.RUN_NOT_FOUND:  # the run has ended in the meantime
                raise

    # --- between runs ---

    async def _continue(self) -> None:
        """Forward the events of the next run: with this client's answers, or begun by another client of the thread."""
        answers = await self._wait()
        if answers is None:
            await self._give_up()
            return
        next_run = answers if isinstance(answers, str) else await self._resume(answers)
        if next_run is not None:
            await self._follow(next_run)

    async def _wait(self) -> Sequence[Answer] | str | None:
        """Wait for all answers, or for a run of another client.

        Returns:
            The answers, the id of the other client's run, or None if the client cancels or half-closes before.
        """
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
        """Wait for a message of the client, for so many seconds at most."""
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds):
                return await self._changed.wait()
        except TimeoutError:
            return False

    async def _resume(self, answers: Sequence[Answer]) -> str | None:
        """Continue with answers. Returns the id of the next run if another client has continued the thread before."""
        subscription = await self._runs.resume(self._run_id, self._next_input(answers), self._opening.size)
        if isinstance(subscription, str):
            return subscription
        self._pending.clear()
        await self._forward(subscription, self._translator.settle(answers))
        return None

    def _next_input(self, answers: Sequence[Answer]) -> RunAgentInput:
        first = self._opening.run_input
        props = dict(first.forwarded_props or {} if self._opening.next_props is None else self._opening.next_props)
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
        """Forward the events of a run of another client. The client's own decisions come too late."""
        subscription = await self._runs.attach_next(self._run_id, run_id)
        if subscription is None:
            return
        if self._is_cancelled:  # before the client has seen anything of this run
            self._client.leave(subscription)
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
