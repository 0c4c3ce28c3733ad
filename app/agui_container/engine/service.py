"""The engine's interface for transports: runs, threads, health, and how to enter.

Rule: transports know these Protocols, the types in them and the room of admission. ``Engine`` satisfies them, and only
the composition root knows that class.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ag_ui.core import AgentCapabilities, Interrupt, Message, RunAgentInput

from agui_container.engine.admission.quota import Quota
from agui_container.engine.log.subscription import Readable, Subscription
from agui_container.engine.policy import NO_CONDITION, OnBusy, ThreadCondition
from agui_container.ports import Caller
from agui_container.ports.records import RunRecord, StoredMessage, ThreadDelta, ThreadRecord
from agui_container.protocol.commands import ThreadCommand

View = dict[str, object]
"""One JSON object of the API, with camelCase names."""


class Runs(Protocol):
    """The runs of callers, on every replica."""

    def find_local(self, caller: Caller, thread_id: str | None, run_id: str | None) -> Readable | None:
        """Return the run if it is in this process."""

    async def find(self, caller: Caller, thread_id: str | None, run_id: str | None) -> View:
        """Return the view of a run, by its id, or of a thread's active or latest run.

        Raises:
            AppError: RUN_NOT_FOUND, STORE_UNAVAILABLE.
        """

    async def find_or_none(
        self, caller: Caller, thread_id: str, run_id: str | None = None
    ) -> Readable | RunRecord | None:
        """Return a run or its record, or None. Raises ``AppError`` STORE_UNAVAILABLE."""

    async def list(self, caller: Caller) -> Sequence[View]:
        """Return the views of the caller's active and recent runs, newest first. Raises as ``find_or_none``."""

    async def cancel(self, caller: Caller, thread_id: str | None, run_id: str | None) -> View:
        """Cancel a run. Return its view. Raises as ``find``."""


class Threads(Protocol):
    """The threads of callers."""

    def answer(self, caller: Caller, command: ThreadCommand) -> AbstractAsyncContextManager[View]:
        """Execute a command on the caller's threads. Provides the JSON object of the response.

        The bytes of a large result count as in flight until the end of the block.

        Raises:
            AppError: THREAD_NOT_FOUND, THREAD_BUSY, VALIDATION_ERROR, STORE_UNAVAILABLE, RATE_LIMIT_EXCEEDED.
        """

    async def record(self, caller: Caller, thread_id: str) -> ThreadRecord:
        """Return the record of a thread. Raises ``AppError`` THREAD_NOT_FOUND, STORE_UNAVAILABLE."""

    async def waiting(self, caller: Caller, thread_id: str) -> Sequence[Interrupt]:
        """Return the interrupts of a thread that wait for an answer. Raises ``AppError`` STORE_UNAVAILABLE."""

    async def delta(
        self, caller: Caller, thread_id: str, since: str | None = None, *, messages: bool = True
    ) -> ThreadDelta:
        """Return a stored thread, or its changes since an earlier ``ThreadDelta.next``. Raises as ``record``."""

    async def has_messages(self, caller: Caller, thread_id: str) -> bool:
        """Return True if a thread exists and has messages. Raises ``AppError`` STORE_UNAVAILABLE."""

    async def last_message(self, caller: Caller, thread_id: str) -> StoredMessage | None:
        """Return the last message of a thread, or None without one. Raises ``AppError`` STORE_UNAVAILABLE."""

    async def messages_since(
        self, caller: Caller, thread_id: str, is_first: Callable[[Message], bool]
    ) -> Sequence[Message]:
        """Return the last messages of a thread, at least from the last one on that is first. Raises as ``waiting``."""

    async def annotate(self, caller: Caller, thread_id: str, notes: Mapping[str, object]) -> None:
        """Set entries of a thread's metadata to JSON values. None removes an entry. Raises as ``record``."""


class HealthStatus(Protocol):
    """Health of the process."""

    @property
    def started_at(self) -> float | None:
        """End of initialisation in Unix seconds, or None."""

    def report(self) -> dict[str, str | int]:
        """Return the body of ``/ping``."""


class Service(Protocol):
    """The engine of one process."""

    @property
    def runs(self) -> Runs:
        """The runs of callers."""

    @property
    def threads(self) -> Threads:
        """The threads of callers."""

    @property
    def health(self) -> HealthStatus:
        """Health of the process."""

    @property
    def quota(self) -> Quota:
        """Scarce things of the process, and what is in use of them."""

    @property
    def capabilities(self) -> AgentCapabilities:
        """The capabilities that this server announces."""

    @property
    def new_id(self) -> Callable[[], str]:
        """Function that returns a new unique id."""

    def busy_choice(self, run_input: RunAgentInput) -> OnBusy:
        """Return the treatment of this run if another one is open. Raises ``AppError`` VALIDATION_ERROR."""

    async def admit(
        self, run_input: RunAgentInput, caller: Caller, size: int = 0, condition: ThreadCondition = NO_CONDITION
    ) -> Subscription:
        """Answer a run input of ``size`` bytes: join, attach to, show, continue or start a run, and read it.

        Raises:
            AppError: THREAD_BUSY, RATE_LIMIT_EXCEEDED, SHUTTING_DOWN, RUN_NOT_FOUND, VALIDATION_ERROR,
                STORE_UNAVAILABLE.
        """

    async def attach(self, caller: Caller, thread_id: str | None, run_id: str | None, after: int) -> Subscription:
        """Read the events of a run after ``seq`` ``after``.

        Raises:
            AppError: RUN_NOT_FOUND, STORE_UNAVAILABLE, VALIDATION_ERROR, RATE_LIMIT_EXCEEDED.
        """

    @property
    def is_draining(self) -> bool:
        """True since the end of the process began."""

    def is_serving(self) -> bool:
        """Return True if new runs are accepted: after initialisation and before the drain."""

    def call_on_drain(self, callback: Callable[[], None]) -> None:
        """Call a function when the end of the process begins."""
