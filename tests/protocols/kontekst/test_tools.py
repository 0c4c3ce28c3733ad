"""Tools of kontekst's runs: one proposal, one start and one end of each call."""

import json
from collections import Counter

import grpc
import pytest

from agui_container.protocols.gen import kontekst_pb2 as pb
from tests.protocols.conftest import ASSISTANT, Dial
from tests.protocols.grpc.client import call_text
from tests.protocols.kontekst.calls import RunTalk, start_run
from tests.server.sockets.process import ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.processes]


def approve_next(talk: RunTalk) -> list[pb.ProposedToolCall]:
    calls = list(talk.until("tools_proposed").calls)
    for call in calls:
        talk.send(approve_tool=pb.ApproveToolCommand(call_id=call.call_id))
    return calls


def calls_of(talk: RunTalk, kind: str) -> Counter[str]:
    return Counter(getattr(event, kind).call_id for event in talk.seen if event.HasField(kind))


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


def test_an_approved_call_of_a_subagent_and_the_call_that_began_it_start_and_end_once(channel: grpc.Channel) -> None:
    with start_run(channel, "delegate " + call_text("pay", amount=1)) as talk:
        (outer,) = approve_next(talk)
        (inner,) = approve_next(talk)
        list(talk.rest())
    assert (outer.name, inner.name) == ("delegate", "pay")
    once = {outer.call_id: 1, inner.call_id: 1}
    assert (calls_of(talk, "tool_started"), calls_of(talk, "tool_completed")) == (once, once)
    assert (talk.kinds.count("tools_completed"), talk.kinds[-1]) == (1, "completed")


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
