"""The journal of a turn, in a store: the calls that were made, the questions that wait, and the demands of the caller.

A turn lasts from a message of the user to the success, failure or cancellation of its answer, over as many runs as
questions need.

Rules:
- The name and arguments of the call that runs come from the journal, never from the messages of a caller.
- An answer is accepted only for the owner, the thread and the part of the thread in which the question was asked.
- A call is *open* until an answer claims it, and *settled* from then on. Only one claim succeeds, on any replica, and
  only the run that claimed a call writes its result.
- Each call is stored as cut off before it starts, so that the next run knows if its process dies. A call of a subagent
  is not, because the call of the subagent is.
- Results are stored for an agent that is called again, once the turn has asked a question. A settled call is kept no
  shorter than the questions of its turn, and for a while after the turn, so that a repeated answer is recognised.
- The demands of the caller hold for the rest of the turn, whichever client answers.

If the store fails, methods that are awaited raise ``AppError`` STORE_UNAVAILABLE.

Sources: AG-UI spec 1.1, basic/patterns/interrupt-resume; docs/tools.md.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from ag_ui.core import Interrupt, Message, ResumeEntry, RunAgentInput, ToolMessage, UserMessage
from msgspec import Struct, field, structs

from agui_container.agents.gate.approval import answers_by_interrupt
from agui_container.agents.gate.calls import (
    CallNote,
    ModelToolCall,
    Note,
    QuestionNote,
    TurnNote,
    dump_note,
    failed_result,
    load_notes,
)
from agui_container.conversation.questions import journal_kind
from agui_container.conversation.stored_parts import CUT_OFF
from agui_container.log_values import format_fields
from agui_container.ports import RunContext
from agui_container.ports.records import ThreadKey, ThreadNote
from agui_container.ports.store import (
    NoteStore,
    Store,
    store_errors_as_app_errors,
    wait_for_store,
)
from agui_container.protocol.errors import AppError

NOT_STARTED = "Error: this call was cancelled before it was started."

LIFETIME = 3600.0
"""Seconds until the approval of a call expires.

The store holds it for twice as long. In the second half it can be cancelled, and an answer is rejected as expired.
"""

logger = logging.getLogger(__name__)


class MemoryNotes:
    """``NoteStore`` in memory, without limits, for an assistant outside of a server. Any thread exists."""

    def __init__(self) -> None:
        self._notes: dict[ThreadKey, dict[tuple[str, str], ThreadNote]] = {}

    async def notes(self, thread: ThreadKey, *kinds: str) -> Sequence[ThreadNote]:
        return [note for note in self._notes.get(thread, {}).values() if note.kind in kinds]

    async def put_notes(self, thread: ThreadKey, notes: Sequence[ThreadNote]) -> bool:
        self._notes.setdefault(thread, {}).update({(note.kind, note.id): note for note in notes})
        return True

    async def settle_note(self, thread: ThreadKey, note: ThreadNote) -> bool:
        stored = self._notes.get(thread, {}).get((note.kind, note.id))
        return stored is not None and not stored.is_settled and await self.put_notes(thread, [note])


class Journal(Struct, frozen=True):
    """The journals of all threads of one agent, by default in memory.

    ``depth`` is the nesting depth of the assistant: 0 for the first, 1 for its subagents. Each depth has its own notes.
    ``keeps_events`` is False if the store loses a run whose process dies, and with it the calls of the run.
    """

    now: Callable[[], float] = time.time
    store: NoteStore = field(default_factory=MemoryNotes)
    depth: int = 0
    is_bound: bool = False
    keeps_events: bool = True

    def with_store(self, store: Store, depth: int = 0) -> "Journal":
        return Journal(self.now, store, depth, is_bound=True, keeps_events=not store.writes_turns)

    async def open(self, request: RunAgentInput, ctx: RunContext) -> "TurnJournal":
        """Return the journal of the turn of a run. The engine has read the client's thread when the run began."""
        read = ctx.turn.notes if self.is_bound and ctx.part_of is None and self.depth == 0 else None
        return TurnJournal(self, request, ctx, await self.load(ctx) if read is None else load_notes(read, self.now()))

    async def load(self, ctx: RunContext) -> list[Note]:
        thread, kind = self.scope_of(ctx)
        with store_errors_as_app_errors():
            return load_notes(await wait_for_store(lambda: self.store.notes(thread, kind), ctx.run_id), self.now())

    def scope_of(self, ctx: RunContext) -> tuple[ThreadKey, str]:
        """Return the client's thread, with which the notes of the run's agent are deleted, and their kind."""
        part = "" if ctx.part_of is None else ctx.thread_id
        return ThreadKey(ctx.caller.owner, ctx.part_of or ctx.thread_id), journal_kind(self.depth, part)


class TurnJournal:
    """The journal of the turn to which a run belongs.

    Attributes:
        ctx: the context of the run, with the demands of the turn.
        calls: calls of this turn and settled calls of earlier ones: the settled ones first, each in order of creation.
        is_new: True if the run begins the turn.
        is_over: True if the run only repeats or cancels answers of turns that have ended.
        is_asked_anew: True if the user asks something new in this run.
        has_thread: True if the store has messages of the thread. If not, the agent may know questions that are lost.
        id: id of the turn.
        unknown_answers: entries of ``resume`` that answer nothing that the journal knows.
    """

    def __init__(self, journal: Journal, request: RunAgentInput, ctx: RunContext, notes: Sequence[Note] = ()) -> None:
        entries, stored = request.resume or (), next((note for note in notes if isinstance(note, TurnNote)), None)
        answered = {each.id: note.is_settled for note in notes for each in note.interrupts}
        waits = not all(answered.values())
        deciding = [entry.status for entry in entries if not answered.get(entry.interrupt_id, True)]
        is_abandoned = all(status == "cancelled" for status in deciding) if deciding else not waits
        self.has_thread = not all(ctx.turn.is_new(message.id) for message in request.messages)
        self.is_asked_anew = is_asked_anew(request, ctx)
        self.is_new = self.is_asked_anew and is_abandoned
        self.ctx = ctx if self.is_new else with_demands_of(stored, request, ctx)
        self._journal = journal
        self._stored = None if stored is None or stored.is_ended else stored
        self._is_stored = not self.is_new and (self._stored is not None or waits)
        self.id = self._stored.turn if self._stored is not None and self._is_stored else ctx.run_id
        is_old = bool(entries) and all(answered.get(entry.interrupt_id, self.has_thread) for entry in entries)
        self.is_over = is_old and not (self._is_stored or brings(request, ctx, UserMessage, ToolMessage))
        self.unknown_answers = [entry for entry in entries if entry.interrupt_id not in answered]

        self.calls = sorted((note for note in notes if isinstance(note, CallNote)), key=lambda it: not it.is_settled)
        self._made = {note.id: note for note in self.calls if note.turn and note.is_settled}
        self._started: dict[str, CallNote] = {}

        own = [note for note in notes if isinstance(note, QuestionNote) and not note.is_over]
        answers = answers_by_interrupt(entries, {note.question.id for note in own if not note.is_settled})
        self._cancels_own = any(entry.status == "cancelled" for _, entry in answers.values())
        new = {id_: entry for id_, (_, entry) in answers.items()}
        own = [replace(note, entry=new.get(note.question.id, note.entry)) for note in own]
        self._questions = [note for note in own if self._is_stored or note.question.id in new]
        self._former = [replace(it, is_over=True) for it in own if it.is_settled and it not in self._questions]
        self._replayable = {note.id for note in self.calls if note.turn and not note.number}

    @property
    def open_questions(self) -> Sequence[Interrupt]:
        return [note.question for note in self._questions if not note.is_settled]

    @property
    def answers(self) -> Sequence[ResumeEntry]:
        """The answers to the agent's own questions, and those to questions that only the agent may know."""
        unknown = () if self.has_thread else self.unknown_answers
        return [*(note.entry for note in self._questions if note.entry is not None), *unknown]

    def is_cancelled_by(self, *, is_rejected: bool) -> bool:
        """Return True if the turn ends as cancelled, because a call is rejected or an own question is cancelled."""
        return (is_rejected or self._cancels_own) and not self.is_new and self.ctx.call_rules.cancels_on_denial

    def time_after(self, lifetimes: float) -> float:
        return self._journal.now() + lifetimes * LIFETIME

    @property
    def _until(self) -> float | None:
        """Time at which a note that is written now expires. It does not while a question of the agent's own waits."""
        return None if self._questions else self.time_after(2)

    # --- calls ---

    def find(self, call: ModelToolCall, number: int) -> CallNote | None:
        """Return the note of a call that an earlier run of the turn has made, or None.

        ``number`` is 0 for a call that a framework has announced by its id. A model may use an id twice, so the agent
        takes the result of such a call once in a run, and not at all if it has announced another call under the id.
        """
        made = [note for note in self._made.values() if note.turn == self.id and note.is_made_by(call, number)]
        if not number:
            replayable = self._replayable if call.id not in self.ctx.turn.repeated_calls else ()
            made = [note for note in made if note.id in replayable]
            self._replayable -= {note.id for note in made[:1]}
        return made[0] if made else None

    def add(self, calls: Sequence[CallNote]) -> None:
        """Add calls that an answer of this run has settled."""
        self._made |= {note.id: note for note in calls if note.turn and note.is_settled}

    async def start(self, notes: Sequence[CallNote]) -> None:
        """Store that calls are started. If the store fails, they must not run."""
        if self._journal.keeps_events and self.ctx.part_of is None:
            started = {note.id: note.with_result(failed_result(CUT_OFF)) for note in notes}
            await self._put([(note, self._until) for note in started.values()])
            self._started |= started

    async def claim(self, note: CallNote, until: float | None = None) -> bool:
        """Settle an open call with the result that it keeps if the run ends before another one is stored.

        Return True for one claim of a call only. If it is False, or if the store fails, the call must not run.
        """
        thread, kind = self._journal.scope_of(self.ctx)
        record = ThreadNote(kind, note.id, dump_note(note), until or self._until, is_settled=True)
        with store_errors_as_app_errors():
            return await wait_for_store(lambda: self._journal.store.settle_note(thread, record), self.ctx.run_id)

    async def load_call(self, call_id: str) -> CallNote | None:
        notes = await self._journal.load(self.ctx)
        return next((note for note in notes if isinstance(note, CallNote) and note.id == call_id), None)

    async def record(self, note: CallNote) -> None:
        """Record the result of a call, also if the run is cancelled meanwhile.

        It is stored if an answer has claimed the call, or if the agent may be called again for the turn.
        """
        self.add([note])
        if note.interrupts or (note.turn and self._is_stored):
            storing = asyncio.create_task(self._put_logged([(note, self._until)]))
            try:
                await asyncio.shield(storing)
            except asyncio.CancelledError:
                self.ctx.background(storing)
                raise

    def cut_off(self, note: CallNote) -> CallNote:
        """Return the note of a call that was cancelled. The store has it as cut off.

        One that was not started is taken back, so that a replay makes it. Its approval is used up.
        """
        if note.id in self._made:
            return self._made[note.id]
        if note.id in self.ctx.turn.started_calls:
            cut_off = note.with_result(failed_result(CUT_OFF))
            self.add([cut_off])
            return cut_off
        undone = note.with_result(failed_result(NOT_STARTED))
        if note.interrupts or note.id in self._started:
            self._started.pop(note.id, None)
            until = self._until if note.interrupts else self.time_after(0)
            self.ctx.background(self._put_logged([(undone, until)]))
        return undone

    async def reopen(self, note: CallNote) -> bool:
        """Store new questions of a call. Return True if the thread exists."""
        return await self._put([(note, self._until)])

    # --- the end of the run ---

    @asynccontextmanager
    async def ending(self, calls: Sequence[CallNote] = (), own: Sequence[Interrupt] = ()) -> AsyncIterator[None]:
        """Store the questions of a run, or the end of the turn, while the run emits its end in this block.

        Questions are stored before a client sees them, so that no answer can come too early. Those about calls are
        withdrawn if the block fails. The engine stores the agent's ``own`` questions themselves.
        """
        if not calls and not own:
            await self.end()
            yield
            return
        self._questions = [replace(note, is_taken=note.is_settled) for note in self._questions]
        try:
            await self.save(calls, lasts=bool(own))
            yield
        except BaseException:
            self.ctx.background(self._withdraw(calls))
            raise

    async def refuse_answers(self) -> None:
        """Keep the questions open whose answers the agent has refused."""
        refused = [replace(note, entry=None) for note in self._questions if note.is_settled and not note.is_taken]
        self._questions = [note for note in self._questions if note.is_taken]
        await self.save(refused, lasts=True)

    async def end(self) -> None:
        """End the turn, and cancel its questions that still wait. If the store fails, only this run knows of it."""
        cancelled = partial(ResumeEntry, status="cancelled")
        asked = self._questions
        self._questions = [replace(it, entry=it.entry or cancelled(interrupt_id=it.question.id)) for it in asked]
        try:
            await self.save(is_ended=True)
        except AppError as error:
            self._log_loss("results not stored, their calls count as cut off", error)

    async def save(self, asked: Sequence[Note] = (), *, lasts: bool = False, is_ended: bool = False) -> None:
        """Store the calls and answers of the turn, new questions, and the turn if it has demands or is referred to.

        ``lasts`` is True if a new question of the agent's own waits for as long as it takes.
        """
        made = [note for note in self._made.values() if note.turn == self.id and (self._is_stored or not is_ended)]
        past: list[Note] = [replace(note, turn="") for note in self._made.values() if note.turn != self.id]
        notes: list[Note] = [*made, *(note for note in self._questions if note.is_settled), *asked]
        rules = self.ctx.call_rules
        turn = TurnNote(self.id, rules.asks_always, rules.cancels_on_denial, is_ended)
        if self._stored or turn != TurnNote(self.id, is_ended=is_ended) or any(map(refers_to_turn, notes)):
            notes.append(turn)
        past += self._former
        if is_ended:
            past, notes = [*past, *map(ended, notes)], []
        ids = {note.id for note in (*notes, *past)}
        until = None if lasts else self._until
        dropped = [(note, self.time_after(0)) for note in self._started.values() if note.id not in ids]
        kept = [*((note, until) for note in notes), *((note, self.time_after(2)) for note in past)]
        await self._put([*kept, *dropped])

    async def _put(self, notes: Collection[tuple[Note, float | None]]) -> bool:
        """Store notes, each with the time at which it expires, in one write. Return True if the thread exists."""
        thread, kind = self._journal.scope_of(self.ctx)
        records = [
            ThreadNote(kind, note.id, dump_note(note), until, is_settled=note.is_settled and bool(note.interrupts))
            for note, until in notes
        ]
        with store_errors_as_app_errors():
            put = partial(self._journal.store.put_notes, thread, records)
            return not records or await wait_for_store(put, self.ctx.run_id)

    async def _put_logged(self, notes: Collection[tuple[Note, float | None]]) -> None:
        try:
            await self._put(notes)
        except AppError as error:
            self._log_loss("results not stored, their calls count as cut off", error)

    async def _withdraw(self, calls: Sequence[CallNote]) -> None:
        """Let the calls of a failed run expire that are still open. A call that was answered meanwhile stays."""
        try:
            for note in calls:
                await self.claim(note.with_result(failed_result(CUT_OFF)), self.time_after(0))
        except AppError as error:
            self._log_loss("questions of a failed run not removed", error)

    def _log_loss(self, phrase: str, error: AppError) -> None:
        fields = format_fields({"run": self.ctx.run_id, "error": error.code})
        logger.warning("%s %s", phrase, fields, exc_info=error)


def refers_to_turn(note: Note) -> bool:
    return isinstance(note, QuestionNote) or (isinstance(note, CallNote) and bool(note.turn))


def ended(note: Note) -> Note:
    if isinstance(note, CallNote):
        return replace(note, turn="")
    return replace(note, is_over=True) if isinstance(note, QuestionNote) else note


def is_asked_anew(request: RunAgentInput, ctx: RunContext) -> bool:
    """Return True if the run brings a message of the user, or calls a skill."""
    props = request.forwarded_props
    return (isinstance(props, Mapping) and "skill" in props) or brings(request, ctx, UserMessage)


def brings(request: RunAgentInput, ctx: RunContext, *kinds: type[Message]) -> bool:
    """Return True if the last message is new to the thread, and of one of these kinds."""
    last = request.messages[-1] if request.messages else None
    return isinstance(last, kinds) and ctx.turn.is_new(last.id)


def with_demands_of(turn: TurnNote | None, request: RunAgentInput, ctx: RunContext) -> RunContext:
    """Return the context with the demands of the turn that a run continues.

    A turn whose agent has ended is continued only by the results of the client's tools.
    """
    last = request.messages[-1] if request.messages else None
    if turn is None or (turn.is_ended and not isinstance(last, ToolMessage)):
        return ctx
    rules = ctx.call_rules
    rules = rules.with_demands(asks_always=turn.asks_always, cancels_on_denial=turn.cancels_on_denial)
    return structs.replace(ctx, call_rules=rules)
