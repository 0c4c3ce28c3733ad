"""The order of AG-UI 1.0 as tables; ``sequence`` walks them.

``RUN``      the run itself: state x mark -> next state. A missing cell is illegal.
``ENTITIES`` everything with a beginning and an end. Each event class opens, continues or closes one kind of entity.
             Text messages, tool calls, reasoning spans and reasoning messages are known by an id; steps by their name
             and owner; subagents by their ``subagentRunId``.
``EVENTS``   all classes that may be in a stream once chunks are expanded: the vocabulary.
``KINDS``    a row through all of them, for each class.

Source: AG-UI spec 1.1, events/lifecycle, basic/patterns/streaming and events/subagents. Rule numbers V1 to V29 count
the checks of ``verifyEvents`` in ``@ag-ui/client`` 1.0.0; docs/architecture.md lists them.
"""

from collections.abc import Callable, Hashable
from enum import Enum, StrEnum, auto
from operator import attrgetter

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    BaseEvent,
    CustomEvent,
    EventType,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from msgspec import Struct

from app.core.errors import IllegalEvent
from app.core.perclass import PerClass


class State(StrEnum):
    """Where a run stands."""

    BEFORE = "not started"
    ACTIVE = "active"
    FINISHED = "finished"
    ERRORED = "errored"


class Mark(StrEnum):
    """What an event is to the run."""

    STARTED = auto()
    FINISHED = auto()
    ERROR = auto()
    OTHER = auto()


RUN: dict[State, dict[Mark, State]] = {
    State.BEFORE: {Mark.STARTED: State.ACTIVE, Mark.ERROR: State.ERRORED},  # V1
    State.ACTIVE: {Mark.OTHER: State.ACTIVE, Mark.FINISHED: State.FINISHED, Mark.ERROR: State.ERRORED},  # V2
    State.FINISHED: {Mark.STARTED: State.ACTIVE, Mark.ERROR: State.ERRORED},  # V4
    State.ERRORED: {Mark.STARTED: State.ACTIVE},  # V3
}

MARKS: dict[type[BaseEvent], Mark] = {
    RunStartedEvent: Mark.STARTED,
    RunFinishedEvent: Mark.FINISHED,
    RunErrorEvent: Mark.ERROR,
}


class Ids(StrEnum):
    """The name spaces in which an owner is remembered; an id is unique within one."""

    MESSAGE = auto()
    TOOL_CALL = auto()
    ACTIVITY = auto()
    REASONING = auto()


class Entity(Struct, frozen=True, eq=False):
    """A kind of thing that can be open: how it is called, how an event names it, and where its owner is remembered."""

    noun: str
    key: Callable[[BaseEvent], Hashable]
    ids: Ids | None = None


TEXT = Entity("text message", attrgetter("message_id"), Ids.MESSAGE)
TOOL_CALL = Entity("tool call", attrgetter("tool_call_id"), Ids.TOOL_CALL)
REASONING_SPAN = Entity("reasoning span", attrgetter("message_id"), Ids.REASONING)
REASONING_MESSAGE = Entity("reasoning message", attrgetter("message_id"), Ids.REASONING)
STEP = Entity("step", attrgetter("step_name", "subagent_run_id"))
SUBAGENT = Entity("subagent", attrgetter("subagent_run_id"))


class Phase(Enum):
    """What an event does to its entity."""

    OPEN = auto()
    CONTINUE = auto()
    CLOSE = auto()


ENTITIES: dict[type[BaseEvent], tuple[Entity, Phase]] = {
    TextMessageStartEvent: (TEXT, Phase.OPEN),  # V10
    TextMessageContentEvent: (TEXT, Phase.CONTINUE),  # V11
    TextMessageEndEvent: (TEXT, Phase.CLOSE),  # V12
    ToolCallStartEvent: (TOOL_CALL, Phase.OPEN),  # V13
    ToolCallArgsEvent: (TOOL_CALL, Phase.CONTINUE),  # V16
    ToolCallEndEvent: (TOOL_CALL, Phase.CLOSE),  # V16
    ReasoningStartEvent: (REASONING_SPAN, Phase.OPEN),  # V20
    ReasoningEndEvent: (REASONING_SPAN, Phase.CLOSE),  # V21
    ReasoningMessageStartEvent: (REASONING_MESSAGE, Phase.OPEN),  # V20
    ReasoningMessageContentEvent: (REASONING_MESSAGE, Phase.CONTINUE),  # V21
    ReasoningMessageEndEvent: (REASONING_MESSAGE, Phase.CLOSE),  # V21
    StepStartedEvent: (STEP, Phase.OPEN),  # V17
    StepFinishedEvent: (STEP, Phase.CLOSE),  # V18, V19
    SubagentStartedEvent: (SUBAGENT, Phase.OPEN),  # V25 to V27
    SubagentFinishedEvent: (SUBAGENT, Phase.CLOSE),  # V28
    SubagentErrorEvent: (SUBAGENT, Phase.CLOSE),  # V28
}

EVENTS: frozenset[type[BaseEvent]] = frozenset(
    {
        *MARKS,
        *ENTITIES,
        ActivityDeltaEvent,
        ActivitySnapshotEvent,
        CustomEvent,
        MessagesSnapshotEvent,
        RawEvent,
        ReasoningEncryptedValueEvent,
        StateDeltaEvent,
        StateSnapshotEvent,
        ToolCallResultEvent,
    }
)

CALLS = (ToolCallStartEvent, ToolCallResultEvent, MessagesSnapshotEvent, RunFinishedEvent)
"""What says something of tool calls beyond their order; see ``duties``."""

MESSAGES = (
    TextMessageStartEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningEncryptedValueEvent,
    ToolCallStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    MessagesSnapshotEvent,
)
"""What changes the conversation, be it by metadata only; see ``fold``."""

STATE = (StateSnapshotEvent, StateDeltaEvent)
"""What changes the shared state."""


class Kind(Struct, frozen=True):
    """What the tables say of one class of events.

    Plain values, because looking up a member of an enum takes longer than a step of the order.

    Attributes:
        event, type: the class of the protocol that the class is or extends, and what it is called on the wire.
        is_boundary: begins or ends a run.
        opens, closes: what it does to its entity.
        is_delta: it goes on with it.
    """

    event: type[BaseEvent]
    type: EventType
    mark: Mark
    is_boundary: bool
    entity: Entity | None
    opens: bool
    closes: bool
    is_delta: bool
    tells_of_calls: bool
    tells_of_messages: bool
    changes_state: bool


def kind_of(given: type) -> Kind:
    """What a class of ``ag_ui.core``, or one that extends it, is.

    Raises:
        IllegalEvent: for anything else.
    """
    event = next((base for base in given.__mro__ if base in EVENTS), None)
    if event is None:
        raise IllegalEvent(f"{given.__name__} is not an AG-UI event")
    entity, phase = ENTITIES.get(event, (None, Phase.CONTINUE))
    return Kind(
        event,
        event.model_fields["type"].default,
        mark=MARKS.get(event, Mark.OTHER),
        is_boundary=event in MARKS,
        entity=entity,
        opens=phase is Phase.OPEN,
        closes=phase is Phase.CLOSE,
        is_delta=entity is not None and phase is Phase.CONTINUE,
        tells_of_calls=event in CALLS,
        tells_of_messages=event in MESSAGES,
        changes_state=event in STATE,
    )


KINDS = PerClass(kind_of)
