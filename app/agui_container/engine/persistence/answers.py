"""Answers to the interrupts of a thread, beside their questions, for clients that load the thread later.

Rule: an approval is left out, because the result of its call has the decision. The answers of one run are one record
of the interrupt store, in a scope of their own. They are kept as long as the thread. The record is not settled, because
AgentCore Memory, if it cannot be reached, warns of an open record and refuses a settled one, which would end the run.
"""

from collections.abc import Collection, Sequence

from ag_ui.core import Interrupt, RunAgentInput
from pydantic_core import from_json, to_json

from agui_container.engine.service import View
from agui_container.ports.records import InterruptScope, PendingInterrupt, RunKey, ThreadKey
from agui_container.ports.store import InterruptStore, Store, ThreadStore

DEPTH = -2
"""Level of the scope, see ``InterruptScope``."""

NO_END = 253_402_300_799.0
"""Time at which an answer expires: the end of the year 9999."""


async def keep_answers(
    store: InterruptStore, run: RunKey, run_input: RunAgentInput, questions: Sequence[Interrupt], after: str | None
) -> None:
    """Store what a run answers. ``after`` is the id of the thread's last message before the run."""
    by_id = {question.id: question for question in questions if not is_approval(question)}
    answers: list[View] = [
        {
            "runId": run.run_id,
            "messageId": after,
            "interruptId": entry.interrupt_id,
            "reason": question.reason,
            "message": question.message,
            "toolCallId": question.tool_call_id,
            "status": entry.status,
            "payload": entry.payload,
        }
        for entry in run_input.resume or ()
        if (question := by_id.get(entry.interrupt_id)) is not None
    ]
    if answers:
        data = to_json([{name: value for name, value in answer.items() if value is not None} for answer in answers])
        await store.put(_scope(run.thread), [PendingInterrupt(run.run_id, data, NO_END)])


def is_approval(interrupt: Interrupt) -> bool:
    """Return True if an interrupt asks for a decision on a call."""
    return "toolName" in (interrupt.metadata or {})


async def answers_of(store: InterruptStore, thread: ThreadKey, now: float) -> list[View]:
    """Return the answered questions of a thread, in the order in which they were answered."""
    return [answer for each in await store.list_open(_scope(thread), now) for answer in from_json(each.payload)]


def answers_after(answers: Sequence[View], messages: Collection[str], *, is_first: bool) -> list[View]:
    """Return the answers that belong to a page of messages. ``is_first`` is True if there are no messages before it."""
    return [it for it in answers if it.get("messageId") in messages or (is_first and "messageId" not in it)]


async def copy_answers(store: Store, source: ThreadKey, fork: ThreadKey, last_message: str, now: float) -> None:
    """Give a fork the answers of its origin, without those after its last message, because it has no such question."""
    records = await store.interrupts.list_open(_scope(source), now)
    kept = [it for it in records if await _has_before(store.threads, fork, last_message, from_json(it.payload)[0])]
    if kept:
        await store.interrupts.put(_scope(fork), kept)


async def _has_before(threads: ThreadStore, thread: ThreadKey, last_message: str, answer: View) -> bool:
    """Return True if an answer belongs to a message before the last one. The answers of a record have one message."""
    after = answer.get("messageId")
    return not isinstance(after, str) or (after != last_message and await threads.message(thread, after) is not None)


def _scope(thread: ThreadKey) -> InterruptScope:
    return InterruptScope(DEPTH, *thread)
