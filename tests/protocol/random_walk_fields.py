"""Fields of the events of a walk: one filler per event class. A class without one has no walk."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    BaseEvent,
    CustomEvent,
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

from tests.protocol import random_walk_messages
from tests.protocol.random_walk_messages import ACTIVITIES, CALLS, MESSAGES, REASONINGS, SUBAGENTS

STEPS = ("plan", "act")
DELTAS = ("", "a", "two words", 'é "\\\n', "\U0001f600")
REPLACE = (None, True, False)

Fields = dict[str, Any]


@dataclass(slots=True)
class Dice:
    """Chance, and the subagents that were started in this run."""

    rng: Random
    subagents: list[str] = field(default_factory=list)


Filler = Callable[[Dice], Fields]
Throw = Callable[[Dice], object]


def _named(id_field: str, pool: tuple[str, ...], /, **more: Throw) -> Filler:
    """Fields with one id from a pool."""
    return lambda dice: {id_field: dice.rng.choice(pool), **{key: throw(dice) for key, throw in more.items()}}


def _one_of(*values: object) -> Throw:
    return lambda dice: dice.rng.choice(values)


def _parent(dice: Dice) -> str | None:
    if not dice.subagents or dice.rng.random() < 0.5:
        return None
    return dice.rng.choice(dice.subagents if dice.rng.random() < 0.95 else list(SUBAGENTS))


_delta = _one_of(*DELTAS)
_patch = _one_of([], [{"op": "add", "path": "/a", "value": 1}])
_value = _one_of(None, 0, "", {"a": [None]})

FILLERS: dict[type[BaseEvent], Filler] = {
    TextMessageStartEvent: _named(
        "message_id", MESSAGES, role=_one_of(None, "assistant", "user"), name=_one_of(None, "n")
    ),
    TextMessageContentEvent: _named("message_id", MESSAGES, delta=_delta),
    TextMessageEndEvent: _named("message_id", MESSAGES),
    ToolCallStartEvent: _named(
        "tool_call_id", CALLS, tool_call_name=_one_of("tool"), parent_message_id=_one_of(None, None, *MESSAGES)
    ),
    ToolCallArgsEvent: _named("tool_call_id", CALLS, delta=_delta),
    ToolCallEndEvent: _named("tool_call_id", CALLS),
    ToolCallResultEvent: _named("message_id", MESSAGES, tool_call_id=_one_of(*CALLS), content=_one_of("ok", [])),
    ReasoningStartEvent: _named("message_id", REASONINGS),
    ReasoningEndEvent: _named("message_id", REASONINGS),
    ReasoningMessageStartEvent: _named("message_id", REASONINGS, role=_one_of("reasoning")),
    ReasoningMessageContentEvent: _named("message_id", REASONINGS, delta=_delta),
    ReasoningMessageEndEvent: _named("message_id", REASONINGS),
    ReasoningEncryptedValueEvent: _named(
        "entity_id",
        (*MESSAGES, *CALLS, *REASONINGS),
        subtype=_one_of("tool-call", "message"),
        encrypted_value=_one_of("secret"),
    ),
    StepStartedEvent: _named("step_name", STEPS),
    StepFinishedEvent: _named("step_name", STEPS),
    SubagentStartedEvent: _named(
        "subagent_run_id",
        SUBAGENTS,
        name=_one_of("helper"),
        parent_subagent_run_id=_parent,
        parent_tool_call_id=_one_of(None, *CALLS),
        parent_message_id=_one_of(None, *MESSAGES),
    ),
    SubagentFinishedEvent: _named(
        "subagent_run_id",
        SUBAGENTS,
        outcome=_one_of(None, {"type": "success"}, {"type": "suspended", "interruptIds": ["i"]}),
    ),
    SubagentErrorEvent: _named("subagent_run_id", SUBAGENTS, message=_one_of("no"), code=_one_of(None, "C")),
    ActivitySnapshotEvent: _named(
        "message_id", MESSAGES, activity_type=_one_of("search"), content=_one_of({}), replace=_one_of(*REPLACE)
    ),
    ActivityDeltaEvent: _named("message_id", ACTIVITIES, activity_type=_one_of("search"), patch=_patch),
    StateSnapshotEvent: lambda dice: {"snapshot": _value(dice)},
    StateDeltaEvent: lambda dice: {"delta": _patch(dice)},
    CustomEvent: lambda dice: {"name": "note", "value": _value(dice)},
    RawEvent: lambda dice: {"event": _value(dice), "source": _one_of(None, "provider")(dice)},
    MessagesSnapshotEvent: lambda dice: {"messages": random_walk_messages.messages(dice.rng)},
    RunStartedEvent: lambda dice: {"thread_id": "t", "run_id": "r", "input": random_walk_messages.run_input(dice.rng)},
    RunFinishedEvent: lambda dice: {"thread_id": "t", "run_id": "r", "outcome": random_walk_messages.outcome(dice.rng)},
    RunErrorEvent: lambda dice: {"message": "no"},
}
