"""The gate for the tool calls of one run, for agents of every kind.

It applies the answers of the run to the calls that wait, before the agent is called. Then it decides on each call that
the agent makes, and runs those that may run.

Rules:
- A call is claimed right before its tool starts. So a run that is cut off leaves a result that says so, a second answer
  never starts the tool again on any replica, and a call that was never started stays open.
- A run whose turn still waits for an answer ends with all interrupts of the turn, and the agent is not called.
- The model sees calls as they were stored. A rejected call that the caller's messages no longer contain is left out,
  an approved one is put back. The note of a call that ran without a question counts only while it has no result there.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeVar

from ag_ui.core import (
    Interrupt,
    Message,
    RunAgentInput,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    ToolMessage,
)

from agui_container.agents.gate.approval import Decision, approval_interrupt, match_answers, warn_of_unknown
from agui_container.agents.gate.calls import CallNote, denied_result, failed_result, result_event
from agui_container.agents.gate.journal import TurnJournal
from agui_container.agents.gate.toolbox import DECLINED, Toolbox
from agui_container.conversation.stored_parts import CUT_OFF
from agui_container.log_values import format_fields
from agui_container.ports import Permission, RunContext, Suspension
from agui_container.protocol.errors import AppError, validation_error
from agui_core.turns import (
    IndexedCall,
    calls_of,
    ends_with_answer,
    ends_with_question,
    is_awaiting_client,
    last_turn,
    latest_calls,
    repeated_id,
    repeated_ids,
    with_settled_calls,
)

T = TypeVar("T")

GONE = "Error: this call no longer waits for an answer."


class ToolGate:
    """The tool calls of one run.

    Attributes:
        ctx: the context of the run, with the demands of the turn.
        is_idle: True if a model has nothing to answer: the client has not answered all its calls beside others, or the
            model has replied to the same answers in another run.
    """

    def __init__(self, toolbox: Toolbox, journal: TurnJournal, request: RunAgentInput) -> None:
        self.toolbox = toolbox
        self.journal = journal
        self.ctx = journal.ctx
        self.is_idle = False
        self._request = request
        self._messages = request.messages
        self._settled: dict[str, CallNote] = {}
        self._announced: Counter[str] = Counter()

    @cached_property
    def _known(self) -> Mapping[str, IndexedCall]:
        """The calls of the history. The note of an id is about the last call of this id that has no note of its own."""
        calls, noted = latest_calls(self._messages), {note.id for note in self.journal.calls}
        made = {id_: [each for each in repeated_ids(id_, calls) if each == id_ or each not in noted] for id_ in calls}
        return {id_: calls[ids[-1]] for id_, ids in made.items()}

    # --- answers ---

    async def start(self) -> RunFinishedEvent | None:
        """Apply the answers of the run. Return its end if they cancel it, or if its turn still waits for others.

        Results that the caller's messages do not contain are sent in the order of the calls, each as soon as its call
        and those before it have ended. Raises ``AppError`` VALIDATION_ERROR for an invalid answer before any call
        starts, and STORE_UNAVAILABLE after the other calls have ended.
        """
        for notice in self.toolbox.notices:
            self.ctx.emit(notice)
        entries = self._request.resume or ()
        decisions = match_answers(self.journal.calls, entries, self.journal.time_after(0))
        decided = {note.id: note for note in await self._apply_all(decisions)}
        calls = [decided.get(note.id, note) for note in self.journal.calls]
        self.journal.add(calls)
        self._settled = {self._id_of(note): note for note in calls if self._is_in_history(note, decided)}
        for note in self._settled.values():
            if note.id not in decided:
                self._send_result(note)
        waiting = [note for note in calls if not note.is_settled]
        if self.journal.is_cancelled_by(is_rejected=self._has_rejection(decisions, decided)):
            return await self._cancel(waiting)
        self.is_idle = self._awaits_client(decided) or (
            bool(entries) and ends_with_answer(self._messages) and not self.new_results
        )
        interrupts = [*interrupts_of_calls(waiting), *self.journal.open_questions]
        if not interrupts:
            return None
        await self.journal.save()
        return finish_event(self.ctx, interrupts)

    def refuse_lost_answers(self) -> None:
        """Refuse answers to unknown interrupts. Beside a new message of the user, log and ignore them.

        Such an interrupt has expired, was settled long ago, or is lost. It may be cancelled. The run must not end as if
        a call had been run.
        """
        unknown = self.journal.unknown_answers
        for at, entry in enumerate(self._request.resume or ()):
            if entry in unknown and entry.status != "cancelled" and not self.journal.is_asked_anew:
                text = "this interrupt no longer waits for an answer, and nothing was run; cancel it to go on."
                raise validation_error(f"resume.{at}.interruptId: {text}")
        warn_of_unknown(unknown, self.ctx)

    async def _apply_all(self, decisions: Sequence[Decision]) -> Sequence[CallNote]:
        """Apply decisions side by side. Raises as ``start``, after all have ended."""
        ended = [asyncio.Event() for _ in decisions]

        async def apply(at: int) -> CallNote | AppError:
            try:
                note: CallNote | AppError = await self._apply(decisions[at])
            except AppError as error:  # the calls beside it are not cut off
                note = error
            if at:
                await ended[at - 1].wait()
            if isinstance(note, CallNote):
                self._send_result(note)
            ended[at].set()
            return note

        outcomes = await run_side_by_side([partial(apply, at) for at in range(len(decisions))], self.ctx)
        for outcome in outcomes:
            if isinstance(outcome, AppError):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, CallNote)]

    async def _apply(self, decision: Decision) -> CallNote:
        """Return the note of the call: settled, or open again with new interrupts.

        It is unchanged if it was settled before or if the call's tool is unavailable now.
        """
        note, fields = decision.note, format_fields({"call": decision.note.id})
        if note.is_settled:
            if decision.answer != note.answer:
                self.ctx.logger.warning("answer ignored, call already decided %s", fields)
            return note
        rejection = decision.rejection(is_edited_away=self._is_edited_away(note))
        if rejection is None and self.toolbox.is_unavailable(note.call):
            self.ctx.logger.warning("question stays open, tool unavailable %s", fields)
            return note
        decided = note.decided(decision.answer)
        claimed = decided.with_result(failed_result(CUT_OFF) if rejection is None else denied_result(rejection))
        if not await self.journal.claim(claimed):
            self.ctx.logger.warning("call already claimed by another run %s", fields)
            return await self.journal.load_call(note.id) or note.with_result(failed_result(GONE))
        if rejection is not None:
            return claimed
        made = await self._run(decided, decision)
        if not made.is_settled:
            await self.journal.reopen(made)
        return made

    async def _cancel(self, waiting: Sequence[CallNote]) -> RunFinishedEvent:
        """End the turn. Nothing that waits is wanted any more."""
        for note in waiting:
            rejected = note.with_result(denied_result(DECLINED))
            if await self.journal.claim(rejected):
                self._send_result(rejected)
        await self.journal.end()
        cancelled = RunFinishedCancelledOutcome()
        return RunFinishedEvent(thread_id=self.ctx.thread_id, run_id=self.ctx.run_id, outcome=cancelled)

    def _send_result(self, note: CallNote) -> None:
        """Send the result of a call, unless the caller has it. A call that the caller has not is sent before it."""
        result, is_edited_away = self._result_of(note), self._is_edited_away(note)
        if result is None or (is_edited_away and note.is_rejected) or not self._is_new(result):
            return
        for event in (*(note.call.events() if is_edited_away else ()), result_event(result)):
            self.ctx.emit(event)

    # --- calls ---

    def with_own_id(self, note: CallNote) -> CallNote:
        """Return the note of a new call that a framework has announced, with the id that the thread gives to the call.

        The first call of an id in a run has the note of that id, because snapshots of a framework may repeat it.
        """
        before = self._announced[note.id]
        self._announced[note.id] += 1
        number = len(list(repeated_ids(note.id, self._known))) + before + 1
        return replace(note, call=replace(note.call, id=repeated_id(note.id, number))) if before else note

    async def make(self, calls: Sequence[CallNote]) -> Sequence[CallNote]:
        """Decide on calls, and run those that may run side by side. Return their notes.

        A call without a result has interrupts: it needs an approval, or it has asked something itself.
        """
        decisions = [(note, self.toolbox.decide(note.call)) for note in calls]
        ready = [note for note, decision in decisions if decision.permission is Permission.ALLOW]
        if ready:
            await self.journal.start(ready)
        runs = [partial(self._run, note) for note in ready]
        made = {note.id: note for note in await run_side_by_side(runs, self.ctx)}
        for note, decision in decisions:
            if decision.permission is Permission.ASK:
                details = await self.toolbox.details(note.call, self.ctx)
                expiry = self.journal.time_after(1)
                question = approval_interrupt(note.call, decision, self.ctx.new_id(), expiry, details)
                made[note.id] = replace(note, interrupts=(question,))
            elif decision.permission is Permission.DENY:
                made[note.id] = note.with_result(failed_result(str(decision.reason)))
        return [made[note.id] for note in calls]

    async def _run(self, note: CallNote, decision: Decision | None = None) -> CallNote:
        """Run a call, or resume it with its answers. Return its note, with a result or with its interrupts."""
        try:
            outcome = await self.toolbox.run(note, decision.entries if decision else (), self.ctx)
        except asyncio.CancelledError:
            self.journal.cut_off(note)
            raise
        if isinstance(outcome, Suspension):
            return note.suspended(outcome)
        made = note.with_result(outcome)
        await self.journal.record(made)
        return made

    # --- the history ---

    @property
    def new_results(self) -> Sequence[ToolMessage]:
        """Results that the caller's messages do not contain. They are complete once ``start`` has ended."""
        results = [self._result_of(note) for note in self._settled.values()]
        return [result for result in results if result is not None and self._is_new(result)]

    def history(self) -> list[Message]:
        """Return the messages with the settled calls, and their results right after them."""
        settled = {}
        for id_, note in self._settled.items():
            if (result := self._result_of(note)) is not None:
                settled[id_] = (replace(note.call, id=id_).to_message_call(), result)
        return with_settled_calls(self._messages, settled) if settled else list(self._messages)

    def _is_in_history(self, note: CallNote, decided: Collection[str]) -> bool:
        call = self._known.get(note.id)
        if call is not None:
            return note.is_settled and (bool(note.interrupts) or not call.results)
        return note.is_settled and note.id in decided and not (note.is_rejected and self._messages)

    def _is_edited_away(self, note: CallNote) -> bool:
        """Return True if the caller has sent a history without the call."""
        return bool(self._messages) and note.id not in self._known

    def _result_of(self, note: CallNote) -> ToolMessage | None:
        """Return the tool message of a call, with the id of the caller's own one; None for an open call."""
        if note.result is None:
            return None
        call, call_id = self._known.get(note.id), self._id_of(note)
        id_ = f"result-{call_id}" if call is None or call.number == 1 else f"result-{call_id}-{call.number}"
        return note.result.to_message(call.results[0].id if call and call.results else id_, call_id)

    def _id_of(self, note: CallNote) -> str:
        return self._known[note.id].call.id if note.id in self._known else note.id

    def _is_new(self, result: ToolMessage) -> bool:
        call = self._known.get(result.tool_call_id)
        return call is None or all(message.content != result.content for message in call.results)

    def _has_rejection(self, decisions: Sequence[Decision], decided: Mapping[str, CallNote]) -> bool:
        """Return True if a call is cancelled, or denied with no message of the user after it that is to be answered."""
        rejected = [each for each in decisions if decided[each.note.id].is_rejected]
        last = latest_calls(last_turn(self._messages)) if rejected else {}
        return any(it.is_cancelled or self._id_of(it.note) in last or it.note.id not in self._known for it in rejected)

    def _awaits_client(self, decided: Collection[str]) -> bool:
        """Return True if the client has not answered all its calls beside others that were decided or answered."""
        if is_awaiting_client(self._messages, self.toolbox.client):
            return True
        beside = {call.id for id_ in decided if id_ in self._known for call in calls_of(self._known[id_].message)}
        is_open = any(not self._known[id_].results for id_ in beside - self._settled.keys())
        return is_open and not ends_with_question(self._messages)


def interrupts_of_calls(calls: Sequence[CallNote]) -> Sequence[Interrupt]:
    return [interrupt for note in calls for interrupt in note.interrupts]


def finish_event(ctx: RunContext, stored: Sequence[Interrupt], own: Sequence[Interrupt] = ()) -> RunFinishedEvent:
    """Return the end of a run, with interrupts if there are any. The engine stores the agent's ``own`` ones."""
    ctx.turn.stored_interrupts.update(interrupt.id for interrupt in stored)
    outcome = RunFinishedInterruptOutcome(interrupts=[*stored, *own]) if stored or own else None
    return RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome)


async def run_side_by_side(calls: Sequence[Callable[[], Awaitable[T]]], ctx: RunContext) -> list[T]:
    """Run calls that do not raise, each after other runs had their turn. Return the results in the order of the calls.

    Several run concurrently in the call slots of the run.
    """
    if len(calls) == 1:
        return [await calls[0]()]

    async def run(call: Callable[[], Awaitable[T]]) -> T:
        await ctx.yield_turn()
        return await call()

    return await ctx.call_slots.run([partial(run, call) for call in calls])
