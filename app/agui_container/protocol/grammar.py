"""Order rules of AG-UI 1.0 as tables. ``validator`` applies them.

``RUN``      transitions of the run: state and boundary to next state. A missing entry is illegal.
``ENTITIES`` everything that events open and close. Each event class opens, continues or closes one kind of entity.
             Text messages, tool calls, reasoning spans and reasoning messages are identified by an id, steps by their
             name and owner, subagents by their ``subagentRunId``.
``EVENTS``   all event classes that may be in a stream after chunks were expanded.
``KINDS``    the entries of all tables for one event class, cached.

Source: AG-UI spec 1.1, events/lifecycle, basic/patterns/streaming and events/subagents. Rule numbers V1 to V29 count
the checks of ``verifyEvents`` in ``@ag-ui/client`` 1.0.0.
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

from agui_core.expander import IllegalEvent
from agui_core.type_cache import TypeCache


class LifecycleState(StrEnum):
    BEFORE = "not started"
    ACTIVE = "active"
    FINISHED = "finished"
    ERRORED = "errored"


class Boundary(StrEnum):
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
    """Name spaces of ids. An id is unique within one, and the owner of an entity is stored per name space."""

    MESSAGE = auto()
    TOOL_CALL = auto()
    ACTIVITY = auto()
    REASONING = auto()


class Entity(Struct, frozen=True, eq=False):
    """A kind of entity that events open and close. Without ``id_space`` it has no owner for later events."""

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
"""Events that ``ProducerRules`` checks."""

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
    ActivitySnapshotEvent,
    ActivityDeltaEvent,
    MessagesSnapshotEvent,
)
"""Events that change the conversation, or only the metadata of its messages. ``Transcript`` applies them."""

STATE = (StateSnapshotEvent, StateDeltaEvent)
"""Events that change the shared state."""


class EventKind(Struct, frozen=True):
    """Table entries for one event class. ``affects_calls`` is True if ``ProducerRules`` checks the event.

    The fields are plain values because enum look-ups are slow, and this is read for every event.
    """

    event: type[BaseEvent]
    type: EventType
    boundary: Boundary
    is_boundary: bool
    entity: Entity | None
    is_opening: bool
    is_closing: bool
    is_delta: bool
    affects_calls: bool
    affects_messages: bool
    changes_state: bool


def event_kind(cls: type) -> EventKind:
    """Raise ``IllegalEvent`` if the class is not an event of ``ag_ui.core`` or a subclass of one."""
    event = next((base for base in cls.__mro__ if base in EVENTS), None)
    if event is None:
        raise IllegalEvent(f"{cls.__name__} is not an AG-UI event")
    entity, phase = ENTITIES.get(event, (None, Phase.CONTINUE))
    return EventKind(
        event,
        event.model_fields["type"].default,
        boundary=BOUNDARIES.get(event, Boundary.OTHER),
        is_boundary=event in BOUNDARIES,
        entity=entity,
        is_opening=phase is Phase.OPEN,
        is_closing=phase is Phase.CLOSE,
        is_delta=entity is not None and phase is Phase.CONTINUE,
        affects_calls=event in CALLS,
        affects_messages=event in MESSAGES,
        changes_state=event in STATE,
    )


KINDS = TypeCache(event_kind)
