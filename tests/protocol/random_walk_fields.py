"""Fields of the events of a walk: one filler per event class. A class without one has no walk."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ag_ui import core as ag

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

FILLERS: dict[type[ag.BaseEvent], Filler] = {
    ag.TextMessageStartEvent: _named(
        "message_id", MESSAGES, role=_one_of(None, "assistant", "user"), name=_one_of(None, "n")
    ),
    ag.TextMessageContentEvent: _named("message_id", MESSAGES, delta=_delta),
    ag.TextMessageEndEvent: _named("message_id", MESSAGES),
    ag.ToolCallStartEvent: _named(
        "tool_call_id", CALLS, tool_call_name=_one_of("tool"), parent_message_id=_one_of(None, None, *MESSAGES)
    ),
    ag.ToolCallArgsEvent: _named("tool_call_id", CALLS, delta=_delta),
    ag.ToolCallEndEvent: _named("tool_call_id", CALLS),
    ag.ToolCallResultEvent: _named("message_id", MESSAGES, tool_call_id=_one_of(*CALLS), content=_one_of("ok", [])),
    ag.ReasoningStartEvent: _named("message_id", REASONINGS),
    ag.ReasoningEndEvent: _named("message_id", REASONINGS),
    ag.ReasoningMessageStartEvent: _named("message_id", REASONINGS, role=_one_of("reasoning")),
    ag.ReasoningMessageContentEvent: _named("message_id", REASONINGS, delta=_delta),
    ag.ReasoningMessageEndEvent: _named("message_id", REASONINGS),
    ag.ReasoningEncryptedValueEvent: _named(
        "entity_id",
        (*MESSAGES, *CALLS, *REASONINGS),
        subtype=_one_of("tool-call", "message"),
        encrypted_value=_one_of("secret"),
    ),
    ag.StepStartedEvent: _named("step_name", STEPS),
    ag.StepFinishedEvent: _named("step_name", STEPS),
    ag.SubagentStartedEvent: _named(
        "subagent_run_id",
        SUBAGENTS,
        name=_one_of("helper"),
        parent_subagent_run_id=_parent,
        parent_tool_call_id=_one_of(None, *CALLS),
        parent_message_id=_one_of(None, *MESSAGES),
    ),
    ag.SubagentFinishedEvent: _named(
        "subagent_run_id",
        SUBAGENTS,
        outcome=_one_of(None, {"type": "success"}, {"type": "suspended", "interruptIds": ["i"]}),
    ),
    ag.SubagentErrorEvent: _named("subagent_run_id", SUBAGENTS, message=_one_of("no"), code=_one_of(None, "C")),
    ag.ActivitySnapshotEvent: _named(
        "message_id", MESSAGES, activity_type=_one_of("search"), content=_one_of({}), replace=_one_of(*REPLACE)
    ),
    ag.ActivityDeltaEvent: _named("message_id", ACTIVITIES, activity_type=_one_of("search"), patch=_patch),
    ag.StateSnapshotEvent: lambda dice: {"snapshot": _value(dice)},
    ag.StateDeltaEvent: lambda dice: {"delta": _patch(dice)},
    ag.CustomEvent: lambda dice: {"name": "note", "value": _value(dice)},
    ag.RawEvent: lambda dice: {"event": _value(dice), "source": _one_of(None, "provider")(dice)},
    ag.MessagesSnapshotEvent: lambda dice: {"messages": random_walk_messages.messages(dice.rng)},
    ag.RunStartedEvent: lambda dice: {
        "thread_id": "t",
        "run_id": "r",
        "input": random_walk_messages.run_input(dice.rng),
    },
    ag.RunFinishedEvent: lambda dice: {
        "thread_id": "t",
        "run_id": "r",
        "outcome": random_walk_messages.outcome(dice.rng),
    },
    ag.RunErrorEvent: lambda dice: {"message": "no"},
}
