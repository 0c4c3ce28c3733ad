"""Questions in the notes of a thread's journal, as the engine and the gate for tool calls store them.

Rule: a note is a JSON object. The note of a call that waits has its ``interrupts``; that of an agent's own question has
the interrupt as ``question``, and the ``entry`` that answers it once there is one.
"""

from collections.abc import Iterable

from ag_ui.core import Interrupt
from pydantic_core import from_json, to_json

from agui_container.protocol.strict_json import without_large_integers

JOURNAL = "journal"
"""Kind of the notes of the agent that answers the client."""

TURN_NOTE = "turn"
"""Id of the note of the thread's latest turn."""


def journal_kind(depth: int, part: str) -> str:
    """Return the kind of an agent's notes.

    ``depth`` is the number of agents above it, and ``part`` the id of a subagent's own thread, or empty.
    """
    return f"{JOURNAL}/{depth}/{part}" if depth or part else JOURNAL


def dump_ended_turn(note: bytes) -> bytes:
    return to_json({**from_json(note), "is_ended": True})


def question_note_id(interrupt_id: str) -> str:
    return f"question-{interrupt_id}"


def dump_question(interrupt: Interrupt) -> bytes:
    return b'{"question":%s}' % without_large_integers(interrupt.model_dump_json(by_alias=True).encode())


def interrupts_in(notes: Iterable[bytes]) -> list[Interrupt]:
    """Return the interrupts of the notes that wait for an answer, each once, those of calls first."""
    values = [from_json(note) for note in notes]
    waiting = [value for value in values if value.get("result") is None and value.get("entry") is None]
    calls = [interrupt for value in waiting for interrupt in value.get("interrupts") or ()]
    questions = [value["question"] for value in waiting if "question" in value]
    interrupts = map(Interrupt.model_validate, [*calls, *questions])
    return list({interrupt.id: interrupt for interrupt in interrupts}.values())
