"""Tools of kontekst's runs: one proposal, one start and one end of each call."""

from collections import Counter

import grpc

from agui_container.transports.grpc.gen.kontekst import kontekst_pb2 as pb
from tests.grpc.client import call_text
from tests.grpc.kontekst_calls import RunTalk, start_run
from tests.requirements import requirement


def approve_next(talk: RunTalk) -> list[pb.ProposedToolCall]:
    """Approve the calls of the next proposal and return them."""
    calls = list(talk.until("tools_proposed").calls)
    for call in calls:
        talk.send(approve_tool=pb.ApproveToolCommand(call_id=call.call_id))
    return calls


def calls_of(talk: RunTalk, kind: str) -> Counter[str]:
    """Count the events of a kind by call id."""
    return Counter(getattr(event, kind).call_id for event in talk.seen if event.HasField(kind))  # type: ignore[arg-type] # a name


@requirement("kontekst.asks")
def test_an_approved_call_of_a_subagent_and_the_call_that_began_it_start_and_end_once(channel: grpc.Channel) -> None:
    with start_run(channel, "delegate " + call_text("pay", amount=1)) as talk:
        (outer,) = approve_next(talk)
        (inner,) = approve_next(talk)
        list(talk.rest())
    assert (outer.name, inner.name) == ("delegate", "pay")
    once = {outer.call_id: 1, inner.call_id: 1}
    assert (calls_of(talk, "tool_started"), calls_of(talk, "tool_completed")) == (once, once)
    assert (talk.kinds.count("tools_completed"), talk.kinds[-1]) == (1, "completed")


@requirement("kontekst.asks")
def test_a_denied_call_of_a_subagent_fails_once(channel: grpc.Channel) -> None:
    with start_run(channel, "delegate " + call_text("pay", amount=1)) as talk:
        approve_next(talk)
        (inner,) = talk.until("tools_proposed").calls
        talk.send(deny_tool=pb.DenyToolCommand(call_id=inner.call_id, reason="too dear"))
        list(talk.rest())
    assert calls_of(talk, "tool_failed") == {inner.call_id: 1}
    assert "too dear" in next(event.tool_failed.error for event in talk.seen if event.HasField("tool_failed"))
