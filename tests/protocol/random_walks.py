"""Random walks through AG-UI, for tests that compare two validators.

A walk is an endless stream of items from one seed. Items are drawn again until our own validator takes them, so that
walks get far. Of one class in each walk some are sent that it rejects: all rules are broken, and a legal event that it
rejects is sent, too. Ids come from small pools, so that they collide within a kind and across kinds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from random import Random
from typing import Any

from ag_ui import core as ag

from agui_container.ports import Item
from agui_container.protocol.grammar import EVENTS, LifecycleState
from agui_container.protocol.validator import RunSequence
from agui_core.expander import CHUNKS, MAX_DELTA, Expander, IllegalEvent

WILDNESS = 0.4
"""Share of the rejected items of a class that are sent."""

SHARED = "x"
"""An id that every kind uses."""
MESSAGES = ("m1", "m2", "m3", SHARED)
CALLS = ("c1", "c2", SHARED)
REASONINGS = ("g1", "m1", SHARED)
SUBAGENTS = ("s1", "s2", "s3", "")
OWNERS = (None, None, None, None, *SUBAGENTS)
DELTAS = ("", "a", "two words", 'é "\\\n', "\U0001f600")
PATCHES: Sequence[list[dict[str, object]]] = ([], [{"op": "add", "path": "/a", "value": 1}])
VALUES = (None, 0, "", {"a": [None]})

# --- messages ---------------------------------------------------------------------------------------------------------


def draw_message(rng: Random) -> ag.Message:
    owner, key = rng.choice(OWNERS), rng.choice(MESSAGES)
    made = [
        ag.ToolCall(id=each, function=ag.FunctionCall(name="tool", arguments="{}"))
        for each in rng.sample(CALLS, rng.randrange(len(CALLS)))
    ]
    makers: list[Callable[[], ag.Message]] = [
        lambda: ag.AssistantMessage(id=key, content="hi", tool_calls=made or None, subagent_run_id=owner),
        lambda: ag.UserMessage(id=key, content="hi", subagent_run_id=owner),
        lambda: ag.ToolMessage(id=key, content="ok", tool_call_id=rng.choice(CALLS), subagent_run_id=owner),
        lambda: ag.ReasoningMessage(id=rng.choice(REASONINGS), content="hm", subagent_run_id=owner),
        lambda: ag.ActivityMessage(id=key, activity_type="search", content={}, subagent_run_id=owner),
    ]
    return rng.choice(makers)()


def draw_messages(rng: Random) -> list[ag.Message]:
    return [draw_message(rng) for _ in range(rng.randrange(4))]


def draw_input(rng: Random) -> ag.RunAgentInput | None:
    return ag.RunAgentInput(thread_id="t", run_id="r", messages=draw_messages(rng)) if rng.random() < 0.4 else None


def draw_outcome(rng: Random) -> object:
    asked = ag.Interrupt(id="i", reason="ask", subagent_run_id=rng.choice(OWNERS))
    ends = [None, ag.RunFinishedSuccessOutcome(), ag.RunFinishedCancelledOutcome()]
    return rng.choice([*ends, ag.RunFinishedInterruptOutcome(interrupts=[asked])])


# --- fields -----------------------------------------------------------------------------------------------------------

Pools = Mapping[str, Sequence[object] | Callable[[Random], object]]

POOLS: Pools = {
    "message_id": MESSAGES,
    "tool_call_id": CALLS,
    "entity_id": (*MESSAGES, *CALLS, *REASONINGS),
    "step_name": ("plan", "act"),
    "subagent_run_id": OWNERS,
    "parent_message_id": (None, None, *MESSAGES),
    "parent_tool_call_id": (None, *CALLS),
    "parent_subagent_run_id": (*[None] * 12, *SUBAGENTS),
    "tool_call_name": ("tool",),
    "delta": DELTAS,
    "content": ("ok", []),
    "subtype": ("tool-call", "message"),
    "encrypted_value": ("secret",),
    "message": ("no",),
    "activity_type": ("search",),
    "replace": (None, True, False),
    "patch": PATCHES,
    "snapshot": VALUES,
    "value": VALUES,
    "event": VALUES,
    "messages": draw_messages,
    "thread_id": ("t",),
    "run_id": ("r",),
    "input": draw_input,
}
"""Values of the fields of events, by their names. A field that has none here has its default."""

REASONING: Pools = {"message_id": REASONINGS}
OF_SUBAGENT: Pools = {"subagent_run_id": SUBAGENTS}
SUSPENDED = {"type": "suspended", "interruptIds": ["i"]}
CHUNK_IDS = (None, "f1", "f1", "f1", "f2")
OF_CHUNK: Pools = {"subagent_run_id": (None, "s1", "s2"), "delta": (*DELTAS, None, None, None)}

OWN: Mapping[type[ag.BaseEvent], Pools] = {
    ag.TextMessageStartEvent: {"role": (None, "assistant", "user"), "name": (None, "n")},
    ag.ReasoningStartEvent: REASONING,
    ag.ReasoningEndEvent: REASONING,
    ag.ReasoningMessageStartEvent: REASONING,
    ag.ReasoningMessageContentEvent: REASONING,
    ag.ReasoningMessageEndEvent: REASONING,
    ag.SubagentStartedEvent: {**OF_SUBAGENT, "name": ("helper",)},
    ag.SubagentFinishedEvent: {**OF_SUBAGENT, "outcome": (None, {"type": "success"}, SUSPENDED)},
    ag.SubagentErrorEvent: OF_SUBAGENT,
    ag.ActivitySnapshotEvent: {"content": ({},)},
    ag.ActivityDeltaEvent: {"message_id": ("m1", SHARED)},
    ag.StateDeltaEvent: {"delta": PATCHES},
    ag.CustomEvent: {"name": ("note",)},
    ag.RunFinishedEvent: {"outcome": draw_outcome},
    ag.TextMessageChunkEvent: {
        **OF_CHUNK,
        "message_id": CHUNK_IDS,
        "role": (None, None, "assistant", "user"),
        "name": (None, None, "n"),
    },
    ag.ToolCallChunkEvent: {
        **OF_CHUNK,
        "tool_call_id": CHUNK_IDS,
        "tool_call_name": (None, "tool", "tool", "other"),
        "parent_message_id": (None, "m1", "f1"),
    },
    ag.ReasoningMessageChunkEvent: {**OF_CHUNK, "message_id": CHUNK_IDS},
}
"""Values of fields that mean something else in one class of events."""


@cache
def pools_of(kind: type[ag.BaseEvent]) -> Pools:
    return {**{name: pool for name, pool in POOLS.items() if name in kind.model_fields}, **OWN.get(kind, {})}


def draw_fields(kind: type[ag.BaseEvent], rng: Random) -> dict[str, Any]:
    return {name: pool(rng) if callable(pool) else rng.choice(pool) for name, pool in pools_of(kind).items()}


# --- walks ------------------------------------------------------------------------------------------------------------

VOCABULARY = tuple(sorted(EVENTS, key=lambda kind: kind.__name__))
BOUNDARIES = (*[ag.RunStartedEvent] * 10, ag.RunFinishedEvent, ag.RunErrorEvent)
INNER = [kind for kind in VOCABULARY if kind not in {ag.RunStartedEvent, ag.RunErrorEvent}]
BESIDE_CHUNKS: list[type[ag.BaseEvent]] = [
    *INNER,
    *[kind for kind in INNER if "delta" in kind.model_fields] * 5,
    *[ag.SubagentStartedEvent] * 24,
    *[ag.SubagentErrorEvent] * 4,
]
MANY_RULES = (ag.RunFinishedEvent, ag.ToolCallStartEvent, ag.SubagentStartedEvent)
SIDE_FIELDS: Sequence[Mapping[str, object]] = (
    {"metadata": {"k": 1}},
    {"raw_event": {"provider": [None, 1]}},
    {"timestamp": 1_000},
    {"surprise": "kept"},
)
END_OF_CHUNKS = ag.MessagesSnapshotEvent(messages=[])
LONG = "\U0001f600" * MAX_DELTA + "end"


def draw_event(rng: Random, kinds: Sequence[type[ag.BaseEvent]] = INNER) -> ag.BaseEvent:
    kind = rng.choice(kinds)
    fields = draw_fields(kind, rng)
    if "subagent_run_id" not in fields and rng.random() < 0.05:
        fields["subagentRunId"] = None
    return kind(**fields)


def draw_boundary(rng: Random) -> ag.BaseEvent:
    kind = rng.choice(BOUNDARIES)
    return kind(**draw_fields(kind, rng))


def draw_chunk_or_event(rng: Random) -> Item:
    dice = rng.random()
    if dice < 0.25:
        return draw_event(rng, BESIDE_CHUNKS)
    if dice < 0.35:
        return rng.choice(("", "text", "more ", LONG if rng.random() < 0.1 else "\n"))
    kind = rng.choice(list(CHUNKS))
    if rng.random() < 0.45:
        return kind(delta="more")
    fields = draw_fields(kind, rng)
    if rng.random() < 0.02:
        fields["delta"] = LONG
    if rng.random() < 0.3:
        fields |= rng.choice(SIDE_FIELDS)
    return kind(**fields)


def walk(seed: int) -> Iterator[ag.BaseEvent]:
    items = _walk(seed, draw_event, (*VOCABULARY, *MANY_RULES * 4))
    return (item for item in items if isinstance(item, ag.BaseEvent))


def chunk_walk(seed: int) -> Iterator[Item]:
    return _walk(seed, draw_chunk_or_event, (*VOCABULARY, *list(CHUNKS) * 20))


def _walk(seed: int, draw: Callable[[Random], Item], kinds: Sequence[type[ag.BaseEvent]]) -> Iterator[Item]:
    rng, numbers = Random(seed), count(1)  # noqa: S311 - a test's dice
    wild = rng.choice(kinds)
    expander, sequence = Expander(lambda: f"id-{next(numbers)}"), RunSequence()

    def admit(item: Item) -> Item | None:
        """Give an item to our validator. Return what to send: a rejected item only if it is of the wild class."""
        passed: list[ag.BaseEvent] = []
        try:
            for event in expander.expand(item):
                sequence.feed(event)
                passed.append(event)
        except IllegalEvent:
            expander.rollback(passed)
            if type(item) is wild and rng.random() < WILDNESS:
                return item
            return admit(END_OF_CHUNKS) if passed else None
        return item

    def draw_next() -> Iterator[Item]:
        is_active = sequence.state is LifecycleState.ACTIVE
        if is_active and rng.random() < 0.02:
            yield END_OF_CHUNKS
            yield from sequence.closers()
            yield ag.RunFinishedEvent(**draw_fields(ag.RunFinishedEvent, rng))
        else:
            yield draw(rng) if is_active == (rng.random() < 0.995) else draw_boundary(rng)

    while True:
        yield from (item for item in map(admit, draw_next()) if item is not None)
