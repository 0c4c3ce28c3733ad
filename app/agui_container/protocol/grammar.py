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

from agui_container.protocol.errors import IllegalEvent
from agui_container.protocol.type_cache import TypeCache


class LifecycleState(StrEnum):
    """Where a run stands."""

    BEFORE = "not started"
    ACTIVE = "active"
    FINISHED = "finished"
    ERRORED = "errored"


class Boundary(StrEnum):
    """What an event is to the run."""

    STARTED = auto()
    FINISHED = auto()
    ERROR = auto()
    OTHER = auto()


RUN: dict[LifecycleState, dict[Boundary, LifecycleState]] = {
    LifecycleState.BEFORE: {Boundary.STARTED: LifecycleState.ACTIVE, Boundary.ERROR: LifecycleState.ERRORED},  # V1
    LifecycleState.ACTIVE: {
        Boundary.OTHER: LifecycleState.ACTIVE,
        Boundary.FINISHED: LifecycleState.FINISHED,
        Boundary.ERROR: LifecycleState.ERRORED,
    },  # V2
    LifecycleState.FINISHED: {Boundary.STARTED: LifecycleState.ACTIVE, Boundary.ERROR: LifecycleState.ERRORED},  # V4
    LifecycleState.ERRORED: {Boundary.STARTED: LifecycleState.ACTIVE},  # V3
}

BOUNDARIES: dict[type[BaseEvent], Boundary] = {
    RunStartedEvent: Boundary.STARTED,
    RunFinishedEvent: Boundary.FINISHED,
    RunErrorEvent: Boundary.ERROR,
}


class IdSpace(StrEnum):
    """The name spaces in which an owner is remembered; an id is unique within one."""

    MESSAGE = auto()
    TOOL_CALL = auto()
    ACTIVITY = auto()
    REASONING = auto()


class Entity(Struct, frozen=True, eq=False):
    """A kind of thing that can be open: how it is called, how an event names it, and where its owner is remembered."""

    noun: str
    key: Callable[[BaseEvent], Hashable]
    id_space: IdSpace | None = None


TEXT = Entity("text message", attrgetter("message_id"), IdSpace.MESSAGE)
TOOL_CALL = Entity("tool call", attrgetter("tool_call_id"), IdSpace.TOOL_CALL)
REASONING_SPAN = Entity("reasoning span", attrgetter("message_id"), IdSpace.REASONING)
REASONING_MESSAGE = Entity("reasoning message", attrgetter("message_id"), IdSpace.REASONING)
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
        *BOUNDARIES,
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


class EventKind(Struct, frozen=True):
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
    boundary: Boundary
    is_boundary: bool
    entity: Entity | None
    opens: bool
    closes: bool
    is_delta: bool
    affects_calls: bool
    affects_messages: bool
    changes_state: bool


def event_kind(given: type) -> EventKind:
    """What a class of ``ag_ui.core``, or one that extends it, is.

    Raises:
        IllegalEvent: for anything else.
    """
    event = next((base for base in given.__mro__ if base in EVENTS), None)
    if event is None:
        raise IllegalEvent(f"{given.__name__} is not an AG-UI event")
    entity, phase = ENTITIES.get(event, (None, Phase.CONTINUE))
    return EventKind(
        event,
        event.model_fields["type"].default,
        boundary=BOUNDARIES.get(event, Boundary.OTHER),
        is_boundary=event in BOUNDARIES,
        entity=entity,
        opens=phase is Phase.OPEN,
        closes=phase is Phase.CLOSE,
        is_delta=entity is not None and phase is Phase.CONTINUE,
        affects_calls=event in CALLS,
        affects_messages=event in MESSAGES,
        changes_state=event in STATE,
    )


KINDS = TypeCache(event_kind)
