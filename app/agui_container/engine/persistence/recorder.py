"""What is written down of one run: that it began, its events, how it ended.

Rule: where the store outlives the process, an event is stored before a reader sees it, together with all that came in
a few milliseconds, never alone in a burst. Nothing here holds a run up: whoever ends it says so at once, and ``write``
brings it to the store whatever the agent does. A store that does not answer ends the run, and is told nothing more.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from enum import Enum, auto

from ag_ui.core import Message, RunAgentInput
from pydantic_core import from_json

from agui_container.engine.log.event_log import EventLog
from agui_container.engine.persistence.backlog import early_end
from agui_container.engine.persistence.cluster import FIRST_PAUSE, GIVE_UP_SECONDS, LONGEST_PAUSE, Cluster
from agui_container.engine.policy import OnBusy
from agui_container.ports.records import (
    AlreadyExists,
    Change,
    Claim,
    Claimed,
    Ending,
    RunKey,
    RunRecord,
    StoredMessage,
    StoreWarning,
)
from agui_container.ports.store import LeaseLost, StoreUnavailable, store_errors_as_app_errors
from agui_container.protocol.conversation.merge import MergedHistory, append_history, merge_history, without_copies
from agui_container.protocol.conversation.state import dump_state
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Envelope

WINDOW_SECONDS = 0.005
"""How long an event waits for others before all are stored at once."""

LEASE_TAKEN = AppError(ErrorCode.RUN_LOST, "The run has been taken from this server.")

logger = logging.getLogger(__name__)


class RunAlreadyStored(Exception):
    """These ids have run before: ``record`` says where."""

    def __init__(self, record: RunRecord) -> None:
        super().__init__(record.key.run_id)
        self.record = record


class WriteOutcome(Enum):
    """What became of one try to write."""

    CONTINUE = auto()
    DONE = auto()
    LEASE_LOST = auto()
    FAILED = auto()


class RunRecorder:
    """One run's record.

    Args:
        archive: the store.
        key: whose run it is.
        on_busy: what to do about an active run elsewhere on the thread.
        behind: ids of the runs here that this one lets end first; those elsewhere come to them.
    """

    def __init__(self, cluster: Cluster, key: RunKey, on_busy: OnBusy, behind: Iterable[str] = ()) -> None:
        self.cluster = cluster
        self.key = key
        self._on_busy = on_busy
        self._predecessors = dict.fromkeys(behind)
        self._claiming: asyncio.Future[None] | None = None
        self.is_claimed = False
        """Whether the thread has been made this run's."""
        self.is_duplicate = False
        """Whether these ids have run before, so that they mean that run."""
        self.persisted = False
        """Whether the run is over and a store that outlives this process has the last word on it."""
        self.warnings: Sequence[StoreWarning] = ()
        """What the store could not do and did not fail for, known when the run begins."""
        self._asked: RunAgentInput | None = None
        """What was sent and is not written down yet."""
        self._ending: Ending | None = None
        self._cut: AppError | None = None
        self._is_in_step = True
        """Whether the store is known to have exactly what readers may see."""
        self._dirty = False
        self._listener: asyncio.Future[None] | None = None

    # --- the beginning ---

    async def begin(self, run_input: RunAgentInput) -> RunAgentInput:
        """Make the thread this run's, and put what is kept of it before what was sent.

        Raises:
            AlreadyRun: run nothing; read that run.
            AppError: THREAD_BUSY, STORE_UNAVAILABLE.
        """
        self._asked = run_input
        claim = self._claim()
        with store_errors_as_app_errors():
            await self._uncancellable(claim)
            return await self._merge_history(run_input)

    async def _uncancellable(self, claim: Coroutine[object, None, None]) -> None:
        """Claim to the end, whatever becomes of the run: a cancel must know whether there is something to end."""
        self._claiming = asyncio.ensure_future(claim)
        self._claiming.add_done_callback(ignore_result)
        await asyncio.shield(self._claiming)
        self._claiming = None

    async def _claim(self) -> None:
        cluster, pause = self.cluster, FIRST_PAUSE
        deadline = asyncio.get_running_loop().time() + GIVE_UP_SECONDS
        while self._ending is None:
            now = cluster.clock.time()
            found = await cluster.store.runs.claim(Claim(self.key, cluster.replica, now, cluster.lease()))
            if isinstance(found, Claimed):
                self.is_claimed = True
                return
            if isinstance(found, AlreadyExists):
                self.is_duplicate = True
                raise RunAlreadyStored(found.run)
            mine = found.run.replica == cluster.replica
            if asyncio.get_running_loop().time() > deadline or (self._on_busy is OnBusy.REJECT and not mine):
                raise AppError(ErrorCode.THREAD_BUSY, "Another run is active on this thread.")
            if self._on_busy is OnBusy.INTERRUPT and not mine:
                await cluster.cancel(found.run)
            elif not mine:
                self._predecessors[found.run.key.run_id] = None
            await asyncio.sleep(pause)  # this process's own last run may still be on its way to the store
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _merge_history(self, run_input: RunAgentInput) -> RunAgentInput:
        cluster, thread = self.cluster, self.key.thread
        kept = await cluster.store.threads.changes(thread)
        self.warnings = cluster.store.take_warnings(thread)
        if not self.is_claimed or kept is None:
            return with_state(run_input, None)
        together = self._combine(kept.messages, run_input.messages)
        said = sent_state(run_input, kept.state)
        if together.changed or together.order is not None or said is not None:
            messages = [StoredMessage(key, data) for key, data in together.changed.items()]
            change = Change(messages=messages, order=together.order, state=said)
            await cluster.store.runs.change(self.key, cluster.replica, cluster.clock.time(), change)
        self._asked = None
        run_input = with_state(run_input, kept.state)
        if together.messages is run_input.messages:
            return run_input
        return run_input.model_copy(update={"messages": list(together.messages)})

    def _combine(self, kept: Sequence[StoredMessage], sent: Sequence[Message]) -> MergedHistory:
        """Who has waited for another run had spoken before it ended: that one's answer is neither left out nor old."""
        by_id = {message.id: message.data for message in kept}
        if not self._predecessors:
            return merge_history(by_id, sent)
        final = {message.id for message in kept if message.run_id in self._predecessors}
        return append_history(by_id, without_copies(by_id, sent), final)

    # --- what is written ---

    def notify(self) -> None:
        """There is something to store."""
        self._dirty = True
        if self._listener is not None and not self._listener.done():
            self._listener.set_result(None)

    async def _wait_dirty(self) -> None:
        """Wait for what no batch has had. Lighter than an ``Event``, and a run has one for as long as it goes on."""
        if not self._dirty:
            self._listener = asyncio.get_running_loop().create_future()
            await self._listener

    def end(self, ending: Ending) -> None:
        """The run has ended like this, and its last event is in the log."""
        self._ending = ending
        self.notify()

    def cut_backlog(self, error: AppError) -> None:
        """Store the run's end next, because the server stops. What more than one batch holds is left out.

        ``error`` ends a run for whose readers something is missing then.
        """
        self._cut = error

    async def write(self, log: EventLog, on_loss: Callable[[AppError], None]) -> None:
        """Store what comes, and let readers see it, until the end is stored. The owner awaits it.

        ``on_loss`` ends the run that can be written down no more. Harmless when it has ended.
        """
        if self._claiming is not None:
            await asyncio.wait([self._claiming])
        outcome = WriteOutcome.CONTINUE if self.is_claimed else await self._record_unclaimed()
        while outcome is WriteOutcome.CONTINUE:
            await self._wait_dirty()
            if self._ending is None:
                await asyncio.sleep(WINDOW_SECONDS)
            elif self._asked is not None:
                await self._record_input(self._asked)
            outcome = await self._store_pending(log)
        if outcome is WriteOutcome.FAILED:
            on_loss(AppError(ErrorCode.STORE_UNAVAILABLE, "What this server keeps cannot be reached any more."))
            log.release_all()
            return
        if outcome is WriteOutcome.LEASE_LOST:
            on_loss(LEASE_TAKEN)
            await self._append_foreign(log)
        self.persisted = self.cluster.durable

    async def _record_unclaimed(self) -> WriteOutcome:
        """It ended before it was let in. Where these ids mean a run that is over, its readers get that one."""
        try:
            ran = await self.cluster.store.runs.get(self.key) if self.cluster.durable else None
            self.is_duplicate = self.is_duplicate or ran is not None
            if ran is not None and not ran.is_active:
                return WriteOutcome.LEASE_LOST
        except StoreUnavailable as error:
            logger.warning("run=<%s> | the store does not answer: %s", self.key.run_id, error)
        except Exception:
            logger.exception("run=<%s> | whether it has run before cannot be told", self.key.run_id)
        return WriteOutcome.FAILED

    async def _record_input(self, asked: RunAgentInput) -> None:
        """Write down what was sent for a run that was ended before it had come to that."""
        try:
            await self._merge_history(asked)
        except Exception:
            logger.warning("run=<%s> | what was sent for it is not kept", self.key.run_id, exc_info=True)
            self._asked = None

    async def _append_foreign(self, log: EventLog) -> None:
        """Let readers see how the other replica has ended the run, in place of what they have not seen.

        Of a run that was deleted with its thread they see the end that it has here.
        """
        runs, deadline = self.cluster.store.runs, asyncio.get_running_loop().time() + GIVE_UP_SECONDS
        written: list[Envelope] = []
        while asyncio.get_running_loop().time() < deadline:
            try:
                record = await runs.get(self.key)
                if record is None:
                    break
                while page := await runs.envelopes(self.key, log.watermark + len(written)):
                    written += page
                if not record.is_active:
                    log.rollback_unpublished()
                    log.append_foreign(written)
                    break
            except StoreUnavailable as error:
                logger.warning("run=<%s> | the store does not answer: %s", self.key.run_id, error)
            except Exception:
                logger.exception("run=<%s> | its other end cannot be read", self.key.run_id)
                break
            await asyncio.sleep(LONGEST_PAUSE)
        log.release_all()

    async def _store_pending(self, log: EventLog) -> WriteOutcome:
        """Try until the store has what is there now, or the run is not ours any more."""
        pause, deadline = FIRST_PAUSE, asyncio.get_running_loop().time() + GIVE_UP_SECONDS
        while True:
            try:
                return await self._stored(log)
            except LeaseLost:
                logger.warning("run=<%s> | another replica has taken it over", self.key.run_id)
                return WriteOutcome.LEASE_LOST
            except StoreUnavailable as error:
                logger.warning("run=<%s> | the store does not answer: %s", self.key.run_id, error)
                if asyncio.get_running_loop().time() > deadline:
                    return WriteOutcome.FAILED
            except Exception:
                logger.exception("run=<%s> | its events cannot be stored", self.key.run_id)
                return WriteOutcome.FAILED
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _stored(self, log: EventLog) -> WriteOutcome:
        self._dirty, ending = False, self._ending
        envelopes = log.unpersisted().envelopes() if self.cluster.durable else []
        runs, replica = self.cluster.store.runs, self.cluster.replica
        is_last = ending is not None and (not envelopes or envelopes[-1].seq == len(log))
        if ending is not None and not is_last and self._cut is not None and log.watermark and self._is_in_step:
            await self._end_early(log, ending, self._cut)
            return WriteOutcome.DONE
        if ending is not None and is_last:
            await runs.finish(self.key, replica, envelopes, ending)
        elif envelopes:
            self._is_in_step = False
            await runs.append(self.key, replica, envelopes)
            self._is_in_step = True
        if envelopes or is_last:
            log.advance(len(envelopes))
        await self.cluster.publish(self.key, envelopes)
        if not is_last and (ending is not None or log.watermark < len(log)):
            self.notify()  # more than one batch holds: it must not wait for the next event
        return WriteOutcome.DONE if is_last else WriteOutcome.CONTINUE

    async def _end_early(self, log: EventLog, ending: Ending, error: AppError) -> None:
        """Store the end right behind what readers have seen, and show it to them in place of the rest."""
        envelopes, ending = await early_end(log, ending, error)
        await self.cluster.store.runs.finish(self.key, self.cluster.replica, envelopes, ending)
        logger.warning("run=<%s> | events not stored at shutdown count=%s", self.key.run_id, len(log) - log.watermark)
        log.rollback_unpublished()
        log.append_foreign(envelopes)
        await self.cluster.publish(self.key, envelopes)


def ignore_result(claiming: asyncio.Future[None]) -> None:
    """Of a run that was ended while it waited nobody asks whether it could have begun."""
    if not claiming.cancelled():
        claiming.exception()


def with_state(run_input: RunAgentInput, kept: bytes | None) -> RunAgentInput:
    """What is asked, with the kept state where a client has sent none."""
    if run_input.state is not None:
        return run_input
    return run_input.model_copy(update={"state": from_json(kept or b"{}")})


def sent_state(run_input: RunAgentInput, kept: bytes | None) -> bytes | None:
    """The state that a client has sent, where it is another than the kept one.

    An empty one says nothing: clients that know of no state send it.
    """
    if run_input.state is None or run_input.state == {}:
        return None
    said = dump_state(run_input.state)
    return None if said == kept else said
