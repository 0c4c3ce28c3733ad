"""Tools of kontekst's runs: one proposal, one start and one end of each call."""

import json
from collections import Counter

import pytest

from agui_container.protocols.gen import kontekst_pb2 as pb
from tests.protocols.clients import Clients, serving_clients
from tests.protocols.grpc.client import Run, call_text

pytestmark = pytest.mark.wire


async def approve_next(run: Run) -> list[pb.ProposedToolCall]:
    calls = list((await run.until("tools_proposed")).calls)
    for call in calls:
        await run.send(approve_tool=pb.ApproveToolCommand(call_id=call.call_id))
    return calls


def calls_of(run: Run, kind: str) -> Counter[str]:
    return Counter(event.call_id for event in run.all(kind))


@pytest.mark.parametrize(
    ("line", "name", "error"),
    [
        ("call nosuch {}", "nosuch", "there is no tool named 'nosuch'"),
        ("call wipe {}", "wipe", "this tool is not allowed: never"),
        ("call write_file {no", "write_file", "the arguments are not valid JSON"),
    ],
)
async def test_a_call_that_cannot_run_is_proposed_and_fails_once_it_is_approved(
    clients: Clients, line: str, name: str, error: str
) -> None:
    run = await clients.start_run(f"{line}\n{call_text('echo', text='ahoy')}")
    broken, echo = await approve_next(run)
    await run.rest()
    assert (broken.name, echo.name, run.kinds[-1]) == (name, "echo", "completed")
    assert calls_of(run, "tool_failed") == {broken.call_id: 1}
    assert calls_of(run, "tool_completed") == {echo.call_id: 1}
    assert error in run.all("tool_failed")[0].error


async def test_an_approved_call_of_a_subagent_and_the_call_that_began_it_start_and_end_once(clients: Clients) -> None:
    run = await clients.start_run("delegate " + call_text("pay", amount=1))
    (outer,) = await approve_next(run)
    (inner,) = await approve_next(run)
    await run.rest()
    assert (outer.name, inner.name) == ("delegate", "pay")
    once = {outer.call_id: 1, inner.call_id: 1}
    assert (calls_of(run, "tool_started"), calls_of(run, "tool_completed")) == (once, once)
    assert (run.kinds.count("tools_completed"), run.kinds[-1]) == (1, "completed")


async def test_an_approved_call_is_proposed_again_if_its_tools_are_out_of_reach() -> None:
    unreachable = json.dumps([{"name": "far", "url": "http://127.0.0.1:1/mcp"}])
    async with serving_clients(mcp_servers=unreachable) as clients:
        run = await clients.start_run("call far_look {}")
        (call,) = await approve_next(run)
        (again,) = (await run.until("tools_proposed")).calls
        await run.send(deny_tool=pb.DenyToolCommand(call_id=again.call_id))
        await run.rest()
    assert call == again
    assert calls_of(run, "tool_started") == {call.call_id: 1}
    assert run.kinds[-1] == "cancelled"
