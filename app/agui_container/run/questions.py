"""Questions of a thread that wait for an answer, in the store and nowhere else.

Rules:
- The gate for tool calls stores the calls that wait. All other questions of a run, which the agent asks itself,
  are stored here with the end of the run. A question is open until an answer settles it or it expires.
- A run that is cancelled or fails ends its turn, so that a repeated answer does not continue it.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from ag_ui.core import Interrupt
from msgspec import structs

from agui_container.conversation.questions import (
    JOURNAL,
    TURN_NOTE,
    dump_ended_turn,
    dump_question,
    interrupts_in,
    question_note_id,
)
from agui_container.ports.records import ThreadKey, ThreadNote
from agui_container.ports.store import NoteStore


async def open_questions(store: NoteStore, thread: ThreadKey, now: float) -> Sequence[Interrupt]:
    return questions_in(await store.notes(thread, JOURNAL), now)


def questions_in(notes: Iterable[ThreadNote], now: float) -> Sequence[Interrupt]:
    return interrupts_in(note.data for note in notes if note.kind == JOURNAL and is_open(note, now))


def is_open(note: ThreadNote, now: float) -> bool:
    return not note.is_settled and (note.until is None or note.until > now)


def question_notes(questions: Sequence[Interrupt]) -> list[ThreadNote]:
    """Return the notes of a run's own questions."""
    return [ThreadNote(JOURNAL, question_note_id(it.id), dump_question(it), expiry_of(it)) for it in questions]


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
