"""Entries of a thread beside its messages, for clients that load the thread later: answers, questions and notices.

Rules:
- An entry names the thread's last message at its time, and its run.
- An approval is left out, because the result of its call has the decision.
- The entries of one run are records of the interrupt store, in a scope of their own. They are kept as long as the
  thread. A record is not settled, because AgentCore Memory, if it cannot be reached, warns of an open record and
  refuses a settled one, which would end the run.
"""

from collections.abc import Collection, Sequence
from typing import Literal

from ag_ui.core import CustomEvent, Interrupt, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome
from pydantic_core import from_json, to_json

from agui_container.ports.notices import NOTICES
from agui_container.ports.records import InterruptScope, PendingInterrupt, RunKey, StoredMessage, ThreadKey
from agui_container.ports.store import InterruptStore, Store, ThreadStore

Entry = dict[str, object]
"""An entry as a JSON object of the API."""

DEPTH = -2
"""Level of the scope, see ``InterruptScope``."""

NO_END = 253_402_300_799.0
"""Time at which an entry expires: the end of the year 9999."""

MAX_NOTICES = 100
"""Most notices of a run that are kept."""

UNANSWERED = "unanswered"
"""Status of a question that has no answer. The other ones are those of ``ResumeEntry``."""

# --- entries of a run -------------------------------------------------------------------------------------------------


class RunEntries:
    """Notices and questions of a run, from its events."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[Entry] = []

    def add_notice(self, event: CustomEvent, data: bytes, after: str | None) -> None:
        """Add an event if it is a notice. ``data`` is its JSON, and ``after`` the id of the last message."""
        if event.name in NOTICES and len(self.found) < MAX_NOTICES:
            self.found.append({"messageId": after, "name": event.name, "value": from_json(data).get("value")})

    def add_questions(self, event: RunFinishedEvent, after: str | None) -> None:
        """Add the questions of the last event. ``after`` is the id of the last message."""
        if isinstance(event.outcome, RunFinishedInterruptOutcome):
            asked = [it for it in event.outcome.interrupts if not is_approval(it)]
            self.found += [_question(it, after, UNANSWERED) for it in asked]


def answers_in(run_input: RunAgentInput, questions: Sequence[Interrupt], after: str | None) -> list[Entry]:
    """Return the answers of an input as entries. ``after`` is the id of the last message before the run."""
    by_id = {question.id: question for question in questions if not is_approval(question)}
    return [
        {**_question(question, after, entry.status), "payload": entry.payload}
        for entry in run_input.resume or ()
        if (question := by_id.get(entry.interrupt_id)) is not None
    ]


def is_approval(interrupt: Interrupt) -> bool:
    """Return True if an interrupt asks for a decision on a call."""
    return "toolName" in (interrupt.metadata or {})


def _question(interrupt: Interrupt, after: str | None, status: str) -> Entry:
    return {
        "messageId": after,
        "interruptId": interrupt.id,
        "reason": interrupt.reason,
        "message": interrupt.message,
        "toolCallId": interrupt.tool_call_id,
        "status": status,
    }


# --- the store --------------------------------------------------------------------------------------------------------


async def keep_entries(
    store: InterruptStore, run: RunKey, at: Literal["begin", "end"], entries: Sequence[Entry]
) -> None:
    """Store the entries of a run from its begin, or from its end. A repeated call changes nothing."""
    if entries:
        whole = [{"runId": run.run_id, **entry} for entry in entries]
        data = to_json([{name: value for name, value in entry.items() if value is not None} for entry in whole])
        await store.put(_scope(run.thread), [PendingInterrupt(f"{run.run_id}:{at}", data, NO_END)])


async def entries_of(store: InterruptStore, thread: ThreadKey, now: float) -> list[Entry]:
    """Return the entries of a thread, in the order in which they were stored."""
    return [entry for each in await store.list_open(_scope(thread), now) for entry in from_json(each.payload)]


async def copy_entries(store: Store, source: ThreadKey, fork: ThreadKey, last: StoredMessage, now: float) -> None:
    """Give a fork those entries of its origin that belong to its messages. ``last`` is its last message."""
    for record in await store.interrupts.list_open(_scope(source), now):
        kept = [entry for entry in from_json(record.payload) if await _belongs(store.threads, fork, last, entry)]
        if kept:
            copy = PendingInterrupt(record.id, to_json(kept), record.until)
            await store.interrupts.put(_scope(fork), [copy])


async def _belongs(threads: ThreadStore, fork: ThreadKey, last: StoredMessage, entry: Entry) -> bool:
    """Return True if an entry belongs to a message of a fork.

    Of those after the last message, only the notices of an answer do. The fork has no such question, and what follows a
    message of the user belongs to an answer that the fork does not have.
    """
    after = entry.get("messageId")
    if after == last.id:
        return "name" in entry and from_json(last.data)["role"] != "user"
    return not isinstance(after, str) or await threads.message(fork, after) is not None


def _scope(thread: ThreadKey) -> InterruptScope:
    return InterruptScope(DEPTH, *thread)


# --- views ------------------------------------------------------------------------------------------------------------


def entries_after(entries: Sequence[Entry], messages: Collection[str], *, is_first: bool) -> list[Entry]:
    """Return the entries that belong to a page of messages. ``is_first`` is True if there are no messages before it."""
    return [it for it in entries if it.get("messageId") in messages or (is_first and "messageId" not in it)]


def entries_view(entries: Sequence[Entry], waiting: Sequence[Entry]) -> Entry:
    """Return the view of entries: notices, answers, and questions that wait no longer and have no answer."""
    asked = [entry for entry in entries if "interruptId" in entry]
    settled = {_place(entry) for entry in asked if entry["status"] != UNANSWERED}
    open_ids = {interrupt["id"] for interrupt in waiting}
    return {
        "answers": [
            entry
            for entry in asked
            if entry["status"] != UNANSWERED or not (_place(entry) in settled or entry["interruptId"] in open_ids)
        ],
        "notices": [entry for entry in entries if "name" in entry],
    }


def _place(entry: Entry) -> tuple[object, object]:
    """Return what identifies a question: agents may use an id again after another message."""
    return entry["interruptId"], entry.get("messageId")
