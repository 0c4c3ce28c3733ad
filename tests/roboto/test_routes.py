"""The routes of Roboto's sessions: answers, refusals, and deltas that wait."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from ag_ui.core import Message
from fastapi import FastAPI
from starlette.routing import Route

from agui_container.main import build_app
from agui_container.protocol.errors import ERRORS
from agui_container.settings import Settings
from agui_container.transports.caller_middleware import SESSION_HEADER
from agui_container.transports.roboto import routes, turn, views
from agui_container.transports.roboto.requests import MAX_TOOLS
from tests.behaviour.server import serving
from tests.engine.doubles import Json
from tests.requirements import requirement
from tests.roboto.conftest import SECONDS, Api, serving_api
from tests.sse import http_client

MOMENT = 0.2
"""Seconds that stand for the time that an answer is held back."""

INVALID, MISSING = "RobotoInvalidRequestException", "RobotoNotFoundException"

LOOK: Json = {"name": "client_look", "description": "Look.", "input_schema": {"type": "object"}}
"""A tool of the client."""


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are held back for a moment only."""
    monkeypatch.setattr(views, "HOLD_SECONDS", MOMENT)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are held back for longer than a slow machine takes for anything else."""
    monkeypatch.setattr(views, "HOLD_SECONDS", SECONDS)


@pytest.fixture
def app() -> FastAPI:
    """An application with all routes."""
    return build_app(Settings())


def texts(held: Json) -> list[str]:
    return ["".join(block.get("text", "") for block in message["content"]) for message in held["messages"]]


# --- answers ----------------------------------------------------------------------------------------------------------


@requirement("roboto.sessions")
@pytest.mark.parametrize("prefix", ["/v1/ai/chats", "/v1/ai/threads"])
async def test_both_generations_of_clients_have_the_same_sessions(api: Api, prefix: str) -> None:
    record = await Api(api.http, prefix).start("stream 2")
    held = await Api(api.http, prefix).finished(record)
    assert texts(held) == ["stream 2", "hello world, hello world, "]
    assert (await api.data("GET", f"/{record['chat_id']}"))["messages"][0]["status"] == "completed"


@requirement("roboto.sessions")
async def test_a_start_answers_before_the_agent_and_says_that_it_is_at_work(api: Api) -> None:
    record = await api.start("wait 1")
    assert [record[name] for name in ("status", "title", "origin", "forked_from_thread_id")[:1]] == ["roboto_turn"]
    assert texts(record)[0] == "wait 1"
    assert record["messages"][0]["created"].endswith("+00:00")


@requirement("roboto.sessions")
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


@requirement("roboto.sessions")
async def test_the_body_of_a_start_may_have_an_organisation_beside_it(api: Api) -> None:
    body = {"messages": [{"role": "user", "content": [{"text": "stream 1"}]}]}
    record = await api.data("POST", "", body, x_roboto_org_id="og_7")
    assert record["org_id"] == "og_7"


@requirement("protocol.crossed")
async def test_an_approval_is_told_as_the_activity_and_given_through_another_protocol() -> None:
    policy = '[{"tool_pattern": "calculate", "policy": "ask"}]'
    async with serving_api(tool_policy=policy) as api:
        held = await api.finished(await api.start("calculate 6*7"))
        assert (held["status"], held["activity"]) == (
            "user_turn",
            "Waiting for an answer through another protocol: calculate",
        )
        thread = held["thread_id"]
        (waiting,) = (await api.http.get(f"/threads/{thread}")).json()["waiting"]
        resume = [{"interruptId": waiting["id"], "status": "resolved", "payload": {"approved": True}}]
        run = {"threadId": thread, "runId": "approve", "messages": [], "resume": resume}
        await api.http.post("/invocations", json=run)
        delta = await api.delta(held)
        assert delta["activity"] is None
        assert delta["messages_by_idx"]["2"]["content"][0]["raw_response"] == {"result": 42}
        assert delta["messages_by_idx"]["3"]["content"][0]["text"] == "The result of calculate is 42."


@requirement("protocol.crossed", "roboto.tools")
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


@requirement("roboto.goals")
async def test_a_generic_goal_is_declared_by_its_schema(api: Api) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    goal = {"goal_type": "count", "schema": schema, "description": "Count."}
    held = await api.finished(await api.start('call achieve_count {"n": 3}', goals=[goal]))
    (record,) = held["goals"]
    assert (record["goal_data"], record["status"], record["message_sequence_num"]) == (goal, "achieved", 0)
    assert record["achieve_tool_use_id"] == held["messages"][1]["content"][0]["tool_use_id"]
    assert record["concluded_at"] is not None


@requirement("roboto.goals")
async def test_goals_of_another_protocol_are_shown_with_their_schema(api: Api) -> None:
    goal = {"type": "count", "schema": {"type": "object"}}
    message = {"id": "u", "role": "user", "content": "call achieve_count {}"}
    run = {"threadId": "t", "runId": "r", "messages": [message], "forwardedProps": {"goals": [goal]}}
    await api.http.post("/invocations", json=run)
    (record,) = (await api.data("GET", "/t"))["goals"]
    assert record["goal_data"] == {"goal_type": "count", "schema": {"type": "object"}}


@requirement("roboto.goals", "protocol.crossed")
@pytest.mark.parametrize(
    "notes", [{"created": 1e300}, {"created": -1}, {"run_id": "r", "goals": [{}]}, {"run_id": ["r"]}, "notes"]
)
async def test_a_session_is_shown_whatever_another_client_has_written_beside_its_message(
    api: Api, notes: object
) -> None:
    goal = {"type": "count", "schema": {"type": "object"}}
    message = {"id": "u", "role": "user", "content": "call achieve_count {}", "metadata": {"roboto": notes}}
    run = {"threadId": "t", "runId": "r", "messages": [message], "forwardedProps": {"goals": [goal]}}
    await api.http.post("/invocations", json=run)
    record = await api.data("GET", "/t")
    assert texts(record)[0] == "call achieve_count {}"
    assert [it["goal_type"] for it in record["goals"]] == ["count"]


@requirement("roboto.tools")
async def test_tools_and_scope_are_those_of_the_session_from_then_on(api: Api) -> None:
    held = await api.finished(await api.start("stream 1", client_tools=[LOOK]))
    body = {"message": {"role": "user", "content": [{"text": "call client_look {}"}]}}
    await api.data("POST", f"/{held['thread_id']}/messages", body)
    held = await api.finished({**held, "status": "roboto_turn"})
    assert held["status"] == "client_tool_turn"
    assert held["messages"][-1]["content"][0]["answered_by_server"] is False


@requirement("roboto.tools", "roboto.errors")
async def test_the_tools_of_all_requests_of_a_session_together_are_limited(api: Api) -> None:
    tools = [{"name": f"client_look_{at}", "description": "Look."} for at in range(MAX_TOOLS + 1)]
    held = await api.finished(await api.start("stream 1", client_tools=tools[:-1]))
    path = f"/{held['thread_id']}/messages"
    body = {"message": {"role": "user", "content": [{"text": "stream 1"}]}}
    refused = await api.error("POST", path, {**body, "client_tools": tools[-1:]})
    assert refused == (400, INVALID, "client_tools: a session may have 200 tools at most.")
    await api.data("POST", path, {**body, "client_tools": tools[:-1]})


@requirement("roboto.tools")
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


@requirement("roboto.tools")
async def test_a_result_that_names_another_tool_is_refused_and_the_call_waits(api: Api) -> None:
    held = await api.finished(await api.start("call client_look {}", client_tools=[LOOK]))
    call, path = held["messages"][1]["content"][0]["tool_use_id"], f"/{held['thread_id']}/tool-results"
    refused = await api.error("POST", path, results(call, "client_paint"))
    assert refused == (400, INVALID, "tool_results.0.tool_name: the call of this id is of 'client_look'.")
    await api.data("POST", path, results(call))
    assert (await api.finished({**held, "status": "roboto_turn"}))["status"] == "user_turn"


@requirement("roboto.tools", "caller.loop")
async def test_the_calls_that_wait_are_found_without_the_rest_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    app = build_app(Settings(roboto=True))
    async with serving(app) as url, http_client(url) as http:
        api, threads = Api(http), app.state.service.cluster.store.threads
        held = await api.finished(await api.start("call client_look {}", client_tools=[LOOK]))
        monkeypatch.setattr(threads, "changes", None)
        refused = await api.error("POST", f"/{held['thread_id']}/tool-results", results("another"))
        assert refused == (400, INVALID, "tool_results.0.tool_use_id: no call of this id is waiting for a result.")


@requirement("roboto.tools", "protocol.crossed")
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


@requirement("roboto.tools")
async def test_an_empty_list_of_results_changes_nothing(api: Api) -> None:
    held = await api.finished(await api.start("stream 1"))
    await api.data("POST", f"/{held['thread_id']}/tool-results", {"tool_results": []})
    assert (await api.delta(held))["messages_by_idx"] == {}


@requirement("roboto.tools")
async def test_the_user_may_speak_in_place_of_a_client_tool(api: Api) -> None:
    held = await api.finished(await api.start("call client_look {}", client_tools=[LOOK]))
    body = {"message": {"role": "user", "content": [{"text": "stream 1"}]}}
    await api.data("POST", f"/{held['thread_id']}/messages", body)
    held = await api.finished({**held, "messages": [*held["messages"], {"content": []}], "status": "roboto_turn"})
    assert (held["status"], texts(held)[-1]) == ("user_turn", "hello world, ")


@requirement("roboto.sessions")
async def test_a_turn_goes_on_to_its_end_though_nobody_polls() -> None:
    async with serving_api(on_disconnect="cancel") as api:
        record = await api.start("wait 0.3")
        run = (await api.http.get(f"/threads/{record['thread_id']}")).json()["activeRunId"]
        status = "running"
        while status == "running":
            status = (await api.http.get(f"/runs/{run}")).json()["status"]
        assert status == "finished"


# --- refusals ---------------------------------------------------------------------------------------------------------


@requirement("roboto.errors")
@pytest.mark.parametrize(
    ("asked", "body", "refusal"),
    [
        ("POST ", {}, (400, INVALID)),
        ("GET /none", None, (404, MISSING)),
        ("GET /none/delta", None, (404, MISSING)),
        ("POST /none/messages", {"message": {"role": "user", "content": [{"text": "x"}]}}, (404, MISSING)),
        ("POST /none/tool-results", {"tool_results": []}, (404, MISSING)),
        ("POST /none/fork", {"message_sequence_num": 0}, (404, MISSING)),
        ("POST /none/messages/0/feedback", {"sentiment": "positive"}, (404, MISSING)),
        ("POST /none/messages/x/feedback", {"sentiment": "positive"}, (404, MISSING)),
        ("POST /none/visibility", {"visibility": "org"}, (404, MISSING)),
        ("POST /none/visibility", {"visibility": "all"}, (400, INVALID)),
        ("POST /none/pin", {"pinned": "maybe"}, (400, INVALID)),
        ("POST /none/archive", {}, (404, MISSING)),
        ("GET ", None, (404, MISSING)),
    ],
)
async def test_refusals_have_the_shape_of_roboto(api: Api, asked: str, body: object, refusal: tuple[int, str]) -> None:
    method, path = asked.split(" ")
    assert (await api.error(method, path, body))[:2] == refusal


@requirement("roboto.errors")
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/v1/ai/agents", "/v1/ai/threads/t/nothing", "/v1/ai/", "/v1/ai/threads/search/x"])
async def test_any_other_path_is_not_found_in_robotos_form_by_any_method(api: Api, method: str, path: str) -> None:
    answer = await api.http.request(method, path, headers={"accept": "text/html"})
    assert (answer.status_code, answer.json()["error"]["error_code"]) == (404, MISSING)


@requirement("roboto.errors", "origin.foreign")
async def test_a_web_page_that_may_not_call_is_refused_on_every_route_in_robotos_form(api: Api, app: FastAPI) -> None:
    ids = {"sessionId": "t", "index": "0", "path": "x"}
    routed = [route for route in app.routes if isinstance(route, Route) and route.path.startswith("/v1/ai/")]
    assert len(routed) == 2 * len(routes.OPERATIONS) + 1
    for route in routed:
        path = route.path.replace(":path", "").format(**ids)
        for method in sorted(route.methods or {"GET", "POST"}):
            answer = await api.http.request(method, path, headers={"origin": "http://evil.example"})
            assert answer.status_code == 403, (method, path)
            assert method == "HEAD" or answer.json()["error"]["error_code"] == "RobotoUnauthorizedException"


@requirement("roboto.errors")
async def test_a_web_page_that_may_call_reads_the_answers() -> None:
    page = {"origin": "https://page.example"}
    async with serving_api(cors_origins=("https://page.example",)) as api:
        answer = await api.ask("GET", "/none", origin=page["origin"])
        preflight = {**page, "access-control-request-method": "POST"}
        allowed = await api.http.request("OPTIONS", api.prefix, headers=preflight)
    assert (answer.status_code, allowed.status_code) == (404, 200)
    for each in (answer, allowed):
        assert each.headers["access-control-allow-origin"] == page["origin"]


@requirement("roboto.errors")
@pytest.mark.parametrize(
    ("sentiment", "category", "message"),
    [
        ("positive", "other", "notes: are required with the category 'other'."),
        (
            *("positive", "formatting"),
            "categories: 'formatting' does not fit the sentiment; correct, helpful, good_tool_use, other do.",
        ),
    ],
)
async def test_feedback_that_does_not_fit_is_refused(api: Api, sentiment: str, category: str, message: str) -> None:
    held = await api.finished(await api.start("stream 1"))
    path = f"/{held['thread_id']}/messages/1/feedback"
    refused = await api.error("POST", path, {"sentiment": sentiment, "categories": [category]})
    assert refused == (400, INVALID, message)


@requirement("roboto.errors")
async def test_the_format_of_an_answer_may_be_disliked(api: Api) -> None:
    held = await api.finished(await api.start("stream 1"))
    disliked = {"sentiment": "negative", "categories": ["slow", "formatting"]}
    record = await api.data("POST", f"/{held['thread_id']}/messages/1/feedback", disliked)
    assert record["categories"] == ["formatting", "slow"]


@requirement("roboto.errors")
async def test_a_token_of_nobody_is_refused(api: Api) -> None:
    held = await api.finished(await api.start("stream 1"))
    assert (await api.error("GET", f"/{held['thread_id']}/delta?next_token=x"))[:2] == (400, INVALID)


@requirement("roboto.errors")
async def test_a_session_of_another_caller_is_not_there(api: Api) -> None:
    record = await api.start("stream 1")
    other = {"x_amzn_bedrock_agentcore_runtime_session_id": "s" * 40}
    assert (await api.ask("GET", f"/{record['thread_id']}", **other)).status_code == 404


@requirement("roboto.errors")
async def test_a_client_above_a_rate_is_told_when_to_come_back() -> None:
    async with serving_api(caller_limits='{"runsPerMinute": 1}', limit_by="session") as api:
        api.http.headers[SESSION_HEADER] = "session"
        await api.start("stream 1")
        refused = await api.ask("POST", "", {"messages": [{"role": "user", "content": [{"text": "stream 1"}]}]})
    assert (refused.status_code, refused.json()["error"]["error_code"]) == (429, "RobotoLimitExceededException")
    assert 0 < int(refused.headers["retry-after"]) <= 60


@requirement("roboto.errors")
def test_every_status_of_the_error_table_has_an_exception() -> None:
    refused = {row.http for row in ERRORS.values()} - {200, 500}
    assert refused <= routes.CLASSES.keys()


# --- waiting deltas ---------------------------------------------------------------------------------------------------


@requirement("roboto.delta")
@pytest.mark.usefixtures("patient")
async def test_a_delta_waits_while_the_agent_says_nothing_and_answers_when_it_does(api: Api) -> None:
    record = await api.start("wait 1")
    held = {**record, "messages": list(record["messages"])}
    deltas = [await api.delta(held)]
    while deltas[-1]["status"] == "roboto_turn":
        deltas.append(await api.delta({**record, **deltas[-1]}))
    assert len(deltas) <= 5  # and not one for each fifth of a second
    assert all(delta["messages_by_idx"] for delta in deltas)


@requirement("roboto.delta")
def test_a_poll_is_held_for_no_longer_than_a_second() -> None:
    assert views.HOLD_SECONDS <= 1.0


@requirement("roboto.delta")
@pytest.mark.usefixtures("brief")
async def test_a_delta_without_news_says_so_in_the_end(api: Api) -> None:
    record = await api.start("wait 3")
    held = {**record, **await api.delta(record)}
    while (delta := await api.delta(held))["messages_by_idx"]:
        held = {**held, **delta}
    assert (delta["status"], delta["goals"], delta["messages_by_idx"]) == ("roboto_turn", None, {})


@requirement("roboto.delta")
@pytest.mark.usefixtures("patient")
async def test_one_look_at_a_session_that_rests_is_answered_at_once_and_polling_waits(api: Api) -> None:
    held = await api.finished(await api.start("stream 1"))
    once = {**held, **await api.delta(held)}
    assert once["messages_by_idx"] == {}
    polling = asyncio.create_task(api.delta(once))
    done, _ = await asyncio.wait([polling], timeout=MOMENT)
    assert not done
    body = {"message": {"role": "user", "content": [{"text": "stream 2"}]}}
    await api.data("POST", f"/{held['thread_id']}/messages", body)
    delta = await polling
    assert (delta["messages_by_idx"]["2"]["content"][0]["text"], delta["reset_from_message_sequence_num"]) == (
        "stream 2",
        2,
    )


@requirement("roboto.delta")
@pytest.mark.usefixtures("brief")
async def test_a_poll_of_a_session_that_rests_sees_what_others_have_done_before_it(api: Api) -> None:
    held = await api.finished(await api.start("stream 1"))
    polling = asyncio.create_task(api.delta({**held, **await api.delta(held)}))
    await api.http.patch(f"/threads/{held['thread_id']}", json={"title": "Renamed"})
    assert (await api.delta({**held, **await polling}))["title"] == "Renamed"


@requirement("roboto.delta")
async def test_a_run_of_another_client_is_read_as_long_as_somebody_polls(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "UNPOLLED_SECONDS", MOMENT)
    message = {"id": "u", "role": "user", "content": "wait 30"}
    run = {"threadId": "t", "runId": "r", "messages": [message]}
    async with api.http.stream("POST", "/invocations", json=run) as stream:
        await anext(stream.aiter_lines())
        assert (await api.data("GET", "/t"))["status"] == "roboto_turn"
        readers = 2
        while readers != 1:
            readers = (await api.http.get("/runs/r")).json()["readers"]
        assert (await api.data("GET", "/t"))["status"] == "roboto_turn"
        await api.http.post("/runs/r/cancel")


@requirement("roboto.delta")
async def test_a_history_that_was_edited_elsewhere_is_sent_anew_to_clients_that_can_drop_it(api: Api) -> None:
    held = await api.finished(await api.start("stream 1"))
    thread = held["thread_id"]
    edited = [{"id": "new", "role": "user", "content": "stream 2"}]
    first = (await api.http.get(f"/threads/{thread}")).json()["messages"][0]["id"]
    run = {"threadId": thread, "runId": "r2", "messages": [{**edited[0], "id": first}]}
    await api.http.post("/invocations", json=run)
    new = await api.delta(held)
    assert (new["reset_from_message_sequence_num"], len(new["messages_by_idx"])) == (0, 2)
    old = await Api(api.http, "/v1/ai/chats").delta(held)
    assert (old["reset_from_message_sequence_num"], old["messages_by_idx"]) == (None, {})


@requirement("roboto.delta")
async def test_sessions_are_there_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/sessions.db"
    async with serving_api(store=store) as api:
        held = await api.finished(await api.start("fail", client_tools=[LOOK]))
        await api.data("POST", f"/{held['thread_id']}/pin", {"pinned": True})
    async with serving_api(store=store) as api:
        record = await api.data("GET", f"/{held['thread_id']}")
        assert record["messages"][1]["status"] == "failed"
        assert record["pinned_at"] is not None
        assert (await api.delta(held))["messages_by_idx"] == {}
        body = {"message": {"role": "user", "content": [{"text": "call client_look {}"}]}}
        await api.data("POST", f"/{held['thread_id']}/messages", body)
        assert (await api.finished({**held, "status": "roboto_turn"}))["status"] == "client_tool_turn"


# --- off --------------------------------------------------------------------------------------------------------------


@requirement("roboto.off")
def test_a_start_imports_its_routes_alone_and_nothing_of_the_sessions() -> None:
    create = "import sys; from agui_container.main import *; build_app(Settings(roboto=True)); "
    code = create + "print(*[name for name in sys.modules if 'roboto' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    package = "agui_container.transports.roboto"
    assert done.stdout.split() == [package, f"{package}.routes"]


@requirement("roboto.off")
def test_it_is_on_unless_it_is_switched_off() -> None:
    assert Settings().roboto


@requirement("roboto.off")
def test_the_capabilities_name_it_where_it_is_on() -> None:
    on, off = (build_app(Settings(roboto=roboto)).state.service.capabilities.custom for roboto in (True, False))
    assert (on["roboto"], "roboto" in off) == ("/v1/ai", False)


@requirement("roboto.off")
async def test_it_is_not_served_where_it_is_off() -> None:
    async with serving_api(roboto=False) as api:
        answer: httpx.Response = await api.ask("GET", "/t")
        assert answer.status_code == 404
        assert "RUN_ERROR" in answer.text


@requirement("roboto.off")
@pytest.mark.parametrize("is_on", [True, False])
async def test_a_browser_at_an_unknown_address_gets_the_page_whether_it_is_on_or_off(*, is_on: bool) -> None:
    async with serving_api(roboto=is_on) as api:
        page = await api.http.get("/nothing", headers={"accept": "text/html"})
    assert (page.status_code, "There is nothing at this address" in page.text) == (404, True)
