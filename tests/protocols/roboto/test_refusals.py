"""Refusals in Roboto's form: statuses, exceptions, and who may call."""

import pytest
from fastapi import FastAPI
from starlette.routing import Route

from agui_container.main import build_app
from agui_container.protocol.errors import ErrorCode
from agui_container.protocols.roboto import routes
from agui_container.settings import Settings
from agui_container.web.caller_middleware import SESSION_HEADER
from tests.protocols.roboto.conftest import Api, serving_api
from tests.protocols.roboto.test_routes import INVALID

pytestmark = pytest.mark.wire

MISSING = "RobotoNotFoundException"


@pytest.fixture
def app() -> FastAPI:
    return build_app(Settings())


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


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/v1/ai/agents", "/v1/ai/threads/t/nothing", "/v1/ai/", "/v1/ai/threads/search/x"])
async def test_any_other_path_is_not_found_in_robotos_form_by_any_method(api: Api, method: str, path: str) -> None:
    answer = await api.http.request(method, path, headers={"accept": "text/html"})
    assert (answer.status_code, answer.json()["error"]["error_code"]) == (404, MISSING)


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


@pytest.mark.parametrize(
    ("sentiment", "category", "message"),
    [
        ("positive", "other", "notes: are required with the category 'other'"),
        ("positive", "slow", "categories: 'slow' does not fit the sentiment; "),
    ],
)
async def test_feedback_that_does_not_fit_is_refused(api: Api, sentiment: str, category: str, message: str) -> None:
    held = await api.finished(await api.start("stream 1"))
    path = f"/{held['thread_id']}/messages/1/feedback"
    refused = await api.error("POST", path, {"sentiment": sentiment, "categories": [category]})
    assert refused[:2] == (400, INVALID)
    assert refused[2].startswith(message)


async def test_what_no_state_of_a_session_allows_is_refused(api: Api) -> None:
    path = f"/{(await api.finished(await api.start('stream 1')))['thread_id']}"
    busy = await api.start("wait 3")
    while len(busy["messages"]) < 2:
        busy = await api.data("GET", f"/{busy['thread_id']}")
    at_work, positive = f"/{busy['thread_id']}", {"sentiment": "positive"}
    for where, body, refusal in (
        (f"{path}/messages/9/feedback", positive, (404, MISSING)),
        (f"{path}/messages/0/feedback", positive, (400, INVALID)),
        (f"{at_work}/messages/1/feedback", positive, (400, INVALID)),
        (f"{path}/fork", {"message_sequence_num": 9}, (400, INVALID)),
        (f"{at_work}/fork", {"message_sequence_num": 1}, (400, INVALID)),
    ):
        assert (await api.error("POST", where, body))[:2] == refusal, where
    said = await api.error("POST", f"{at_work}/messages", {"message": {"role": "user", "content": [{"text": "x"}]}})
    assert said == (400, INVALID, "The session is not waiting for a message: the agent is at work.")


async def test_a_token_of_nobody_is_refused(api: Api) -> None:
    held = await api.finished(await api.start("stream 1"))
    assert (await api.error("GET", f"/{held['thread_id']}/delta?next_token=x"))[:2] == (400, INVALID)


async def test_a_session_of_another_caller_is_not_there(api: Api) -> None:
    record = await api.start("stream 1")
    other = {"x_amzn_bedrock_agentcore_runtime_session_id": "s" * 40}
    assert (await api.ask("GET", f"/{record['thread_id']}", **other)).status_code == 404


async def test_a_client_above_a_rate_is_told_when_to_come_back() -> None:
    async with serving_api(caller_limits='{"runsPerMinute": 1}', limit_by="session") as api:
        api.http.headers[SESSION_HEADER] = "session"
        await api.start("stream 1")
        refused = await api.ask("POST", "", {"messages": [{"role": "user", "content": [{"text": "stream 1"}]}]})
    assert (refused.status_code, refused.json()["error"]["error_code"]) == (429, "RobotoLimitExceededException")
    assert 0 < int(refused.headers["retry-after"]) <= 60


def test_every_status_of_the_error_table_has_an_exception() -> None:
    refused = {code.http for code in ErrorCode} - {200, 500}
    assert refused <= routes.CLASSES.keys()
