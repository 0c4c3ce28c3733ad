"""The port of a foreign protocol: a translator, and the connection to one client.

A **conversation** is one request of a client and all runs that answer it. Approvals and tools of the client end one
run, and their answers begin the next. The loop (``loop.ConversationLoop``) calls the methods of a translator in the
order in which they stand here, once for each event and message, and ``end`` exactly once, also for a request that the
engine has refused. docs/add-a-protocol.md walks through a protocol.

Rule: a translator is pure. It awaits nothing and reads no clock but one that it was given, and it decides nothing that
holds for every protocol: what an outcome means (``events``), which calls wait and when they expire (``pending``), how
answers become AG-UI (``approvals``), whose answer counts (``following``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import orjson
from ag_ui.core import EventType, RunAgentInput
from msgspec import Struct, field

from agui_container.ports import Caller
from agui_container.protocol.envelope import Batch
from agui_container.protocols.conversation.events import Event, Outcome
from agui_container.protocols.conversation.pending import Answer, PendingCalls
from agui_container.run.policy import NO_CONDITION, ThreadCondition

Request_contra = TypeVar("Request_contra", contravariant=True)
"""A request that begins a conversation."""

In_co = TypeVar("In_co", covariant=True)
In_contra = TypeVar("In_contra", contravariant=True)
"""A message of the client."""

Out = TypeVar("Out")
Out_contra = TypeVar("Out_contra", contravariant=True)
"""A message for the client."""


class Opening(Struct, Generic[Out], frozen=True):
    """The beginning of a conversation.

    Attributes:
        run_input: input of the first run. Its tools are the client's, also in the runs that continue.
        size: bytes of the request, which count while a run of the conversation is open.
        messages: messages for the client, once the engine has admitted the first run.
        condition: condition on the thread.
        timeouts_ms: milliseconds that the client has to run one of its tools, by name. Without one it has any time.
            A tool that the client has removed may be among them, because a model may have called it before.
    """

    run_input: RunAgentInput
    size: int
    messages: Sequence[Out] = ()
    condition: ThreadCondition = NO_CONDITION
    timeouts_ms: Mapping[str, int] = field(default_factory=dict)


class Cancellation(Struct, frozen=True):
    """The client cancels the conversation."""


class Translator(Protocol[Request_contra, In_contra, Out]):
    """Translation of one conversation. A subclass implements the first four methods. Each returns messages, in order.

    ``field_names`` are the protocol's fields, by the paths that AG-UI has for them, as errors name them to the client.
    """

    field_names: Mapping[str, str] = {}

    def open(self, request: Request_contra) -> Opening[Out]:
        """Return the input of the first run. Raises ``AppError`` VALIDATION_ERROR, naming the field."""

    def feed(self, kind: EventType, event: Event) -> Sequence[Out]:
        """Translate one AG-UI event."""

    def answers(self, message: In_contra) -> Sequence[Answer | Cancellation]:
        """Translate a message of the client. Messages that mean nothing to a conversation have no answers."""

    def end(self, outcome: Outcome) -> Sequence[Out]:
        """End the conversation."""

    def ask(self, pending: PendingCalls) -> Sequence[Out]:  # noqa: ARG002 - for subclasses
        """Ask for answers, perhaps again. A call that the client cannot run gets ``pending.fail``."""
        return ()

    def refuse(self, answer: Answer) -> Sequence[Out]:  # noqa: ARG002 - for subclasses
        """Refuse an answer of the client. No call waits for it, or another client has been faster."""
        return ()

    def settle(self, answers: Sequence[Answer]) -> Sequence[Out]:  # noqa: ARG002 - for subclasses
        """Tell the client the answers to calls that have waited.

        They are the client's own, those that have expired, or results and decisions (``Verdict.ELSEWHERE``) of another
        client. Decisions that are ``Verdict.CANCELLED`` are the last ones of a conversation. The events that follow
        them are those of a run that ends as cancelled.
        """
        return ()


class ClientConnection(Protocol[In_co, Out_contra]):
    """Connection to the client of one conversation, or of several. A subclass implements the first two methods."""

    caller: Caller

    async def receive(self) -> In_co | None:
        """Return the next message, or None after the client's last one."""

    async def send(self, messages: Sequence[Out_contra]) -> None:
        """Send messages. Raises ``AppError`` for a client that does not read."""

    @property
    def is_open(self) -> bool:
        return True

    async def send_events(self, batch: Batch, translate: Callable[[EventType, Event], Iterable[Out_contra]]) -> None:
        events = zip(batch.types, map(orjson.loads, batch.data), strict=True)
        await self.send([message for kind, event in events for message in translate(kind, event)])
