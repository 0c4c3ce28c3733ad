"""Owners of runs, answers of commands, and refusals before a run exists."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.ports import Item
from agui_core.commands import COMMANDS
from tests.behaviour.client import Client, Refused, outcome
from tests.conftest import Connect
from tests.engine.doubles import Json, ask


async def silent(_: RunAgentInput) -> AsyncIterator[Item]:
    yield CustomEvent(name="n", value=1)
    await asyncio.Event().wait()


async def brief(_: RunAgentInput) -> AsyncIterator[Item]:
    yield CustomEvent(name="n", value=1)


def props(asked: RunAgentInput) -> Json:
    return asked.forwarded_props or {}


def sessions(client: Client) -> tuple[Client, Client, Client]:
    return client.session("a"), client.session("b"), client


@pytest.mark.wire
async def test_another_sessions_runs_are_not_found(connect: Connect) -> None:
    alice, bob, nobody = sessions(await connect(silent))
    stream = await alice.start(ask())
    await stream.until("CUSTOM")
    for stranger in (bob, nobody):
        with pytest.raises(Refused) as refused:
            await stranger.cancel("t1", "r1")
        assert refused.value.code == "RUN_NOT_FOUND"
        with pytest.raises(Refused, match="RUN_NOT_FOUND"):
            await stranger.attach("t1", "r1")
    assert (await alice.cancel("t1", "r1"))["status"] == "cancelled"
    assert outcome(await stream.rest()) == "cancelled"


async def test_without_a_scope_everybody_sees_all_runs(connect: Connect) -> None:
    alice, bob, nobody = sessions(await connect(silent, scope="none"))
    stream = await alice.start(ask())
    await stream.until("CUSTOM")
    assert (await (await nobody.attach("t1", "r1")).until("CUSTOM"))["value"] == 1
    assert (await bob.cancel("t1"))["status"] == "cancelled"
    assert outcome(await stream.rest()) == "cancelled"


@pytest.mark.wire
async def test_capabilities_say_what_is_configured(connect: Connect) -> None:
    client = await connect(brief, run_timeout=7, max_body_bytes=5_000)
    told = (await client.command({"command": {"type": "capabilities"}}))["capabilities"]
    assert told["transport"] == {"streaming": True, "websocket": True, "httpBinary": False}
    assert told["execution"] == {"maxExecutionTime": 7_000}
    assert told["custom"] == {
        "commands": [name for name in COMMANDS if not name.startswith("files.")],  # there is no place for files
        "grpc": ["roz.v1.AgentService", "kontekst.AgentService", "kontekst.DaemonService"],
        "maxBodyBytes": 5_000,
        "roboto": "/v1/ai",
    }


@pytest.mark.wire
@pytest.mark.parametrize("body", [{"type": "ping"}, {"command": {"type": "ping"}}])
async def test_a_ping_is_answered(connect: Connect, body: Json) -> None:
    client = await connect(brief)
    assert await client.command(body) == {"command": "ping", "pong": True}


@pytest.mark.wire
@pytest.mark.parametrize("kind", ["capabilities", "ping", "cancel"])
async def test_a_command_may_come_inside_an_input(connect: Connect, kind: str) -> None:
    client = await connect(brief)
    await client.run(ask())
    result = await client.command(ask(run="c1", forwardedProps={"command": {"type": kind}}))
    assert result["command"] == kind
    assert [run for _, _, run in client.service.registry.by_key] == ["r1"]


@pytest.mark.parametrize("command", [{"resume": {"value": 1}}, {"type": "goto", "node": "x"}, "text", 7, None, []])
async def test_a_frameworks_own_command_reaches_the_agent(connect: Connect, command: object) -> None:
    async def agent(asked: RunAgentInput) -> AsyncIterator[Item]:
        yield CustomEvent(name="command", value=props(asked)["command"])

    client = await connect(agent)
    events = await client.run(ask(forwardedProps={"command": command}))
    assert events[1]["value"] == command


MALFORMED = {
    "empty": "",
    "not JSON": "{",
    "a wrong type": json.dumps({"threadId": "t", "runId": 7, "messages": []}),
    "too deep": '{"threadId":"t","runId":"r","messages":[],"state":' + "[" * 30_000 + "]" * 30_000 + "}",
    "another major version": json.dumps(ask(protocolVersion="2.0")),
}


@pytest.mark.wire
@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
async def test_malformed_input_is_refused_before_a_run_exists(connect: Connect, body: str) -> None:
    client = await connect(brief)
    with pytest.raises(Refused, match="VALIDATION_ERROR"):
        await client.start(body)
    assert not client.service.registry.by_key
    assert outcome(await client.run(ask())) == "success"
