"""The routes of Roboto's sessions: answers, and that they can be switched off."""

from collections.abc import Sequence

import httpx
import pytest
from ag_ui.core import Message

from agui_container.main import build_app
from agui_container.protocols.roboto.requests import MAX_TOOLS
from agui_container.settings import Settings
from tests.behaviour.server import serving
from tests.engine.doubles import Json
from tests.protocols.roboto.conftest import Api, serving_api
from tests.sse import http_client

pytestmark = pytest.mark.wire

INVALID = "RobotoInvalidRequestException"

LOOK: Json = {"name": "client_look", "description": "Look.", "input_schema": {"type": "object"}}


def texts(held: Json) -> list[str]:
    return ["".join(block.get("text", "") for block in message["content"]) for message in held["messages"]]


@pytest.mark.parametrize("question", ["wait 1", "stream 3"])
async def test_a_start_answers_before_the_agent_and_says_that_it_is_at_work(api: Api, question: str) -> None:
    """Also if the agent has answered by then: the package shows its user nothing of what the start has told it."""
    record = await api.start(question)
    assert (record["status"], texts(record)) == ("roboto_turn", [question])
    assert record["messages"][0]["created"].endswith("+00:00")


@pytest.mark.parametrize(
    "question", ["stream 500", "think about rain", "delegate calculate 6*7", "wait 0.3", "fail", "calculate 1+1"]
)
async def test_the_deltas_of_a_session_merged_equal_the_session(api: Api, question: str) -> None:
    held = await api.finished(await api.start(question))
    record = await api.data("GET", f"/{held['thread_id']}")
    for message, stored in zip(held["messages"], record["messages"], strict=True):
        others = [[block for block in it["content"] if "text" not in block] for it in (message, stored)]
        assert (message["role"], message["status"], others[0]) == (stored["role"], stored["status"], others[1])
    assert texts(held) == texts(record)
    assert held["continuation_token"] == record["continuation_token"]


async def test_a_client_tool_is_answered_after_an_approval_through_another_protocol() -> None:
    policy = '[{"tool_pattern": "calculate", "policy": "ask"}]'
    async with serving_api(tool_policy=policy) as api:
        asked = 'call calculate {"expression": "6*7"}\ncall client_look {}'
        held = await api.finished(await api.start(asked, client_tools=[LOOK]))
        assert held["status"] == "user_turn"
        thread, call = held["thread_id"], held["messages"][1]["content"][1]["tool_use_id"]
        (waiting,) = (await api.http.get(f"/threads/{thread}")).json()["waiting"]
        resume = [{"interruptId": waiting["id"], "status": "resolved", "payload": {"approved": True}}]
        tools = [{"name": "client_look", "description": "Look.", "parameters": {"type": "object"}}]
        run = {"threadId": thread, "runId": "approve", "messages": [], "tools": tools, "resume": resume}
        await api.http.post("/invocations", json=run)
        assert (await api.data("GET", f"/{thread}"))["status"] == "client_tool_turn"
        await api.data("POST", f"/{thread}/tool-results", results(call))
        held = await api.finished({**await api.data("GET", f"/{thread}"), "status": "roboto_turn"})
        assert held["status"] == "user_turn"
        assert texts(held)[-1] == "The result of calculate is 42, and the result of client_look is {}."


@pytest.mark.parametrize(
    "notes", [{"created": 1e300}, {"created": -1}, {"run_id": "r", "goals": [{}]}, {"run_id": ["r"]}, "notes"]
)
async def test_a_session_is_shown_whatever_another_client_has_written_beside_its_message(
    api: Api, notes: object
) -> None:
    message = {"id": "u", "role": "user", "content": "stream 1", "metadata": {"roboto": notes}}
    run = {"threadId": "t", "runId": "r", "messages": [message]}
    await api.http.post("/invocations", json=run)
    record = await api.data("GET", "/t")
    assert (texts(record)[0], record["goals"]) == ("stream 1", [])


async def test_the_tools_of_all_requests_of_a_session_together_are_limited(api: Api) -> None:
    tools = [{"name": f"client_look_{at}", "description": "Look."} for at in range(MAX_TOOLS + 1)]
    held = await api.finished(await api.start("stream 1", client_tools=tools[:-1]))
    path = f"/{held['thread_id']}/messages"
    body = {"message": {"role": "user", "content": [{"text": "stream 1"}]}}
    refused = await api.error("POST", path, {**body, "client_tools": tools[-1:]})
    assert refused == (400, INVALID, "client_tools: a session may have 200 tools at most.")
    await api.data("POST", path, {**body, "client_tools": tools[:-1]})


async def test_partial_results_leave_the_turn_with_the_client(api: Api) -> None:
    held = await api.finished(await api.start("call client_look {}\ncall client_look {}", client_tools=[LOOK]))
    first, second = (block["tool_use_id"] for block in held["messages"][-1]["content"])
    path = f"/{held['thread_id']}/tool-results"
    for call, status in ((second, "client_tool_turn"), (first, "user_turn")):
        await api.data("POST", path, results(call))
        held = await api.finished({**held, "status": "roboto_turn"})
        assert held["status"] == status
    assert [block["tool_use_id"] for block in held["messages"][2]["content"]] == [second, first]
    assert (await api.error("POST", path, results(first)))[:2] == (400, INVALID)


def results(call: str, tool: str = "client_look") -> Json:
    row = {"tool_use_id": call, "tool_name": tool, "runtime_ms": 1, "status": "success", "output": {}}
    return {"tool_results": [row]}


async def test_a_result_that_names_another_tool_is_refused_and_the_call_waits(api: Api) -> None:
    held = await api.finished(await api.start("call client_look {}", client_tools=[LOOK]))
    call, path = held["messages"][1]["content"][0]["tool_use_id"], f"/{held['thread_id']}/tool-results"
    refused = await api.error("POST", path, results(call, "client_paint"))
    assert refused == (400, INVALID, "tool_results.0: no call of this id and this tool is waiting for a result.")
    await api.data("POST", path, results(call))
    assert (await api.finished({**held, "status": "roboto_turn"}))["status"] == "user_turn"


async def test_results_that_come_after_those_of_another_client_are_refused_and_begin_no_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = build_app(Settings(roboto=True))
    async with serving(app) as url, http_client(url) as http:
        api, threads = Api(http), app.state.service.threads
        held = await api.finished(await api.start("call client_look {}", client_tools=[LOOK]))
        call, path = held["messages"][1]["content"][0]["tool_use_id"], f"/{held['thread_id']}/tool-results"
        read = threads.messages_since

        async def read_before_the_other_client(*args: object) -> Sequence[Message]:
            messages: Sequence[Message] = await read(*args)
            monkeypatch.setattr(threads, "messages_since", read)
            await api.data("POST", path, results(call))
            await api.finished({**held, "status": "roboto_turn"})
            return messages

        monkeypatch.setattr(threads, "messages_since", read_before_the_other_client)
        assert (await api.error("POST", path, results(call)))[:2] == (400, INVALID)
        assert len((await api.http.get("/runs")).json()["runs"]) == 2


async def test_a_turn_goes_on_to_its_end_though_nobody_polls() -> None:
    async with serving_api(on_disconnect="cancel") as api:
        record = await api.start("wait 0.3")
        run = (await api.http.get(f"/threads/{record['thread_id']}")).json()["activeRunId"]
        status = "running"
        while status == "running":
            status = (await api.http.get(f"/runs/{run}")).json()["status"]
        assert status == "finished"


async def test_it_is_not_served_where_it_is_off() -> None:
    async with serving_api(roboto=False) as api:
        answer: httpx.Response = await api.ask("GET", "/t")
        assert answer.status_code == 404
        assert "RUN_ERROR" in answer.text
