"""Entries of a thread beside its messages, for clients that load the thread later: answers, questions and notices.

Rules:
- An entry names the thread's last message at its time, and its run.
- An approval is left out, because the result of its call has the decision.
- An entry is a note of the thread. It is deleted with the message that it names.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from ag_ui.core import CustomEvent, Interrupt, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome
from msgspec import Struct, structs
from pydantic_core import from_json, to_json

from agui_container.ports.notices import NOTICES
from agui_container.ports.records import Change, RunKey, StoredMessage, ThreadKey, ThreadNote
from agui_container.ports.store import BadToken, Store

Entry = dict[str, object]
"""An entry as a JSON object of the API."""

ENTRY = "entry"
"""Kind of the notes."""

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
        if isinstance(event.outcome, RunFinishedInterruptOutcome):
            asked = [it for it in event.outcome.interrupts if not is_approval(it)]
            self.found += [_question(it, after, UNANSWERED) for it in asked]


def answers_in(run_input: RunAgentInput, questions: Sequence[Interrupt], after: str | None) -> list[Entry]:
    by_id = {question.id: question for question in questions if not is_approval(question)}
    return [
        {**_question(question, after, entry.status), "payload": entry.payload}
        for entry in run_input.resume or ()
        if (question := by_id.get(entry.interrupt_id)) is not None
    ]


def is_approval(interrupt: Interrupt) -> bool:
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


def entry_notes(run: RunKey, at: Literal["begin", "end"], entries: Sequence[Entry]) -> list[ThreadNote]:
    return [_note(f"{run.run_id}:{at}:{number}", run, entry) for number, entry in enumerate(entries)]


def _note(name: str, run: RunKey, entry: Entry) -> ThreadNote:
    fields = {name: value for name, value in entry.items() if value is not None}
    message_id = entry.get("messageId")
    after = message_id if isinstance(message_id, str) else None
    return ThreadNote(ENTRY, name, to_json({"runId": run.run_id, **fields}), message_id=after)


def entries_in(notes: Iterable[ThreadNote]) -> list[Entry]:
    return [from_json(note.data) for note in notes if note.kind == ENTRY and note.until is None]


class EditedTurns(Struct, frozen=True):
    """Turns of a thread that a client removes by an edit.

    What follows a message of the user belongs to the answer, and so does the answer to a question. They go with the
    next message, and with an edit of the last message of a thread. All else goes with its own message.

    Attributes:
        removed: ids of the removed messages.
        cut: ids of the messages before them, None before the first; True for those of the user.
    """

    removed: Collection[str]
    cut: Mapping[object, bool]

    @classmethod
    def of(cls, stored: Sequence[StoredMessage], change: Change) -> "EditedTurns":
        """``stored`` are the messages before the change."""
        removed = {it.id for it in stored} - set(change.order) if change.order is not None else set[str]()
        changed = {it.id for it in change.messages}
        next_ids = zip([None, *stored], [*(it.id for it in stored), None], strict=True)
        cut = [it for it, next_id in next_ids if next_id in removed or (it and next_id is None and it.id in changed)]
        return cls(removed, {it and it.id: it is None or from_json(it.data)["role"] == "user" for it in cut})

    def has(self, entry: Entry) -> bool:
        after, is_answer = entry.get("messageId"), entry.get("status", UNANSWERED) != UNANSWERED
        return after in self.removed or (after in self.cut and (is_answer or self.cut[after]))


async def remove_edited_turns(store: Store, thread: ThreadKey, turns: EditedTurns) -> None:
    notes = [note for note in await store.notes(thread, ENTRY) if turns.has(from_json(note.data))]
    if notes:
        await store.put_notes(thread, [structs.replace(note, until=0.0) for note in notes])


async def copy_entries(store: Store, source: ThreadKey, fork: ThreadKey, last: StoredMessage) -> None:
    """Give a fork those entries of its origin that belong to its messages. ``last`` is its last message."""
    notes = [note for note in await store.notes(source, ENTRY) if note.until is None]
    await store.put_notes(fork, [note for note in notes if await _belongs(store, fork, last, note)])


async def _belongs(store: Store, fork: ThreadKey, last: StoredMessage, note: ThreadNote) -> bool:
    """Return True if an entry belongs to a message of a fork.

    Of those after the last message, only the notices of an answer do. The fork has no such question, and what follows a
    message of the user belongs to an answer that the fork does not have.
    """
    after = note.message_id
    if after == last.id:
        return "name" in from_json(note.data) and from_json(last.data)["role"] != "user"
    return after is None or await read_message(store, fork, after) is not None


async def read_message(store: Store, key: ThreadKey, message_id: str) -> StoredMessage | None:
    try:
        page = await store.messages(key, limit=1, last=message_id)
    except BadToken:
        return None
    return page.items[-1] if page else None


# --- views ------------------------------------------------------------------------------------------------------------


def entries_after(entries: Sequence[Entry], messages: Collection[str], *, is_first: bool) -> list[Entry]:
    """Return the entries that belong to a page of messages. ``is_first`` is True if there are no messages before it."""
    return [it for it in entries if it.get("messageId") in messages or (is_first and "messageId" not in it)]


def entries_view(entries: Sequence[Entry], waiting: Sequence[Entry]) -> Entry:
    """Return the view of entries: notices, answers, and questions that wait no longer and have no answer."""
    open_ids = {interrupt["id"] for interrupt in waiting}
    return {
        "answers": [
            it for it in questions_of(entries) if it["status"] != UNANSWERED or it["interruptId"] not in open_ids
        ],
        "notices": [entry for entry in entries if "name" in entry],
    }


def questions_of(entries: Sequence[Entry]) -> list[Entry]:
    asked = [entry for entry in entries if "interruptId" in entry]
    settled = {_place(entry) for entry in asked if entry["status"] != UNANSWERED}
    return [entry for entry in asked if entry["status"] != UNANSWERED or _place(entry) not in settled]


def _place(entry: Entry) -> tuple[object, object]:
    return entry["interruptId"], entry.get("messageId")
