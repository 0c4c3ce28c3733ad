"""Random walks through AG-UI, for tests that compare two validators.

A walk is an endless stream of official events from one seed. It keeps a rough picture of what is open and who owns it,
so most moves are legal and walks get far; now and then it makes a wild move: any class, any id, any owner. The picture
is deliberately not the code under test. Ids come from small pools, so that they collide within a kind and across kinds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from ag_ui import core as ag

from tests.protocol.random_walk_fields import FILLERS, STEPS, Dice, Fields
from tests.protocol.random_walk_messages import CALLS, MESSAGES, REASONINGS, SUBAGENTS

WILDNESS = (0.0, 0.02, 0.05, 0.1, 0.25)
"""Shares of random moves; each walk picks one."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Something that opens and closes: its three classes, the field of its id, its ids, and the space of its owners."""

    start: type[ag.BaseEvent]
    content: type[ag.BaseEvent] | None
    end: type[ag.BaseEvent]
    field: str
    pool: tuple[str, ...]
    space: str


KINDS = (
    Kind(
        ag.TextMessageStartEvent,
        ag.TextMessageContentEvent,
        ag.TextMessageEndEvent,
        "message_id",
        MESSAGES,
        "message",
    ),
    Kind(ag.ToolCallStartEvent, ag.ToolCallArgsEvent, ag.ToolCallEndEvent, "tool_call_id", CALLS, "call"),
    Kind(ag.ReasoningStartEvent, None, ag.ReasoningEndEvent, "message_id", REASONINGS, "reasoning"),
    Kind(
        ag.ReasoningMessageStartEvent,
        ag.ReasoningMessageContentEvent,
        ag.ReasoningMessageEndEvent,
        "message_id",
        REASONINGS,
        "reasoning",
    ),
)
STEP = Kind(ag.StepStartedEvent, None, ag.StepFinishedEvent, "step_name", STEPS, "step")
SUBAGENT = Kind(ag.SubagentStartedEvent, None, ag.SubagentFinishedEvent, "subagent_run_id", SUBAGENTS, "subagent")


class Walk:
    """One walk, which follows from its seed. Iterate it, and stop whenever enough has been seen."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)  # noqa: S311 - a test's dice
        self.dice = Dice(self.rng)
        self.wildness = self.rng.choice(WILDNESS)
        self.state = "before"
        self.wrapping = False
        self.reset()

    def reset(self) -> None:
        self.open: dict[tuple[Kind, str, str | None], None] = {}
        self.owners: dict[tuple[str, str], str | None] = {}
        self.dice.subagents.clear()

    def __iter__(self) -> Iterator[ag.BaseEvent]:
        while True:
            event = self.wild() if self.rng.random() < self.wildness else self.sensible()
            self.track(event)
            yield event

    # --- moves ---

    def sensible(self) -> ag.BaseEvent:
        if self.state != "active":
            late = self.state == "finished" and self.rng.random() < 0.2
            return self.build(ag.RunErrorEvent if late or self.rng.random() < 0.02 else ag.RunStartedEvent)
        if self.wrapping:
            return self.close() if self.open and self.rng.random() < 0.92 else self.build(ag.RunFinishedEvent)
        return self.inner(self.rng.random())

    def inner(self, dice: float) -> ag.BaseEvent:
        if dice < 0.32:
            return self.begin()
        if dice < 0.54 and self.open:
            return self.go_on()
        if dice < 0.74 and self.open:
            return self.close()
        if dice > 0.96:
            self.wrapping = True
        return self.build(self.rng.choice(ASIDES) if dice < 0.995 else ag.RunErrorEvent)

    def wild(self) -> ag.BaseEvent:
        kind = self.rng.choice(VOCABULARY if self.rng.random() < 0.8 else BOUNDARIES)
        event = self.build(kind)
        if kind in BOUNDARIES and self.rng.random() < 0.1:
            return kind.model_validate({**event.model_dump(by_alias=True), "subagentRunId": None})
        return event

    def begin(self) -> ag.BaseEvent:
        kind = self.rng.choice((*KINDS, *KINDS, STEP, SUBAGENT))
        taken = {key for other, key, _ in self.open if other is kind}
        if kind is SUBAGENT:
            taken.update(self.dice.subagents)
        free = [key for key in kind.pool if key not in taken]
        if not free:
            return self.build(self.rng.choice(ASIDES))
        return self.build(kind.start, **{kind.field: self.rng.choice(free)})

    def go_on(self) -> ag.BaseEvent:
        kind, key, _ = self.rng.choice(list(self.open))
        if kind.content is None:
            return self.build(self.rng.choice(ASIDES))
        return self.build(kind.content, **{kind.field: key})

    def close(self) -> ag.BaseEvent:
        kind, key, owner = self.rng.choice(list(self.open))
        if kind is STEP:
            return self.build(kind.end, step_name=key, subagent_run_id=owner)
        if kind is SUBAGENT and self.rng.random() < 0.3:
            return self.build(ag.SubagentErrorEvent, subagent_run_id=key)
        return self.build(kind.end, **{kind.field: key})

    # --- events ---

    def build(self, kind: type[ag.BaseEvent], **given: str | None) -> ag.BaseEvent:
        """An event of this class; what is not given is thrown with the dice."""
        fields: Fields = {**FILLERS[kind](self.dice), **given}
        if "subagent_run_id" in kind.model_fields and "subagent_run_id" not in fields:
            fields["subagent_run_id"] = self.tag(kind, fields)
        return kind(**fields)

    def tag(self, kind: type[ag.BaseEvent], fields: Fields) -> str | None:
        """Mostly the owner on record, sometimes none, seldom another."""
        dice = self.rng.random()
        owner = self.owner(kind, fields)
        if owner is not False:
            if dice < 0.25:
                return None
            if dice < 0.97:
                return owner
        return self.rng.choice(SUBAGENTS) if dice > 0.5 else None

    def owner(self, kind: type[ag.BaseEvent], fields: Fields) -> str | Literal[False] | None:
        """The owner on record of what an event names; False where there is none."""
        parent = fields.get("parent_message_id")
        if parent is not None and ("message", parent) in self.owners:
            return self.owners["message", parent]
        space, key = SPACES.get(kind, ("", ""))
        return self.owners.get((space, fields.get(key, "")), False)

    def track(self, event: ag.BaseEvent) -> None:
        if isinstance(event, ag.RunStartedEvent):
            self.state, self.wrapping = "active", False
            self.reset()
            self.remember(event.input.messages if event.input else [])
        elif isinstance(event, ag.RunFinishedEvent | ag.RunErrorEvent):
            self.state = "finished" if isinstance(event, ag.RunFinishedEvent) else "errored"
        elif isinstance(event, ag.MessagesSnapshotEvent):
            self.remember(event.messages)
        elif isinstance(event, ag.ToolCallResultEvent):
            self.owners["message", event.message_id] = event.subagent_run_id
        elif isinstance(event, ag.ActivitySnapshotEvent):
            if event.replace is not False or ("activity", event.message_id) not in self.owners:
                self.owners["activity", event.message_id] = event.subagent_run_id
        else:
            self.track_entity(event)

    def track_entity(self, event: ag.BaseEvent) -> None:
        kind, opens = BRACKETS.get(type(event), (None, False))
        if kind is None:
            return
        key: str = getattr(event, kind.field)
        owner: str | None = getattr(event, "subagent_run_id", None)
        item = (kind, key, owner if kind is STEP else None)
        if not opens:
            self.open.pop(item, None)
            return
        self.open[item] = None
        self.owners.setdefault((kind.space, key), owner)
        if kind is SUBAGENT:
            self.dice.subagents.append(key)

    def remember(self, messages: list[Any]) -> None:
        for message in messages:
            space = {"reasoning": "reasoning", "activity": "activity"}.get(message.role, "message")
            self.owners[space, message.id] = message.subagent_run_id
            for call in getattr(message, "tool_calls", None) or ():
                self.owners["call", call.id] = message.subagent_run_id


BRACKETS: dict[type[ag.BaseEvent], tuple[Kind, bool]] = {
    **{kind.start: (kind, True) for kind in (*KINDS, STEP, SUBAGENT)},
    **{kind.end: (kind, False) for kind in (*KINDS, STEP, SUBAGENT)},
    ag.SubagentErrorEvent: (SUBAGENT, False),
}

SPACES: dict[type[ag.BaseEvent], tuple[str, str]] = {
    **{
        event: (kind.space, kind.field)
        for kind in KINDS
        for event in (kind.start, kind.content, kind.end)
        if event is not None
    },
    ag.ActivityDeltaEvent: ("activity", "message_id"),
    ag.ReasoningEncryptedValueEvent: ("reasoning", "entity_id"),
}


VOCABULARY = tuple(FILLERS)
BOUNDARIES = (ag.RunStartedEvent, ag.RunFinishedEvent, ag.RunErrorEvent, ag.MessagesSnapshotEvent)
ASIDES = (
    ag.ActivityDeltaEvent,
    ag.ActivitySnapshotEvent,
    ag.CustomEvent,
    ag.MessagesSnapshotEvent,
    ag.RawEvent,
    ag.ReasoningEncryptedValueEvent,
    ag.StateDeltaEvent,
    ag.StateSnapshotEvent,
    ag.ToolCallResultEvent,
)
