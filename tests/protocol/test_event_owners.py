"""Owners of entities: rules V14, V15, V17 to V19, V22 and V25 to V28, for each entity and each way to record it."""

from itertools import product

import pytest
from ag_ui import core as ag

from agui_container.protocol import grammar
from agui_container.protocol.grammar import ENTITIES, IdSpace, Phase
from agui_container.protocol.validator import RunSequence, tag_of
from tests.protocol.grammar_cells import START, accepts, closer, event, of, opener, sequence_after

OWNERS = (None, "s", "")
pairs = pytest.mark.parametrize(("owner", "tag"), list(product(OWNERS, (*OWNERS, "z"))))


@pairs
@pytest.mark.parametrize(
    "kind", [kind for kind, (entity, _) in ENTITIES.items() if entity.id_space], ids=lambda kind: kind.__name__
)
def test_a_tag_agrees_with_the_opener_or_is_left_out(
    kind: type[ag.BaseEvent], owner: str | None, tag: str | None
) -> None:
    entity, phase = ENTITIES[kind]
    reopened = [closer(entity)] if phase is Phase.OPEN else []
    sequence = sequence_after(opener(entity, owner=owner), *reopened)
    assert accepts(sequence, of(kind, owner=tag)) is (tag is None or tag == owner)


UNKNOWN = "unknown"


@pytest.mark.parametrize("carrier", [UNKNOWN, None, "s"])
@pytest.mark.parametrize("before", [UNKNOWN, None, "s"])
@pytest.mark.parametrize("tag", [None, "s", "z"])
def test_a_tool_call_belongs_to_the_message_that_carries_it(
    carrier: str | None, before: str | None, tag: str | None
) -> None:
    sequence = sequence_after()
    if carrier != UNKNOWN:
        sequence.feed(opener(grammar.TEXT, "m", carrier))
    if before != UNKNOWN:
        sequence.feed(opener(grammar.TOOL_CALL, owner=before))
        sequence.feed(closer(grammar.TOOL_CALL))
    fits_carrier = carrier == UNKNOWN or tag in (None, carrier)
    claimed = carrier if tag is None and carrier != UNKNOWN else tag
    fits_record = before in (UNKNOWN, claimed) or (tag is None and carrier == UNKNOWN)
    start = ag.ToolCallStartEvent(tool_call_id="k", tool_call_name="tool", parent_message_id="m", subagent_run_id=tag)
    assert accepts(sequence, start) is (fits_carrier and fits_record)
    if fits_carrier and fits_record:
        owner = claimed if before == UNKNOWN else before
        assert [tag_of(each) for each in sequence.closers()[:1]] == [owner]


def call(key: str) -> ag.ToolCall:
    return ag.ToolCall(id=key, function=ag.FunctionCall(name="tool", arguments="{}"))


MESSAGES: dict[IdSpace, ag.Message] = {
    IdSpace.MESSAGE: ag.UserMessage(id="k", content="hi", subagent_run_id="s"),
    IdSpace.TOOL_CALL: ag.AssistantMessage(id="other", tool_calls=[call("k")], subagent_run_id="s"),
    IdSpace.REASONING: ag.ReasoningMessage(id="k", content="hm", subagent_run_id="s"),
    IdSpace.ACTIVITY: ag.ActivityMessage(id="k", activity_type="search", content={}, subagent_run_id="s"),
}
PROBES: dict[IdSpace, ag.BaseEvent] = {
    IdSpace.MESSAGE: opener(grammar.TEXT, owner="z"),
    IdSpace.TOOL_CALL: opener(grammar.TOOL_CALL, owner="z"),
    IdSpace.REASONING: opener(grammar.REASONING_SPAN, owner="z"),
    IdSpace.ACTIVITY: event(ag.ActivityDeltaEvent, message_id="k", subagent_run_id="z"),
}


def started_with(*messages: ag.Message) -> RunSequence:
    sequence = RunSequence()
    run_input = ag.RunAgentInput(thread_id="t", run_id="r", messages=list(messages))
    sequence.feed(START.model_copy(update={"input": run_input}))
    return sequence


@pytest.mark.parametrize("ids", IdSpace)
def test_a_snapshot_states_owners_anew_and_the_input_fills_gaps_only(ids: IdSpace) -> None:
    first = MESSAGES[ids]
    second = first.model_copy(update={"subagent_run_id": "z"})
    assert accepts(sequence_after(ag.MessagesSnapshotEvent(messages=[first, second])), PROBES[ids])
    assert not accepts(started_with(first, second), PROBES[ids])
