"""Right and wrong agents: scripts of items, with the end that a client must see.

Every table here is a set of rows ``name: Script``; ``agents`` plays them and ``test_own_agents`` asks for each by name.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    Interrupt,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserMessage,
)

from agui_container.ports import RunContext
from agui_container.protocol.errors import AppError, ErrorCode

FINISHED, ERROR = "RUN_FINISHED", "RUN_ERROR"


class Pause:
    """Wait until the run is over. Announced by a RAW event, which ends no chunk stream."""


@dataclass(frozen=True)
class Meddle:
    """Do something to the context instead of yielding."""

    do: Callable[[RunContext], object]


@dataclass(frozen=True)
class Script:
    """Items of the agent, its exception, and the end of the run; None if both ends are valid."""

    items: Iterable[object]
    end: str | None = ERROR
    raises: BaseException | None = None


START = RunStartedEvent(thread_id="other", run_id="other")
FINISH = RunFinishedEvent(thread_id="other", run_id="other")
TEXT = TextMessageStartEvent(message_id="m")
CONTENT = TextMessageContentEvent(message_id="m", delta="a")
TEXT_END = TextMessageEndEvent(message_id="m")
CALL = ToolCallStartEvent(tool_call_id="c", tool_call_name="tool")
ARGS = ToolCallArgsEvent(tool_call_id="c", delta="{")
CALL_END = ToolCallEndEvent(tool_call_id="c")
SPAN = ReasoningStartEvent(message_id="g")
THOUGHT = ReasoningMessageStartEvent(message_id="g", role="reasoning")
STEP = StepStartedEvent(step_name="plan")
SUBAGENT = SubagentStartedEvent(subagent_run_id="s", name="helper")
SUBAGENT_END = SubagentFinishedEvent(subagent_run_id="s")

OPENERS: dict[str, list[object]] = {
    "nothing": [],
    "a text message": [TEXT, CONTENT],
    "a tool call": [CALL, ARGS],
    "a reasoning span": [SPAN],
    "a reasoning message": [SPAN, THOUGHT, ReasoningMessageContentEvent(message_id="g", delta="hm")],
    "a step": [STEP],
    "a subagent": [SUBAGENT],
    "a subagent's own": [
        SUBAGENT,
        STEP.model_copy(update={"subagent_run_id": "s"}),
        TEXT.model_copy(update={"subagent_run_id": "s"}),
        CALL.model_copy(update={"parent_message_id": "m"}),
        SubagentStartedEvent(subagent_run_id="s2", name="helper", parent_subagent_run_id="s"),
    ],
    "a string": ["text"],
    "a text chunk": [TextMessageChunkEvent(message_id="m", delta="a")],
    "a tool call chunk": [ToolCallChunkEvent(tool_call_id="c", tool_call_name="tool", delta="{")],
    "a reasoning chunk": [ReasoningMessageChunkEvent(message_id="g", delta="hm")],
    "chunks of two streams": [
        TextMessageChunkEvent(message_id="m", delta="a"),
        TextMessageChunkEvent(message_id="n", delta="a", subagent_run_id="s"),
    ],
    "everything": [STEP, SUBAGENT, SPAN, THOUGHT, TEXT, CONTENT, CALL, ARGS, "text"],
}
CUT_OFF = ("a tool call", "a subagent's own", "everything")
"""A success would tell the client to run a call whose arguments may be cut off. Chunks have no end to miss."""

CANCELLED = FINISH.model_copy(update={"outcome": RunFinishedCancelledOutcome()})
OPEN_ENDED: dict[str, Script] = {}
for _name, _items in OPENERS.items():
    _success = ERROR if _name in CUT_OFF else FINISHED
    OPEN_ENDED |= {
        f"raises after {_name}": Script(_items, raises=ValueError("secret")),
        f"returns after {_name}": Script(_items, _success),
        f"finishes after {_name}": Script([*_items, FINISH], _success),
        f"gives up after {_name}": Script([*_items, CANCELLED], FINISHED),
        f"errs after {_name}": Script([*_items, RunErrorEvent(message="sorry")]),
    }
WAITING = {
    f"waits after {name}": Script([*items, RawEvent(event="ready"), Pause()], FINISHED)
    for name, items in OPENERS.items()
}
"""Scripts that wait for a cancel from another connection."""


class UnprintableError(Exception):
    """An exception that fails again when it is shown."""

    def __str__(self) -> str:
        raise ValueError


RAISED: dict[str, Script] = {
    "an AppError": Script(["a"], raises=AppError(ErrorCode.RATE_LIMIT_EXCEEDED, "Too fast.")),
    "SystemExit": Script(["a"], raises=SystemExit(3)),
    "CancelledError": Script(["a"], raises=asyncio.CancelledError()),
    "GeneratorExit": Script(["a"], raises=GeneratorExit()),
    "StopAsyncIteration": Script(["a"], raises=StopAsyncIteration()),
    "RecursionError": Script(["a"], raises=RecursionError()),
    "MemoryError": Script(["a"], raises=MemoryError()),
    "a group": Script(["a"], raises=BaseExceptionGroup("g", [ValueError(), SystemExit()])),
    "what cannot be shown": Script(["a"], raises=UnprintableError()),
}

BOUNDARIES: dict[str, Script] = {
    "its own RUN_STARTED": Script([START, "a"], FINISHED),
    "its own RUN_STARTED with input": Script([START.model_copy(update={"input": {"threadId": "x"}}), "a"], FINISHED),
    "wrong ids in RUN_FINISHED": Script([START, "a", FINISH], FINISHED),
    "more after RUN_FINISHED": Script(["a", FINISH, "b", TEXT, FINISH, RunErrorEvent(message="late")], FINISHED),
    "a second run": Script([FINISH, START, "b", FINISH], FINISHED),
    "more after RUN_ERROR": Script(["a", RunErrorEvent(message="no"), "b", FINISH, RunErrorEvent(message="no")]),
    "an exception after RUN_FINISHED": Script([FINISH], FINISHED, ValueError("late")),
    "RUN_STARTED twice": Script([START, START]),
    "RUN_STARTED late": Script(["a", START]),
    "RUN_STARTED after its own text": Script([START, "a", START]),
    "pending calls that are none": Script(
        [FINISH.model_copy(update={"outcome": RunFinishedSuccessOutcome(pending_tool_call_ids=["ghost"])})], FINISHED
    ),
    "an answered call that is said to be pending": Script(
        [
            CALL,
            CALL_END,
            ToolCallResultEvent(message_id="r", tool_call_id="c", content="ok"),
            FINISH.model_copy(update={"outcome": RunFinishedSuccessOutcome(pending_tool_call_ids=["c"])}),
        ],
        FINISHED,
    ),
    "an unknown outcome": Script([FINISH.model_copy(update={"outcome": {"type": "odd"}})], None),
    "an interrupt": Script(
        [
            "a",
            FINISH.model_copy(
                update={"outcome": RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="r")])}
            ),
        ],
        FINISHED,
    ),
}


def usage(tokens: float) -> TokenUsage:
    """Usage as pydantic would not let it be."""
    return TokenUsage(provider="p", model="m").model_copy(update={"input_tokens": tokens})


MEDDLING: dict[str, Script] = {
    "usage that is none": Script([Meddle(lambda ctx: ctx.usage.append("x")), "a"], FINISHED),  # type: ignore[arg-type]
    "usage that has a fraction": Script([Meddle(lambda ctx: ctx.usage.append(usage(1.5))), "a"], FINISHED),
    "usage that is negative": Script([Meddle(lambda ctx: ctx.usage.append(usage(-1))), "a"], FINISHED),
    "usage of a model that is a number": Script(
        [Meddle(lambda ctx: ctx.usage.append(usage(1).model_copy(update={"model": 5}))), "a"], FINISHED
    ),
    "the run's id": Script([Meddle(lambda ctx: setattr(ctx, "run_id", "x")), "a"]),
}
"""The context is the agent's to read. What it does to it must not take the run's end away."""


def tagged(event: BaseEvent, owner: str) -> BaseEvent:
    """The event as a subagent's."""
    return event.model_copy(update={"subagent_run_id": owner})


_ILLEGAL: dict[str, list[object]] = {
    "V10": [TEXT, TEXT],
    "V11": [CONTENT],
    "V11 closed": [TEXT, TEXT_END, CONTENT],
    "V12": [TEXT_END],
    "V13": [CALL, CALL],
    "V14": [tagged(TEXT, "s"), tagged(CALL.model_copy(update={"parent_message_id": "m"}), "s2")],
    "V15": [
        tagged(CALL, "s"),
        tagged(CALL_END, "s"),
        TEXT,
        CALL.model_copy(update={"parent_message_id": "m"}),
    ],
    "V16 args": [ARGS],
    "V16 end": [CALL_END],
    "V17": [STEP, STEP],
    "V18": [STEP, StepFinishedEvent(step_name="plan", subagent_run_id="s")],
    "V19": [StepFinishedEvent(step_name="plan")],
    "V20 span": [SPAN, SPAN],
    "V20 message": [THOUGHT, THOUGHT],
    "V21 span": [ReasoningEndEvent(message_id="g")],
    "V21 content": [SPAN, ReasoningMessageContentEvent(message_id="g", delta="")],
    "V21 end": [SPAN, ReasoningMessageEndEvent(message_id="g")],
    "V22 text": [TEXT, tagged(CONTENT, "s")],
    "V22 reopened": [TEXT, TEXT_END, tagged(TEXT, "s")],
    "V22 call": [CALL, tagged(ARGS, "s")],
    "V22 reasoning": [SPAN, tagged(THOUGHT, "s")],
    "V22 encrypted": [
        TEXT,
        ReasoningEncryptedValueEvent(subtype="message", entity_id="m", encrypted_value="x", subagent_run_id="s"),
    ],
    "V22 after a snapshot": [
        MessagesSnapshotEvent(messages=[UserMessage(id="m", content="", subagent_run_id="s")]),
        tagged(TEXT, "s2"),
    ],
    "V25": [SUBAGENT, SUBAGENT],
    "V26": [SUBAGENT, SUBAGENT_END, SUBAGENT],
    "V27": [SUBAGENT.model_copy(update={"parent_subagent_run_id": "ghost"})],
    "V28": [SUBAGENT_END],
    "V28 error": [SubagentErrorEvent(subagent_run_id="s", message="no")],
    "V5": [MessagesSnapshotEvent.model_validate({"messages": [], "subagentRunId": None})],
    "1c unknown call": [ToolCallResultEvent(message_id="r", tool_call_id="ghost", content="ok")],
    "1c one interrupt twice": [
        FINISH.model_copy(
            update={"outcome": RunFinishedInterruptOutcome(interrupts=[Interrupt(id="i", reason="r")] * 2)}
        )
    ],
    "1c no interrupt": [
        FINISH.model_copy(update={"outcome": RunFinishedInterruptOutcome.model_construct(interrupts=[])})
    ],
    "K first chunk without id": [TextMessageChunkEvent(delta="a")],
    "K call chunk without name": [ToolCallChunkEvent(tool_call_id="c", delta="a")],
    "K changed role": [TextMessageChunkEvent(message_id="m"), TextMessageChunkEvent(role="user")],
    "K two streams": [
        TextMessageChunkEvent(message_id="m", subagent_run_id="s"),
        TextMessageChunkEvent(message_id="n", subagent_run_id="s2"),
        TextMessageChunkEvent(delta="a"),
    ],
}
ILLEGAL = {name: Script(["a", CustomEvent(name="n", value=1), *items, "b"]) for name, items in _ILLEGAL.items()}
"""One broken rule each, with text before and after."""
