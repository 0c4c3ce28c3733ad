"""One event of every AG-UI type, with every kind of content that matters to encoding."""

from collections.abc import Sequence
from typing import Any, TypeVar

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    AssistantMessage,
    BaseEvent,
    CustomEvent,
    FunctionCall,
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
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
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
    ToolCall,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserMessage,
)
from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)

TRICKY = 'é \N{GRINNING FACE} \u2028 "quoted" \\ \n\r\t \x00 </script>'
"""Text that a careless encoder or a line-based frame would break on."""

_CALL = ToolCall(id="c0", function=FunctionCall(name="tool", arguments='{"a": 1}'))
_MESSAGES = [UserMessage(id="u", content=TRICKY), AssistantMessage(id="a", tool_calls=[_CALL])]

STARTED = RunStartedEvent(thread_id="t1", run_id="r1", protocol_version="1.0", timestamp=1)
FINISHED = RunFinishedEvent(thread_id="t1", run_id="r1", result={"none": None}, usage=[TokenUsage(input_tokens=1)])
ERROR = RunErrorEvent(message=TRICKY, code="CODE", metadata={"deep": [{"none": None}]})

INNER: Sequence[BaseEvent] = (
    StepStartedEvent(step_name="s"),
    TextMessageStartEvent(message_id="m", role="assistant", name="me"),
    TextMessageContentEvent(message_id="m", delta=TRICKY, timestamp=2, metadata={"k": None}, raw_event={"r": TRICKY}),
    TextMessageEndEvent(message_id="m"),
    ToolCallStartEvent(tool_call_id="c", tool_call_name="tool", parent_message_id="m"),
    ToolCallArgsEvent(tool_call_id="c", delta='{"a":'),
    ToolCallEndEvent(tool_call_id="c"),
    ToolCallResultEvent(message_id="r", tool_call_id="c", content=TRICKY),
    ReasoningStartEvent(message_id="g"),
    ReasoningMessageStartEvent(message_id="g", role="reasoning"),
    ReasoningMessageContentEvent(message_id="g", delta="hm"),
    ReasoningMessageEndEvent(message_id="g"),
    ReasoningEndEvent(message_id="g"),
    ReasoningEncryptedValueEvent(subtype="message", entity_id="g", encrypted_value="b64=="),
    StateSnapshotEvent(snapshot={"none": None, "list": [None, 1.5, True], TRICKY: TRICKY}),
    StateDeltaEvent(delta=[{"op": "add", "path": "/a", "value": None}]),
    MessagesSnapshotEvent(messages=_MESSAGES),
    ActivitySnapshotEvent(message_id="act", activity_type="search", content={"q": None}),
    ActivityDeltaEvent(message_id="act", activity_type="search", patch=[{"op": "remove", "path": "/q"}]),
    RawEvent(event={"any": None}, source="model"),
    CustomEvent(name="n", value=None),
    SubagentStartedEvent(subagent_run_id="sub", name="helper", description="helps"),
    SubagentFinishedEvent(subagent_run_id="sub"),
    SubagentStartedEvent(subagent_run_id="sub2", name="helper", parent_subagent_run_id="sub"),
    SubagentErrorEvent(subagent_run_id="sub2", message="no", code="CODE"),
    StepFinishedEvent(step_name="s"),
)
"""Legal inside a run, in this order."""

CHUNKS: Sequence[BaseEvent] = (
    TextMessageChunkEvent(message_id="m2", role="assistant", delta="chunk"),
    ReasoningMessageChunkEvent(message_id="g2", delta="chunk"),
    ToolCallChunkEvent(tool_call_id="c2", tool_call_name="tool", delta="{}"),
)

SAMPLES: Sequence[BaseEvent] = (STARTED, *INNER, *CHUNKS, FINISHED, ERROR)


def without_validation(kind: type[M], **fields: Any) -> M:  # noqa: ANN401 - whatever pydantic would not take
    """Return an event that pydantic has not validated."""
    construct: Any = kind.model_construct
    made: M = construct(**fields)
    return made
