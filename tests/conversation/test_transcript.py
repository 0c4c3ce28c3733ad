"""The transcript while its run continues."""

import pytest
from ag_ui import core as ag

from agui_core.transcript import Transcript

STREAMS: dict[str, tuple[ag.BaseEvent, ag.BaseEvent]] = {
    "text": (
        ag.TextMessageStartEvent(message_id="m1", role="assistant"),
        ag.TextMessageContentEvent(message_id="m1", delta="a"),
    ),
    "reasoning": (
        ag.ReasoningMessageStartEvent(message_id="m1", role="reasoning"),
        ag.ReasoningMessageContentEvent(message_id="m1", delta="a"),
    ),
    "arguments": (
        ag.ToolCallStartEvent(tool_call_id="m1", tool_call_name="f"),
        ag.ToolCallArgsEvent(tool_call_id="m1", delta="a"),
    ),
}


@pytest.mark.parametrize(("start", "delta"), STREAMS.values(), ids=STREAMS)
def test_deltas_after_the_messages_were_read_are_kept(start: ag.BaseEvent, delta: ag.BaseEvent) -> None:
    read, unread = Transcript(), Transcript()
    for transcript in (read, unread):
        transcript.feed(start)
        transcript.feed(delta)
        transcript.append("b")
        if transcript is read:
            assert transcript.messages == transcript.messages
        transcript.append("c")
        transcript.feed(delta)
    assert read.messages == unread.messages
    assert "abca" in read.messages[0].model_dump_json()


def test_messages_have_the_order_of_the_last_snapshot_and_reasoning_stays_before_its_message() -> None:
    ask, thought, streamed = (
        ag.UserMessage(id="ask", content="hi"),
        ag.ReasoningMessage(id="thought", content="hm"),
        ag.AssistantMessage(id="streamed", content="by a model"),
    )
    made = ag.AssistantMessage(id="made", content="without a model")
    transcript = Transcript([ask])
    for event in (
        ag.ReasoningMessageStartEvent(message_id="thought", role="reasoning"),
        ag.ReasoningMessageContentEvent(message_id="thought", delta="hm"),
        ag.TextMessageStartEvent(message_id="streamed", role="assistant"),
        ag.MessagesSnapshotEvent(messages=[ask, made, streamed]),
    ):
        transcript.feed(event)
    assert transcript.messages == [ask, made, thought, streamed]
    assert transcript.order(transcript.messages) is None
    transcript.feed(ag.MessagesSnapshotEvent(messages=[made, ask]))
    assert transcript.messages == [made, ask, thought]
    assert transcript.order(transcript.messages) == ["made", "ask", "thought"]
