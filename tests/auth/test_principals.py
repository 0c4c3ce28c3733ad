"""Data of one principal does not exist for another one: on no route and by no command."""

import json

import httpx
import pytest

from agui_core.commands import COMMANDS
from tests.auth.conftest import Guard, Guarded, authorization
from tests.auth.test_open_paths import OPEN, address, requests_to
from tests.behaviour.client import Refused
from tests.behaviour.over_sse import OverSse
from tests.behaviour.over_ws import OverWs
from tests.engine.doubles import Json, ask
from tests.sse import http_client

pytestmark = pytest.mark.wire

SECRET = "what-alice-said-4711"  # noqa: S105 - no password
POLICY = '[{"tool_pattern": "calculate", "policy": "ask"}]'
NOT_FOUND = ("FILE_NOT_FOUND", "RUN_NOT_FOUND", "THREAD_NOT_FOUND", "RobotoNotFoundException")

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

WITHOUT_IDS = {"capabilities", "files.put", "ping", "runs.list", "threads.list"}
"""Commands that name nothing. They are about the caller's own."""


@pytest.fixture
async def everything(guard: Guard) -> Guarded:
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
        file_id = (await http.post("/files", content=SECRET.encode())).json()["id"]
    ids = {"threadId": "done", "sessionId": "done", "runId": "open"}
    return {**ids, "messageId": messages[0]["id"], "fileId": file_id}


async def view(guarded: Guarded) -> list[object]:
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
    assert await view(guarded) == before
    run = (await guarded.get("/runs/open", guarded.token("alice"))).json()
    assert run["status"] == "running"


def code_of(response: httpx.Response) -> str:
    text = response.text
    return next((code for code in NOT_FOUND if f'"{code}"' in text), text)


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


@pytest.mark.parametrize("client", [OverSse, OverWs])
async def test_no_command_shows_or_changes_what_is_another_principals(
    everything: Guarded, alices: dict[str, str], client: type[OverSse | OverWs]
) -> None:
    before = await view(everything)
    service = everything.app.state.service
    bob = client(service, everything.clock, everything.url, authorization(everything.token("bob")))
    for command in COMMANDS:
        for thread in ("done", "asks", "open"):
            fields = {
                **alices,
                "threadId": thread,
                "runId": thread,
                "title": "taken",
                "sentiment": "positive",
                "data": "eA==",
            }
            asked = bob.command({"command": {"type": command, **fields}})
            if command in WITHOUT_IDS:
                assert SECRET not in json.dumps(await asked), command
                continue
            with pytest.raises(Refused) as refused:
                await asked
            assert refused.value.code in NOT_FOUND, command
    await bob.close()
    await check_untouched(everything, before)


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


async def test_each_principal_has_tokens_of_its_own(guard: Guard) -> None:
    guarded = await guard(principal_tokens=1)
    results = [await guarded.ask("sse", guarded.token(name)) for name in ("alice", "alice", "bob")]
    assert [result.code for result in results] == ["", "RATE_LIMIT_EXCEEDED", ""]


async def test_an_agent_is_told_the_principal(guard: Guard) -> None:
    guarded = await guard(agent="tests.auth.agents:principal_agent")
    async with http_client(guarded.url, authorization(guarded.token("carol", tenant="t7"))) as http:
        answer = await http.post("/invocations", json=ask())
    assert f'"delta":"{guarded.issuer.url} carol t7"' in answer.text
