"""The one way into a run's log: expand, encode, check, append.

Rule: what cannot be sent, or may not come now, is refused before anything depends on it, so the log is legal at every
moment. The shared state follows what is written, because that is what the client has.
"""

import logging

from ag_ui.core import BaseEvent, RunAgentInput, StateDeltaEvent, StateSnapshotEvent

from app.core.chunks import Expander
from app.core.duties import Duties
from app.core.encoder import encode
from app.core.errors import IllegalEvent
from app.core.order import TOOL_CALL, kind_of
from app.core.sequence import RunSequence
from app.core.state import SharedState
from app.engine.log import RunLog
from app.ports import RunContext

logger = logging.getLogger(__name__)


class Funnel:
    """The funnel of one run.

    Args:
        run_input: what is asked; it is not kept.
        ctx: makes ids.
        log: where accepted events go.

    Attributes:
        expand: the events that an agent's item stands for. Raises ``IllegalEvent`` for what stands for none.
        state: the shared state as these events make it.
    """

    def __init__(self, run_input: RunAgentInput, ctx: RunContext, log: RunLog) -> None:
        self.state = SharedState(run_input.state)
        self._log = log
        self._expander = Expander(ctx.new_id)
        self.expand = self._expander.expand
        self._sequence = RunSequence()
        self._duties = Duties(run_input.messages, resumed=bool(run_input.resume))

    def write(self, event: BaseEvent) -> None:
        """Encode and accept one event. Raises ``IllegalEvent`` and leaves everything as it was."""
        try:
            self.accept(event, encode(event))
        except IllegalEvent:
            self._expander.refused(event)
            raise

    def accept(self, event: BaseEvent, data: bytes) -> None:
        """``write``, for an event whose bytes are known."""
        kind = kind_of(type(event))
        if kind.tells_of_calls:
            self._duties.feed(event)
        self._sequence.feed(event)
        if kind.changes_state:
            self._fold(event)
        self._log.append(kind.type, data)

    def flush(self) -> None:
        """End the streams of chunks, which have no end of their own."""
        for event in self._expander.flush():
            self.write(event)

    def close(self, failure: str | None) -> None:
        """Write what is still owed before a terminal event. ``failure`` is the message for subagents cut off."""
        for event in self._sequence.closers(failure):  # open chunk streams are among them
            self.write(event)

    def pending(self) -> list[str]:
        """The calls of this run that have no result.

        Raises:
            IllegalEvent: a call is still open. Closing it would tell a client to run it with arguments that may be cut
                off.
        """
        if self._sequence.is_open(TOOL_CALL):
            raise IllegalEvent("the run finished with a tool call open")
        return self._duties.pending()

    def release(self) -> None:
        """The run is over: let go of what it held. Nothing more is accepted, because nothing has begun."""
        self.state = SharedState(None)
        self._sequence = RunSequence()
        self._duties = Duties(())

    def _fold(self, event: BaseEvent) -> None:
        """A delta that does not apply is skipped by clients, so it is here; it is their warning, and ours."""
        if isinstance(event, StateSnapshotEvent):
            self.state.replace(event.snapshot)
        elif isinstance(event, StateDeltaEvent):
            try:
                self.state.patch(event)
            except ValueError as error:  # PatchError, or a document too deep to be read
                logger.warning("a STATE_DELTA does not apply, clients will skip it: %s", error)
