"""Notes of a thread that runs write: questions that wait for an answer, and entries beside the messages.

Rules:
- The gate for tool calls stores the calls that wait. All other questions of a run, which the agent asks itself,
  are stored here with the end of the run. A question is open until an answer settles it or it expires.
- A run that is cancelled or fails ends its turn, so that a repeated answer does not continue it.
- Entries are answers, questions and notices, for clients that load the thread later. An entry names the thread's last
  message at its time, and its run. It is deleted with that message.
- An approval is no entry, because the result of its call has the decision.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Literal

from ag_ui.core import CustomEvent, Interrupt, RunAgentInput, RunFinishedInterruptOutcome
from msgspec import structs
from pydantic_core import from_json, to_json

from agui_container.conversation.questions import (
    JOURNAL,
    TURN_NOTE,
    dump_ended_turn,
    dump_question,
    interrupts_in,
    question_note_id,
)
from agui_container.ports.records import Change, RunKey, StoredMessage, ThreadKey, ThreadNote
from agui_container.ports.store import BadToken, NoteStore, Store

Entry = dict[str, object]
"""An entry as a JSON object of the API."""

ENTRY = "entry"
"""Kind of the notes."""

MAX_NOTICES = 100
"""Most notices of a run that are kept."""

UNANSWERED = "unanswered"
"""Status of a question that has no answer. The other ones are those of ``ResumeEntry``."""

# --- questions --------------------------------------------------------------------------------------------------------


async def open_questions(store: NoteStore, thread: ThreadKey, now: float) -> Sequence[Interrupt]:
    return questions_in(await store.notes(thread, JOURNAL), now)


def questions_in(notes: Iterable[ThreadNote], now: float) -> Sequence[Interrupt]:
    return interrupts_in(note.data for note in notes if note.kind == JOURNAL and is_open(note, now))


def is_open(note: ThreadNote, now: float) -> bool:
    return not note.is_settled and (note.until is None or note.until > now)


def end_notes(run: RunKey, entries: Sequence[Entry], questions: Sequence[Interrupt]) -> list[ThreadNote]:
    """Return the notes of a run that has ended: its entries and its own questions."""
    asked = [ThreadNote(JOURNAL, question_note_id(it.id), dump_question(it), expiry_of(it)) for it in questions]
    return [*entry_notes(run, "end", entries), *asked]


async def ended_turn(store: NoteStore, thread: ThreadKey, now: float) -> list[ThreadNote]:
    """Return the note of the thread's turn, as ended, unless a question still waits."""
    notes = await store.notes(thread, JOURNAL)
    turn = next((note for note in notes if note.id == TURN_NOTE), None)
    if turn is None or questions_in(notes, now):
        return []
    return [structs.replace(turn, data=dump_ended_turn(turn.data))]


def expiry_of(interrupt: Interrupt) -> float | None:
    try:
        return datetime.fromisoformat(interrupt.expires_at).timestamp() if interrupt.expires_at else None
    except (OverflowError, ValueError):
        return None


# --- entries of a run -------------------------------------------------------------------------------------------------


def notice_entry(event: CustomEvent, data: bytes, after: str | None) -> Entry:
    """``data`` is the JSON of the event, and ``after`` the id of the last message."""
    return {"messageId": after, "name": event.name, "value": from_json(data).get("value")}


def question_entries(outcome: RunFinishedInterruptOutcome, after: str | None) -> list[Entry]:
    return [_question(it, after, UNANSWERED) for it in outcome.interrupts if not is_approval(it)]


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


def expired_entries(entries: Sequence[ThreadNote], stored: Sequence[StoredMessage], change: Change) -> list[ThreadNote]:
    """Return the entries of the turns that a client removes by an edit, as expired ones.

    What follows a message of the user belongs to the answer, and so does the answer to a question. They go with the
    next message, and with an edit of the last message of a thread. All else goes with its own message, in the store.
    ``stored`` are the messages before the change.
    """
    removed = {it.id for it in stored} - set(change.order) if change.order is not None else set[str]()
    changed = {it.id for it in change.messages}
    is_users: dict[object, bool] = {}
    for it, following in zip([None, *stored], [*stored, None], strict=True):
        is_kept = it is None or it.id not in removed
        is_cut = following.id in removed if following else it is not None and it.id in changed
        if is_kept and is_cut:
            is_users[it and it.id] = it is None or from_json(it.data)["role"] == "user"

    def is_expired(entry: Entry) -> bool:
        after, is_answer = entry.get("messageId"), entry.get("status", UNANSWERED) != UNANSWERED
        return after in is_users and (is_answer or is_users[after])

    return [structs.replace(note, until=0.0) for note in entries if is_expired(from_json(note.data))]


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
