"""One event of every AG-UI type, with every kind of content that matters to encoding."""

from collections.abc import Sequence
from typing import Any, TypeVar

from ag_ui import core as ag
from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)

TRICKY = 'é \N{GRINNING FACE} \u2028 "quoted" \\ \n\r\t \x00 </script>'
"""Text that a careless encoder or a line-based frame would break on."""

_CALL = ag.ToolCall(id="c0", function=ag.FunctionCall(name="tool", arguments='{"a": 1}'))
_MESSAGES = [ag.UserMessage(id="u", content=TRICKY), ag.AssistantMessage(id="a", tool_calls=[_CALL])]

STARTED = ag.RunStartedEvent(thread_id="t1", run_id="r1", protocol_version="1.0", timestamp=1)
FINISHED = ag.RunFinishedEvent(
    thread_id="t1", run_id="r1", result={"none": None}, usage=[ag.TokenUsage(input_tokens=1)]
)
ERROR = ag.RunErrorEvent(message=TRICKY, code="CODE", metadata={"deep": [{"none": None}]})

INNER: Sequence[ag.BaseEvent] = (
    ag.StepStartedEvent(step_name="s"),
    ag.TextMessageStartEvent(message_id="m", role="assistant", name="me"),
    ag.TextMessageContentEvent(
        message_id="m", delta=TRICKY, timestamp=2, metadata={"k": None}, raw_event={"r": TRICKY}
    ),
    ag.TextMessageEndEvent(message_id="m"),
    ag.ToolCallStartEvent(tool_call_id="c", tool_call_name="tool", parent_message_id="m"),
    ag.ToolCallArgsEvent(tool_call_id="c", delta='{"a":'),
    ag.ToolCallEndEvent(tool_call_id="c"),
    ag.ToolCallResultEvent(message_id="r", tool_call_id="c", content=TRICKY),
    ag.ReasoningStartEvent(message_id="g"),
    ag.ReasoningMessageStartEvent(message_id="g", role="reasoning"),
    ag.ReasoningMessageContentEvent(message_id="g", delta="hm"),
    ag.ReasoningMessageEndEvent(message_id="g"),
    ag.ReasoningEndEvent(message_id="g"),
    ag.ReasoningEncryptedValueEvent(subtype="message", entity_id="g", encrypted_value="b64=="),
    ag.StateSnapshotEvent(snapshot={"none": None, "list": [None, 1.5, True], TRICKY: TRICKY}),
    ag.StateDeltaEvent(delta=[{"op": "add", "path": "/a", "value": None}]),
    ag.MessagesSnapshotEvent(messages=_MESSAGES),
    ag.ActivitySnapshotEvent(message_id="act", activity_type="search", content={"q": None}),
    ag.ActivityDeltaEvent(message_id="act", activity_type="search", patch=[{"op": "remove", "path": "/q"}]),
    ag.RawEvent(event={"any": None}, source="model"),
    ag.CustomEvent(name="n", value=None),
    ag.SubagentStartedEvent(subagent_run_id="sub", name="helper", description="helps"),
    ag.SubagentFinishedEvent(subagent_run_id="sub"),
    ag.SubagentStartedEvent(subagent_run_id="sub2", name="helper", parent_subagent_run_id="sub"),
    ag.SubagentErrorEvent(subagent_run_id="sub2", message="no", code="CODE"),
    ag.StepFinishedEvent(step_name="s"),
)
"""Legal inside a run, in this order."""

CHUNKS: Sequence[ag.BaseEvent] = (
    ag.TextMessageChunkEvent(message_id="m2", role="assistant", delta="chunk"),
    ag.ReasoningMessageChunkEvent(message_id="g2", delta="chunk"),
    ag.ToolCallChunkEvent(tool_call_id="c2", tool_call_name="tool", delta="{}"),
)

SAMPLES: Sequence[ag.BaseEvent] = (STARTED, *INNER, *CHUNKS, FINISHED, ERROR)


def without_validation(kind: type[M], **fields: Any) -> M:  # noqa: ANN401 - whatever pydantic would not take
    construct: Any = kind.model_construct
    made: M = construct(**fields)
    return made
