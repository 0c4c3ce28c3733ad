"""Tools of kontekst's runs: one proposal, one start and one end of each call."""

import json
from collections import Counter

import grpc
import pytest

from agui_container.transports.gen.kontekst import kontekst_pb2 as pb
from tests.grpc.client import call_text
from tests.grpc.conftest import ASSISTANT, Dial
from tests.grpc.kontekst_calls import RunTalk, start_run
from tests.requirements import requirement
from tests.sockets.process import ServerProcess


def approve_next(talk: RunTalk) -> list[pb.ProposedToolCall]:
    """Approve the calls of the next proposal and return them."""
    calls = list(talk.until("tools_proposed").calls)
    for call in calls:
        talk.send(approve_tool=pb.ApproveToolCommand(call_id=call.call_id))
    return calls


def calls_of(talk: RunTalk, kind: str) -> Counter[str]:
    """Count the events of a kind by call id."""
    return Counter(getattr(event, kind).call_id for event in talk.seen if event.HasField(kind))


@requirement("kontekst.asks")
def test_a_result_comes_while_another_call_of_the_turn_runs(channel: grpc.Channel) -> None:
    with start_run(channel, f"{call_text('echo', text='ahoy')}\ncall stick {{}}") as talk:
        echo, stick = approve_next(talk)
        completed = talk.until("tool_completed")
        assert (completed.call_id, completed.output) == (echo.call_id, "ahoy")
        assert calls_of(talk, "tool_started") == {echo.call_id: 1, stick.call_id: 1}
        talk.send(cancel=pb.CancelRunCommand())
        list(talk.rest())
    assert calls_of(talk, "tool_failed") == {stick.call_id: 1}
    assert talk.kinds[-3:] == ["tool_failed", "tools_completed", "cancelled"]


@requirement("kontekst.asks")
@pytest.mark.parametrize(
    ("line", "name", "error"),
    [
        ("call nosuch {}", "nosuch", "there is no tool named 'nosuch'"),
        ("call wipe {}", "wipe", "this tool is not allowed: never"),
        ("call write_file {no", "write_file", "the arguments are not valid JSON"),
    ],
)
def test_a_call_that_cannot_run_is_proposed_and_fails_once_it_is_approved(
    channel: grpc.Channel, line: str, name: str, error: str
) -> None:
    with start_run(channel, f"{line}\n{call_text('echo', text='ahoy')}") as talk:
        broken, echo = approve_next(talk)
        list(talk.rest())
    assert (broken.name, echo.name, talk.kinds[-1]) == (name, "echo", "completed")
    assert calls_of(talk, "tool_failed") == {broken.call_id: 1}
    assert calls_of(talk, "tool_completed") == {echo.call_id: 1}
    assert error in next(event.tool_failed.error for event in talk.seen if event.HasField("tool_failed"))


@requirement("kontekst.asks")
def test_a_denied_call_that_could_not_run_ends_the_run_as_any_denied_call(channel: grpc.Channel) -> None:
    with start_run(channel, "call nosuch {}") as talk:
        (call,) = talk.until("tools_proposed").calls
        talk.send(deny_tool=pb.DenyToolCommand(call_id=call.call_id, reason="no such thing"))
        list(talk.rest())
    assert talk.kinds[-3:] == ["tool_failed", "tools_completed", "cancelled"]


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


@requirement("kontekst.asks", "sub.asks")
def test_a_call_of_a_subagent_that_the_policy_allows_is_proposed_at_every_depth(channel: grpc.Channel) -> None:
    with start_run(channel, "delegate delegate " + call_text("echo", text="ahoy")) as talk:
        proposed = [call.name for _ in range(3) for call in approve_next(talk)]
        list(talk.rest())
    assert proposed == ["delegate", "delegate", "echo"]
    assert talk.kinds[-1] == "completed"


@requirement("kontekst.asks", "sub.asks")
def test_a_call_of_a_subagent_does_not_run_before_it_is_approved(channel: grpc.Channel) -> None:
    with start_run(channel, "delegate " + call_text("echo", text="ahoy")) as talk:
        (outer,) = approve_next(talk)
        (inner,) = talk.until("tools_proposed").calls
        assert calls_of(talk, "tool_started") == {outer.call_id: 1}
        talk.send(deny_tool=pb.DenyToolCommand(call_id=inner.call_id))
        list(talk.rest())
    assert calls_of(talk, "tool_completed")[inner.call_id] == 0
    assert talk.kinds[-1] == "cancelled"


@requirement("kontekst.asks")
def test_a_denied_call_of_a_subagent_fails_once_and_ends_the_subagent_and_the_run(channel: grpc.Channel) -> None:
    with start_run(channel, "delegate " + call_text("pay", amount=1)) as talk:
        (outer,) = approve_next(talk)
        (inner,) = talk.until("tools_proposed").calls
        talk.send(deny_tool=pb.DenyToolCommand(call_id=inner.call_id, reason="too dear"))
        list(talk.rest())
    assert (calls_of(talk, "tool_failed"), talk.kinds[-1]) == ({inner.call_id: 1, outer.call_id: 1}, "cancelled")
    assert (calls_of(talk, "tool_started"), calls_of(talk, "tool_completed")) == ({outer.call_id: 1}, {})
    assert "too dear" in next(event.tool_failed.error for event in talk.seen if event.HasField("tool_failed"))


@requirement("kontekst.asks")
def test_an_approved_call_is_proposed_again_if_its_tools_are_out_of_reach(dial: Dial) -> None:
    unreachable = json.dumps([{"name": "far", "url": "http://127.0.0.1:1/mcp"}])
    server = ServerProcess(**ASSISTANT, AGUI_MCP_SERVERS=unreachable)
    with server, start_run(dial(server), "call far_look {}") as talk:
        (call,) = approve_next(talk)
        (again,) = talk.until("tools_proposed").calls
        talk.send(deny_tool=pb.DenyToolCommand(call_id=again.call_id))
        list(talk.rest())
    assert call == again
    assert calls_of(talk, "tool_started") == {call.call_id: 1}
    assert talk.kinds[-1] == "cancelled"
