"""Data of one principal does not exist for another one: on no route, by no command and by no rpc."""

import asyncio
import json
from collections.abc import Mapping

import grpc
import httpx
import pytest

from agui_container.protocol.commands import COMMANDS
from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from tests.auth.agents import AGENTCORE_HEADERS
from tests.auth.clients import ASK
from tests.auth.conftest import Guard, Guarded, authorization
from tests.auth.rpcs import call_rpc, requests_with_ids, rpcs_of
from tests.auth.test_open_paths import OPEN, OPEN_SERVICES, address, requests_to
from tests.behaviour.client import Refused
from tests.behaviour.over_sse import OverSse
from tests.behaviour.over_ws import OverWs
from tests.engine.doubles import Json, ask
from tests.requirements import requirement
from tests.sse import http_client

SECRET = "what-alice-said-4711"  # noqa: S105 - no password
POLICY = '[{"tool_pattern": "calculate", "policy": "ask"}]'
NOT_FOUND = ("RUN_NOT_FOUND", "THREAD_NOT_FOUND", "RobotoNotFoundException")

BODY: Json = {
    "title": "taken",
    "sentiment": "positive",
    "message_sequence_num": 0,
    "visibility": "org",
    "pinned": True,
    "message": {"role": "user", "content": [{"text": "hi"}]},
    "tool_results": [],
}
"""A body with the fields of every route that needs one."""

WITHOUT_IDS = {"capabilities", "ping", "runs.list", "threads.list"}
"""Commands that name nothing. They are about the caller's own."""


@pytest.fixture
async def everything(guard: Guard) -> Guarded:
    """A server with all that can be served, and with a tool that asks for approval."""
    return await guard(roboto=True, tool_policy=POLICY)


@pytest.fixture
async def alices(everything: Guarded) -> dict[str, str]:
    """Ids of what Alice has: an open run, and calls that wait for her approval and for her result."""
    async with http_client(everything.url, authorization(everything.token("alice"))) as http:
        await http.post("/invocations", json=ask(thread="done", run="done", text=SECRET))
        await http.post("/invocations", json=ask(thread="asks", run="asks", text="calculate 4711+1"))
        tools = [{"name": "look", "description": "", "parameters": {}}]
        await http.post("/invocations", json=ask(thread="calls", run="calls", text="call look {}", tools=tools))
        messages = (await http.get("/threads/done")).json()["messages"]
        async with http.stream("POST", "/invocations", json=ask(thread="open", run="open", text="wait 600")) as stream:
            async for line in stream.aiter_lines():
                if "TEXT_MESSAGE_CONTENT" in line:
                    break
    return {"threadId": "done", "sessionId": "done", "runId": "open", "messageId": messages[0]["id"]}


async def view(guarded: Guarded) -> list[object]:
    """All that Alice sees of hers."""
    async with http_client(guarded.url, authorization(guarded.token("alice"))) as http:
        paths = (
            "/threads/done",
            "/threads/asks",
            "/threads/open",
            "/threads/calls",
            "/runs/done",
            "/runs/asks",
            "/v1/ai/threads/done",
        )
        return [(await http.get(path)).json() for path in paths]


async def check_untouched(guarded: Guarded, before: list[object]) -> None:
    """Check that Alice's data is unchanged and her run is still open."""
    assert await view(guarded) == before
    run = (await guarded.get("/runs/open", guarded.token("alice"))).json()
    assert run["status"] == "running"


def code_of(response: httpx.Response) -> str:
    """The code in any form of an error."""
    text = response.text
    return next((code for code in NOT_FOUND if f'"{code}"' in text), text)


@requirement("auth.principal")
async def test_no_route_shows_or_changes_what_is_another_principals(
    everything: Guarded, alices: dict[str, str]
) -> None:
    before, named = await view(everything), 0
    async with http_client(everything.url, authorization(everything.token("bob"))) as http:
        for method, route in requests_to(everything.app.routes):
            if route.path in OPEN or route.path == "/invocations":
                continue
            content = json.dumps({**BODY, "messageId": alices["messageId"]})
            response = await http.request(method, address(route, **alices), content=content)
            place = f"{method} {route.path}"
            assert SECRET not in response.text, place
            if alices.keys() & route.param_convertors.keys():
                named += 1
                assert response.status_code == 404, f"{place}: {response.text}"
                assert method == "HEAD" or code_of(response) in NOT_FOUND, place
    assert named > 20
    await check_untouched(everything, before)


@requirement("auth.principal")
@pytest.mark.parametrize("client", [OverSse, OverWs])
async def test_no_command_shows_or_changes_what_is_another_principals(
    everything: Guarded, alices: dict[str, str], client: type[OverSse | OverWs]
) -> None:
    before = await view(everything)
    service = everything.app.state.service
    bob = client(service, everything.clock, everything.url, authorization(everything.token("bob")))
    for command in COMMANDS:
        for thread in ("done", "asks", "open"):
            fields = {**alices, "threadId": thread, "runId": thread, "title": "taken", "sentiment": "positive"}
            asked = bob.command({"command": {"type": command, **fields}})
            if command in WITHOUT_IDS:
                assert SECRET not in json.dumps(await asked), command
                continue
            with pytest.raises(Refused) as refused:
                await asked
            assert refused.value.code in NOT_FOUND, command
    await bob.close()
    await check_untouched(everything, before)


@requirement("auth.principal")
async def test_the_ids_of_a_run_begin_another_run_for_another_principal(
    everything: Guarded, alices: dict[str, str]
) -> None:
    before = await view(everything)
    async with http_client(everything.url, authorization(everything.token("bob"))) as http:
        response = await http.post("/invocations", json=ask(thread="done", run="done", text="hello"))
        assert SECRET not in response.text
        (waiting,) = (await everything.get("/threads/asks", everything.token("alice"))).json()["waiting"]
        answer = {"interruptId": waiting["id"], "status": "resolved", "payload": {"approved": True}}
        run = {"threadId": "asks", "runId": "answer", "messages": [], "resume": [answer]}
        response = await http.post("/invocations", json=run)
        assert "4712" not in response.text
        assert len((await http.get("/threads/done")).json()["messages"]) == 2
    await check_untouched(everything, before)


REQUESTS: Mapping[str, tuple[bytes, grpc.StatusCode]] = {
    "/kontekst.DaemonService/GetStatus": (b"", grpc.StatusCode.OK),
    "/kontekst.DaemonService/Shutdown": (b"", grpc.StatusCode.PERMISSION_DENIED),
    "/roz.v1.AgentService/WatchTeam": (
        roz.WatchTeamRequest(task_id="open").SerializeToString(),
        grpc.StatusCode.NOT_FOUND,
    ),
}
"""A request to each rpc with one request."""

STREAMS = ("/kontekst.AgentService/Run", "/roz.v1.AgentService/StreamSession")
"""Rpcs with many requests."""


THREADS = ("done", "asks", "calls")
"""Alice's threads: one without a call, and two whose calls wait for her approval and for her result."""


async def request_values(everything: Guarded, alices: dict[str, str], thread: str) -> dict[str, object]:
    """Values of the fields of requests with Alice's ids, which approve, answer and rate."""
    messages = (await everything.get(f"/threads/{thread}", everything.token("alice"))).json()["messages"]
    call_id = next((call["id"] for call in messages[-1].get("toolCalls", ())), "none")
    ids = {"session_id": thread, "message_id": alices["messageId"], "tool_call_id": call_id, "call_id": call_id}
    others = dict.fromkeys(("environment_id", "host_id", "peer_id"), "x")
    answers = {"approved": True, "success": True, "result": "taken", "rating": "positive"}
    return {**ids, **others, **answers, "content": "calculate 1+1", "prompt": "calculate 1+1"}


@requirement("auth.principal")
async def test_no_rpc_shows_or_changes_what_is_another_principals(everything: Guarded, alices: dict[str, str]) -> None:
    rpcs = [path for path in rpcs_of(everything.app) if not path.strip("/").startswith(OPEN_SERVICES)]
    assert rpcs == sorted([*REQUESTS, *STREAMS])
    before = await view(everything)
    headers = authorization(everything.token("bob"))
    for path, (request, expected) in REQUESTS.items():
        status, received = await asyncio.to_thread(call_rpc, everything.url, path, request, headers)
        assert status is expected, path
        assert SECRET.encode() not in received, path
    for task_id in THREADS:
        watch = roz.WatchTeamRequest(task_id=task_id).SerializeToString()
        path = "/roz.v1.AgentService/WatchTeam"
        status, _ = await asyncio.to_thread(call_rpc, everything.url, path, watch, headers)
        assert status is grpc.StatusCode.NOT_FOUND, task_id
    await check_untouched(everything, before)


@requirement("auth.principal")
@pytest.mark.parametrize("thread", THREADS)
async def test_no_request_of_a_session_changes_what_is_another_principals(
    everything: Guarded, alices: dict[str, str], thread: str
) -> None:
    requests = requests_with_ids(roz.SessionRequest, await request_values(everything, alices, thread))
    assert {"start", "user_message", "feedback", "permission_decision", "tool_result"} <= requests.keys()
    before = await view(everything)
    headers = {**authorization(everything.token("bob")), "agui-thread-id": thread}
    ends = [roz.SessionRequest(cancel_turn={}), roz.SessionRequest(cancel_session={})]
    sent = [*requests.values(), *(request.SerializeToString() for request in ends)]
    path = "/roz.v1.AgentService/StreamSession"
    status, received = await asyncio.to_thread(call_rpc, everything.url, path, sent, headers)
    assert status is grpc.StatusCode.OK
    assert SECRET.encode() not in received
    for refusal in (b"tool_result: no call", b"permission_decision: no call", b"THREAD_NOT_FOUND"):
        assert refusal in received
    await check_untouched(everything, before)


@requirement("auth.principal")
@pytest.mark.parametrize("thread", THREADS)
async def test_no_command_of_kontekst_changes_what_is_another_principals(
    everything: Guarded, alices: dict[str, str], thread: str
) -> None:
    values = {**await request_values(everything, alices, thread), "agent_name": "default"}
    requests = requests_with_ids(kontekst.RunCommand, values)
    assert {"start", "approve_tool", "deny_tool"} <= requests.keys()
    before = await view(everything)
    headers = authorization(everything.token("bob"))
    path = "/kontekst.AgentService/Run"
    status, received = await asyncio.to_thread(call_rpc, everything.url, path, requests.values(), headers)
    assert status is grpc.StatusCode.OK
    assert SECRET.encode() not in received
    assert b"4712" not in received
    await check_untouched(everything, before)


@requirement("auth.principal")
async def test_the_session_header_does_not_part_a_principal(everything: Guarded, alices: dict[str, str]) -> None:
    headers = {
        **authorization(everything.token("alice")),
        "x-amzn-bedrock-agentcore-runtime-session-id": "another-session",
    }
    async with http_client(everything.url, headers) as http:
        assert (await http.get("/threads/done")).status_code == 200


@requirement("auth.principal")
async def test_an_agent_is_told_the_principal(guard: Guard) -> None:
    guarded = await guard(agent="tests.auth.agents:principal_agent")
    async with http_client(guarded.url, authorization(guarded.token("carol", tenant="t7"))) as http:
        answer = await http.post("/invocations", json=ask())
    assert f'"delta":"{guarded.issuer.url} carol t7"' in answer.text


@requirement("secret.headers")
async def test_the_headers_of_agentcore_reach_the_agent(guard: Guard, transport: str) -> None:
    guarded = await guard(agent="tests.auth.agents:header_agent")
    headers = {**authorization(guarded.token()), **AGENTCORE_HEADERS}
    reply = await ASK[transport](guarded.url, headers)
    assert (reply.code, reply.message) == ("", "")
