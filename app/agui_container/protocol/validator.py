"""Validation of the events of one run, after chunks were expanded (see ``expander``).

Rule of ``RunSequence``: ``feed`` raises ``IllegalEvent`` exactly for the events that the official client's verifier
rejects. A test compares both on random streams. ``closers`` returns the events that must be sent before the run ends.

The owner of an entity is the ``subagentRunId`` of the event that opened it, or None for the run's own agent. It is
stored for the whole run, per name space of ids. A later event of the entity may omit the tag but may not contradict it.
A MESSAGES_SNAPSHOT replaces the owners. The messages in RUN_STARTED.input only add owners that are not known yet.

Rule of ``ProducerRules``: checks that AG-UI requires of a server and that no client makes. A result must answer a known
call, interrupts must have unique ids, and a successful end names exactly the unanswered calls.

Sources: AG-UI spec 1.1, events/lifecycle, events/subagents, events/tool-calls#frontend-tools and
basic/patterns/interrupt-resume; ``verifyEvents`` of ``@ag-ui/client`` 1.0.0.
"""

from collections.abc import Callable, Hashable, Iterable

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivityMessage,
    ActivitySnapshotEvent,
    AssistantMessage,
    BaseEvent,
    Message,
    MessagesSnapshotEvent,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessage,
    ReasoningMessageEndEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StepFinishedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageEndEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from agui_container.protocol.grammar import (
    KINDS,
    REASONING_MESSAGE,
    REASONING_SPAN,
    RUN,
    TEXT,
    TOOL_CALL,
    Boundary,
    Entity,
    EventKind,
    IdSpace,
    LifecycleState,
)
from agui_core.expander import IllegalEvent

Open = tuple[Entity, Hashable]
"""An open entity: its kind and its key."""

Name = tuple[IdSpace, str]
"""An id within its name space."""


class RunSequence:
    """Validator of the event order of one run. Feed it every event of the run, in order."""

    __slots__ = ("_is_active", "_moves", "_open", "_owners", "_subagents", "state")

    def __init__(self) -> None:
        self._enter(LifecycleState.BEFORE)
        self._reset()

    def _enter(self, state: LifecycleState) -> None:
        self.state = state
        self._moves = RUN[state]
        self._is_active = Boundary.OTHER in self._moves

    def _reset(self) -> None:
        self._open: dict[Open, None] = {}
        self._owners: dict[Name, str | None] = {}
        self._subagents: dict[str, None] = {}

    def feed(self, event: BaseEvent) -> None:
        """Validate ``event`` and update the state. Raises ``IllegalEvent``; the state is unchanged then."""
        self.feed_kind(KINDS[type(event)], event)

    def feed_kind(self, kind: EventKind, event: BaseEvent) -> None:
        # Enum members are slow to hash, so the boundary is looked up only for the few events that have one.
        if not (kind.boundary in self._moves if kind.is_boundary else self._is_active):
            raise IllegalEvent(f"{kind.event.__name__} may not come in a run that is {self.state}")
        extra = event.__pydantic_extra__
        if extra and extra.get("subagentRunId", "") is None:
            raise IllegalEvent(f"{kind.event.__name__} carries subagentRunId: null")  # V5
        if kind.entity is not None:
            self._feed_inner(kind, kind.entity, event)
        elif kind.is_boundary:
            self._feed_boundary(event)
            self._enter(self._moves[kind.boundary])
        else:
            self._record_event(event)

    def _feed_inner(self, kind: EventKind, entity: Entity, event: BaseEvent) -> None:
        item = (entity, entity.key(event))
        if kind.is_opening:
            self._begin(item, event)
            return
        if item not in self._open:
            raise IllegalEvent(f"{describe(item)} is not open")
        tag: str | None = event.subagent_run_id  # type: ignore[attr-defined]
        if tag is not None and entity.id_space is not None:
            self._agree(entity.id_space, str(item[1]), tag)
        if kind.is_closing:
            del self._open[item]

    def _feed_boundary(self, event: BaseEvent) -> None:
        if isinstance(event, RunFinishedEvent) and self._open:
            raise IllegalEvent(f"RUN_FINISHED while open: {', '.join(map(describe, self._open))}")  # V29
        if isinstance(event, RunStartedEvent):
            self._reset()
            if event.input is not None:
                self._seed(event.input.messages, restate=False)

    # --- queries ---

    def is_open(self, entity: Entity, key: str | None = None) -> bool:
        return any(kind is entity and key in {None, each} for kind, each in self._open)

    def closers(self, failure: str | None = None) -> list[BaseEvent]:
        """Close open entities, the last first. Without ``failure``, the error of subagents, they have finished."""
        return [self._closer(entity, key, failure) for entity, key in reversed(self._open)]

    def _closer(self, entity: Entity, key: Hashable, failure: str | None) -> BaseEvent:
        if isinstance(key, tuple):
            name, owner = key
            return StepFinishedEvent(step_name=name, subagent_run_id=owner)
        name = str(key)
        if entity.id_space is not None:
            return CLOSERS[entity](name, self._owners.get((entity.id_space, name)))
        if failure is None:
            return SubagentFinishedEvent(subagent_run_id=name)
        return SubagentErrorEvent(subagent_run_id=name, message=failure)

    # --- open entities ---

    def _begin(self, item: Open, event: BaseEvent) -> None:
        if item in self._open:
            raise IllegalEvent(f"{describe(item)} is already open")
        entity, key = item
        if isinstance(event, SubagentStartedEvent):
            self._announce(event)
        elif isinstance(event, ToolCallStartEvent):
            self._inherit(event)
        elif entity.id_space is not None:
            tag = tag_of(event)
            self._agree(entity.id_space, str(key), tag)
            self._owners.setdefault((entity.id_space, str(key)), tag)
        self._open[item] = None

    # --- owners ---

    def _agree(self, ids: IdSpace, key: str, tag: str | None) -> None:
        if tag is None:
            return
        owner = self._owners.get((ids, key), tag)
        if owner != tag:
            raise IllegalEvent(f"subagentRunId {tag!r} contradicts {owner!r}, the owner of {key!r}")  # V22

    def _inherit(self, event: ToolCallStartEvent) -> None:
        """Set the owner of a tool call: that of its parent message if known, else its own tag (V14, V15)."""
        tag, owners = event.subagent_run_id, self._owners
        call, message = (IdSpace.TOOL_CALL, event.tool_call_id), (IdSpace.MESSAGE, event.parent_message_id or "")
        self._agree(*call, tag)
        if event.parent_message_id is not None and message in owners:
            owner = owners[message]
            if tag not in (None, owner):
                raise IllegalEvent(f"tool call {call[1]!r} is tagged {tag!r}, its message belongs to {owner!r}")
            if tag is None and owners.get(call, owner) != owner:
                raise IllegalEvent(f"tool call {call[1]!r} belongs to {owners[call]!r}, its message to {owner!r}")
            tag = owner
        owners.setdefault(call, tag)

    def _announce(self, event: SubagentStartedEvent) -> None:
        if event.subagent_run_id in self._subagents:
            raise IllegalEvent(f"subagent {event.subagent_run_id!r} has already finished in this run")  # V26
        parent = event.parent_subagent_run_id
        if parent is not None and parent not in self._subagents:
            raise IllegalEvent(f"parent subagent {parent!r} was not started in this run")  # V27
        self._subagents[event.subagent_run_id] = None

    def _seed(self, messages: list[Message], *, restate: bool) -> None:
        for message in messages:
            self._record(
                SEEDS.get(type(message), IdSpace.MESSAGE), message.id, message.subagent_run_id, restate=restate
            )
            for call in (message.tool_calls or ()) if isinstance(message, AssistantMessage) else ():
                self._record(IdSpace.TOOL_CALL, call.id, message.subagent_run_id, restate=restate)

    def _record(self, ids: IdSpace, key: str, owner: str | None, *, restate: bool) -> None:
        if restate or (ids, key) not in self._owners:
            self._owners[ids, key] = owner

    # --- events that open nothing ---

    def _record_event(self, event: BaseEvent) -> None:
        match event:
            case MessagesSnapshotEvent():
                self._seed(event.messages, restate=True)
            case ToolCallResultEvent():
                self._record(IdSpace.MESSAGE, event.message_id, event.subagent_run_id, restate=True)
            case ActivitySnapshotEvent():
                self._record(
                    IdSpace.ACTIVITY, event.message_id, event.subagent_run_id, restate=event.replace is not False
                )
            case ActivityDeltaEvent():
                self._agree(IdSpace.ACTIVITY, event.message_id, event.subagent_run_id)
            case ReasoningEncryptedValueEvent():
                self._agree(self._encrypted(event), event.entity_id, event.subagent_run_id)

    def _encrypted(self, event: ReasoningEncryptedValueEvent) -> IdSpace:
        if event.subtype == "tool-call":
            return IdSpace.TOOL_CALL
        return IdSpace.MESSAGE if (IdSpace.MESSAGE, event.entity_id) in self._owners else IdSpace.REASONING


SEEDS: dict[type, IdSpace] = {ReasoningMessage: IdSpace.REASONING, ActivityMessage: IdSpace.ACTIVITY}

CLOSERS: dict[Entity, Callable[[str, str | None], BaseEvent]] = {
    TEXT: lambda key, owner: TextMessageEndEvent(message_id=key, subagent_run_id=owner),
    TOOL_CALL: lambda key, owner: ToolCallEndEvent(tool_call_id=key, subagent_run_id=owner),
    REASONING_SPAN: lambda key, owner: ReasoningEndEvent(message_id=key, subagent_run_id=owner),
    REASONING_MESSAGE: lambda key, owner: ReasoningMessageEndEvent(message_id=key, subagent_run_id=owner),
}


def tag_of(event: BaseEvent) -> str | None:
    tag: str | None = getattr(event, "subagent_run_id", None)
    return tag


def describe(item: Open) -> str:
    entity, key = item
    return f"{entity.noun} {key!r}"


class ProducerRules:
    """Checks on calls and interrupts of a run. A resumed run may answer calls that the history does not have."""

    __slots__ = ("_resumed", "_unanswered", "known_calls")

    def __init__(self, history: Iterable[Message], *, resumed: bool = False) -> None:
        self.known_calls = dict.fromkeys(_call_ids(history))  # an empty dict takes less memory than an empty set
        self._resumed = resumed
        self._unanswered: dict[str, None] = {}

    def check(self, event: BaseEvent) -> None:
        """Raise ``IllegalEvent`` if the event breaks a rule. The state is not changed."""
        match event:
            case ToolCallResultEvent():
                if event.tool_call_id not in self.known_calls and not self._resumed:
                    raise IllegalEvent(f"TOOL_CALL_RESULT for the unknown call {event.tool_call_id!r}")
            case RunFinishedEvent(outcome=RunFinishedInterruptOutcome() as outcome):
                _check_interrupts(outcome)

    def feed(self, event: BaseEvent) -> None:
        """Record an accepted event. Only events with ``affects_calls`` have an effect."""
        match event:
            case ToolCallStartEvent():
                self.known_calls[event.tool_call_id] = None
                self._unanswered[event.tool_call_id] = None
            case ToolCallResultEvent():
                self._unanswered.pop(event.tool_call_id, None)
            case MessagesSnapshotEvent():
                self.known_calls.update(dict.fromkeys(_call_ids(event.messages)))

    def open_calls(self) -> list[str]:
        """Return the ids of the calls that this run made and did not answer, in order."""
        return list(self._unanswered)


def _call_ids(messages: Iterable[Message]) -> list[str]:
    return [
        call.id for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls or ()
    ]


def _check_interrupts(outcome: RunFinishedInterruptOutcome) -> None:
    ids = [interrupt.id for interrupt in outcome.interrupts]
    if not ids:
        raise IllegalEvent("an interrupt outcome without an interrupt")
    if len(set(ids)) < len(ids):
        raise IllegalEvent("two interrupts share one id")
