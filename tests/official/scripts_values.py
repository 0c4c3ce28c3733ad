"""Items that are no events, events with values that no client can read, and valid items."""

from math import inf, nan
from typing import Literal

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    BaseEvent,
    CustomEvent,
    EventType,
    Interrupt,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    RunErrorEvent,
    RunFinishedInterruptOutcome,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    SubagentErrorEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    ToolCallChunkEvent,
    ToolCallResultEvent,
    UserMessage,
)

from tests.official.scripts import (
    ARGS,
    BOUNDARIES,
    CALL,
    CALL_END,
    CONTENT,
    ERROR,
    FINISH,
    FINISHED,
    ILLEGAL,
    MEDDLING,
    OPEN_ENDED,
    RAISED,
    SPAN,
    START,
    STEP,
    SUBAGENT,
    SUBAGENT_END,
    TEXT,
    TEXT_END,
    THOUGHT,
    WAITING,
    Script,
)

SURROGATE = "\ud800"
CIRCLE: dict[str, object] = {}
CIRCLE["self"] = CIRCLE


class ForeignEvent(BaseEvent):
    """An event class that is not AG-UI's."""

    type: EventType = EventType.CUSTOM


class OwnCustomEvent(CustomEvent):
    """An official class with a method of the agent's own."""


class NumberEvent(TextMessageContentEvent):
    """A subclass that allows what the official class does not."""

    delta: int = 3  # type: ignore[assignment]


class NamedEvent(CustomEvent):
    """A subclass with a type of its own."""

    type: Literal["OWN"] = "OWN"  # type: ignore[assignment]


def custom(value: object) -> CustomEvent:
    """Any value in an event."""
    return CustomEvent(name="n", value=value)


NOT_EVENTS: dict[str, object] = {
    "None": None,
    "a dict": {"type": "CUSTOM", "name": "n", "value": 1},
    "a number": 3,
    "bytes": b"a",
    "an object": object(),
    "a list of events": [TEXT],
    "a class": type(TEXT),
    "a foreign event": ForeignEvent(),
    "the base class": BaseEvent(type=EventType.CUSTOM),
    "an object in an event": custom(object()),
    "bytes in an event": custom(b"\xff"),
    "a circle in an event": custom(CIRCLE),
    "an event above the size limit": custom("x" * 8_000_001),
}
REPAIRED: dict[str, object] = {
    "a lone surrogate": SURROGATE,
    "a lone surrogate in an event": custom(SURROGATE),
    "a chunk with a lone surrogate": TextMessageChunkEvent(message_id="m", delta=SURROGATE),
}
FORCED: dict[str, object] = {
    "no delta": TextMessageContentEvent.model_construct(message_id="m"),  # type: ignore[call-arg]
    "a delta that is None": CONTENT.model_copy(update={"delta": None}),
    "a delta that is a number": CONTENT.model_copy(update={"delta": 1}),
    "an id that is None": STEP.model_copy(update={"step_name": None}),
    "an id that is a list": TEXT.model_copy(update={"message_id": ["m"]}),
    "an unknown role": TEXT.model_copy(update={"role": "wizard"}),
    "a timestamp with a fraction": CONTENT.model_copy(update={"timestamp": 1.5}),
    "a timestamp out of range": CONTENT.model_copy(update={"timestamp": 2**60}),
    "metadata that is a list": CONTENT.model_copy(update={"metadata": [1]}),
    "a tag that is a number": CONTENT.model_copy(update={"subagent_run_id": 1}),
    "messages that are None": MessagesSnapshotEvent.model_construct(messages=None),  # type: ignore[arg-type]
    "a message without content": MessagesSnapshotEvent(messages=[UserMessage(id="u", content="")]).model_copy(
        update={"messages": [UserMessage.model_construct(id="u")]}  # type: ignore[call-arg]
    ),
    "a message that is a dict": MessagesSnapshotEvent.model_construct(messages=[{"id": "u"}]),  # type: ignore[list-item]
    "an unknown operation": StateDeltaEvent(delta=[]).model_copy(update={"delta": [{"op": "zap", "path": "/a"}]}),
    "an unknown type": CONTENT.model_copy(update={"type": "NOPE"}),
    "another event's type": CONTENT.model_copy(update={"type": EventType.CUSTOM}),
    "a terminal event's type": CONTENT.model_copy(update={"type": EventType.RUN_FINISHED}),
    "an error without a message": RunErrorEvent(message="no").model_copy(update={"message": None}),
    "a result that is an object": FINISH.model_copy(update={"result": object()}),
    "an interrupt without a reason": FINISH.model_copy(
        update={"outcome": RunFinishedInterruptOutcome(interrupts=[Interrupt.model_construct(id="i")])}  # type: ignore[call-arg]
    ),
    "usage that is a number": FINISH.model_copy(update={"usage": 5}),
    "a subclass with a delta that is a number": NumberEvent(message_id="m"),
    "a subclass with a type of its own": NamedEvent(name="n", value=1),
    "a chunk with a delta that is a number": TextMessageChunkEvent(message_id="m").model_copy(update={"delta": 1}),
    "a chunk with an id that is a number": TextMessageChunkEvent(delta="a").model_copy(update={"message_id": 1}),
    "a call chunk without a parent's id": ToolCallChunkEvent(tool_call_id="c", tool_call_name="t").model_copy(
        update={"parent_message_id": 1}
    ),
}

ALL_TYPES: list[object] = [
    START,
    STEP,
    StateSnapshotEvent(snapshot={"a": 1}),
    StateDeltaEvent.model_validate({"delta": [{"op": "replace", "path": "/a", "value": 2}]}),
    SPAN,
    THOUGHT,
    ReasoningMessageContentEvent(message_id="g", delta="hm"),
    ReasoningMessageEndEvent(message_id="g"),
    ReasoningEndEvent(message_id="g"),
    ReasoningEncryptedValueEvent(subtype="message", entity_id="g", encrypted_value="opaque"),
    ReasoningMessageChunkEvent(message_id="g2", delta="hm"),
    TEXT,
    CONTENT,
    TEXT_END,
    CALL.model_copy(update={"parent_message_id": "m"}),
    ARGS,
    ARGS.model_copy(update={"delta": "}"}),
    CALL_END,
    ToolCallResultEvent(message_id="r", tool_call_id="c", content="ok"),
    TextMessageChunkEvent(message_id="m2", delta="a"),
    ToolCallChunkEvent(tool_call_id="c2", tool_call_name="tool", delta="{}"),
    ActivitySnapshotEvent(message_id="act", activity_type="search", content={"n": 1}),
    ActivityDeltaEvent.model_validate(
        {"messageId": "act", "activityType": "search", "patch": [{"op": "replace", "path": "/n", "value": 2}]}
    ),
    SUBAGENT,
    SUBAGENT_END,
    SUBAGENT.model_copy(update={"subagent_run_id": "s2"}),
    SubagentErrorEvent(subagent_run_id="s2", message="no"),
    CustomEvent(name="n", value=None),
    RawEvent(event={"provider": 1}, source="provider"),
    MessagesSnapshotEvent(messages=[UserMessage(id="u", content="hi")]),
    StepFinishedEvent(step_name="plan"),
    FINISH,
]
FINE: dict[str, list[object]] = {
    "all event types": ALL_TYPES,
    "only strings": ["Hello ", "", "world"],
    "nothing": [],
    "text that looks like frames": ["a\n\ndata: x\r\n\r\nid: 9\n\n: c", "\u2028\u2029\x00\x85\ufeff"],
    "text too long for a frame": ["\U0001f600" * 20_000, TEXT, CONTENT.model_copy(update={"delta": "\x01" * 20_000})],
    "numbers that JSON lacks": [custom(nan), custom([inf, -inf])],
    "numbers that JavaScript rounds": [custom(2**70)],
    "a subclass of an official event": [OwnCustomEvent(name="n", value=1)],
    "a message that is opened again": [TEXT, TEXT_END, TEXT, CONTENT, TEXT_END],
    "messages side by side": [TEXT, TEXT.model_copy(update={"message_id": "n"}), CONTENT],
    "arguments that are no JSON": [CALL, ARGS, CALL_END],
    "a string between chunks": [
        TextMessageChunkEvent(message_id="m", delta="a"),
        "b",
        TextMessageChunkEvent(delta="c"),
    ],
    "chunks of two streams": [
        TextMessageChunkEvent(message_id="m", delta="a"),
        TextMessageChunkEvent(message_id="n", delta="b", subagent_run_id="s"),
        TextMessageChunkEvent(delta="c"),
        TextMessageChunkEvent(delta="d", subagent_run_id="s"),
    ],
    "empty ids": [
        TEXT.model_copy(update={"message_id": "", "subagent_run_id": ""}),
        SUBAGENT.model_copy(update={"subagent_run_id": ""}),
    ],
}

WARNED = {"adds an unknown field": Script([CustomEvent(name="n", value=1, surprise=True)], FINISHED)}

SCRIPTS: dict[str, Script] = {
    **OPEN_ENDED,
    **WAITING,
    **WARNED,
    **{f"raises {name}": script for name, script in RAISED.items()},
    **{f"sends {name}": script for name, script in BOUNDARIES.items()},
    **{f"meddles with {name}": script for name, script in MEDDLING.items()},
    **{f"breaks {name}": script for name, script in ILLEGAL.items()},
    **{f"yields {name}": Script(["a", item, "b"], ERROR) for name, item in NOT_EVENTS.items()},
    **{f"yields {name}": Script(["a", item, "b"], FINISHED) for name, item in REPAIRED.items()},
    **{f"forces {name}": Script([TEXT, item], ERROR) for name, item in FORCED.items()},
    **{f"is fine with {name}": Script(items, FINISHED) for name, items in FINE.items()},
}
