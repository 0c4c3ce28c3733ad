"""MCP Apps: the activity that shows an app, and the requests that a page passes on for it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.server.apps import Apps, client_supports_apps
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import CallToolResult, ElicitRequestURLParams, TextContent, Tool

from agui_container.main import build_app
from agui_container.ports import RunContext
from agui_container.settings import Settings
from agui_container.tools.mcp.apps import MAX_RESULT_BYTES, AppFacts
from agui_container.web.caller_middleware import SESSION_HEADER
from tests.behaviour.client import Client, Refused, outcome
from tests.behaviour.conversations import ClientThread, answer, cancelled_answer, interrupts, results
from tests.behaviour.inprocess import InProcess
from tests.behaviour.over_ws import OverWs
from tests.behaviour.server import serving
from tests.behaviour.test_restart import server
from tests.engine.doubles import FakeClock, Json, ask
from tests.models.bedrock.doubles import as_nobody
from tests.stores.agentcore.server import memory_service
from tests.tools.mcp_demo import serve_app

pytestmark = pytest.mark.wire

PAGE, HTML = "ui://budget/app.html", "<p>budget</p>"
BUDGET = 'call shop_budget {"limit": 5}'


class Shop:
    """A server with an app. ``calls`` are the calls of its tools."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.began, self.may_end = asyncio.Event(), asyncio.Event()
        apps = Apps()
        apps.add_html_resource(PAGE, HTML)
        apps.tool(resource_uri=PAGE)(self.budget)
        apps.tool(resource_uri=PAGE, visibility=["app"])(self.refresh)
        apps.tool(resource_uri=PAGE, visibility=["model"])(self.report)
        apps.tool(resource_uri=PAGE)(self.wait)
        apps.tool(resource_uri=PAGE)(self.sign_in)
        self.server = MCPServer("shop", log_level="CRITICAL", extensions=[apps])
        self.server.resource("ui://budget/secret.html", name="secret")(lambda: "secret")

    async def budget(self, limit: int, ctx: Context) -> CallToolResult:
        self.calls.append(f"budget {limit}")
        user = (ctx.headers or {}).get("x-user")
        content = [TextContent(type="text", text=f"{limit} for {user} {client_supports_apps(ctx)}")]
        return CallToolResult(content=content, structured_content={"limit": limit}, _meta={"of": "the app"})

    async def refresh(self, size: int = 0) -> str:
        self.calls.append("refresh")
        return "x" * size

    async def report(self) -> str:
        return "reported"

    async def wait(self) -> str:
        self.began.set()
        await self.may_end.wait()
        return "waited"

    async def sign_in(self) -> str:
        raise UrlElicitationRequiredError(
            [ElicitRequestURLParams(message="Hi", url="https://a.b/", elicitation_id="1")]
        )


class Page:
    """A thread and what its page does for the app."""

    def __init__(self, client: Client, shop: Shop, settings: Settings) -> None:
        self.thread = ClientThread(client)
        self.shop = shop
        self.settings = settings

    def body(self, method: str, params: Json | None = None, *, server: str = "shop", **fields: Any) -> Json:  # noqa: ANN401
        request = {"serverHash": server, "serverId": server, "method": method, "params": params}
        props = {"__proxiedMCPRequest": request, **fields.pop("forwardedProps", {})}
        return self.thread.body(forwardedProps=props, **fields)

    async def send(self, method: str, params: Json | None = None, **fields: Any) -> list[Json]:  # noqa: ANN401
        return await self.thread.client.run(self.body(method, params, **fields))

    async def ask(self, method: str, params: Json | None = None, **fields: Any) -> Any:  # noqa: ANN401
        started, finished = await self.send(method, params, **fields)
        assert (started["type"], finished["type"]) == ("RUN_STARTED", "RUN_FINISHED")
        return finished["result"]

    async def call(self, tool: str, **arguments: object) -> Any:  # noqa: ANN401
        return await self.ask("tools/call", {"name": tool, "arguments": arguments})


def headers_of(ctx: RunContext) -> Json:
    return {"x-user": ctx.caller.owner}


@asynccontextmanager
async def opened(**settings: object) -> AsyncIterator[Page]:
    shop = Shop()
    async with serve_app(shop.server.streamable_http_app()) as port:
        of_caller = {"url": f"http://127.0.0.1:{port}/mcp", "headers_from": f"{__name__}:headers_of"}
        servers = json.dumps([{"name": "shop", **of_caller}])
        chosen = Settings.model_validate({"mcp_servers": servers, **settings})
        async with server(chosen) as client:
            yield Page(client, shop, chosen)
        shop.may_end.set()


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    async with opened() as made:
        yield made


ASK = json.dumps([{"tool_pattern": "shop_budget", "policy": "ask"}])


async def test_a_call_of_a_tool_with_an_app_shows_the_app_and_the_model_goes_on(page: Page) -> None:
    events = await page.thread.say(BUDGET)
    (shown,) = [event for event in events if event["type"] == "ACTIVITY_SNAPSHOT"]
    assert (shown["activityType"], shown["replace"]) == ("mcp-apps", True)
    content = shown["content"]
    assert content["result"]["content"] == [{"type": "text", "text": "5 for everybody True"}]
    assert (content["result"]["structuredContent"], content["result"]["_meta"]["of"]) == ({"limit": 5}, "the app")
    assert {name: content[name] for name in content if name != "result"} == {
        "resourceUri": PAGE,
        "serverHash": "shop",
        "serverId": "shop",
        "toolInput": {"limit": 5},
    }
    assert results(events) == ["5 for everybody True"]
    assert "TEXT_MESSAGE_CONTENT" in [event["type"] for event in events]


@pytest.fixture(params=["memory", "agentcore-memory:chats-0123456789", "sqlite:///{}/store.db"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    as_nobody(monkeypatch)
    async with memory_service() as service:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", service.url)
        yield request.param.format(tmp_path)


async def test_an_app_stays_in_its_place_in_the_thread_and_in_its_forks(store: str) -> None:
    async with opened(store=store) as page:
        thread = page.thread
        events = [*await thread.say(BUDGET), *await thread.say(BUDGET), *await thread.say("hello")]
        shown = [event["messageId"] for event in events if event["type"] == "ACTIVITY_SNAPSHOT"]
        command = {"type": "threads.fork", "threadId": thread.id, "messageId": thread.messages[-3]["id"]}
        fork = await thread.client.command({"command": command})
        for thread_id, count in ((thread.id, 2), (fork["threadId"], 2)):
            _, loaded, *_ = await thread.client.run(thread.body(messages=[], threadId=thread_id))
            messages = loaded["messages"]
            assert [each["id"] for each in messages if each["role"] == "activity"] == shown[:count]
            assert [each["role"] for each in messages[:5]] == ["user", "assistant", "tool", "activity", "assistant"]


async def test_tools_for_apps_alone_are_not_the_models(page: Page) -> None:
    assert results(await page.thread.say("call shop_refresh {}")) == ["Error: there is no tool named 'shop_refresh'."]
    assert results(await page.thread.say("call shop_report {}")) == ["reported"]


@pytest.mark.parametrize(
    ("visibility", "roles"),
    [
        ({}, "model app"),
        ({"visibility": ["model"]}, "model"),
        ({"visibility": ["app"]}, "app"),
        ({"visibility": "app"}, "app"),
        ({"visibility": []}, ""),
        ({"visibility": {"model": True}}, ""),
    ],
)
def test_a_tool_is_for_the_roles_that_it_names(visibility: Json, roles: str) -> None:
    facts = AppFacts.of(Tool(name="t", input_schema={}, _meta={"ui": visibility}))
    assert [name for name, is_for in (("model", facts.for_model), ("app", facts.for_apps)) if is_for] == roles.split()


async def test_an_app_reads_its_page_and_calls_its_tools(page: Page) -> None:
    read = await page.ask("resources/read", {"uri": PAGE})
    assert [(each["uri"], each["mimeType"], each["text"]) for each in read["contents"]] == [
        (PAGE, "text/html;profile=mcp-app", HTML)
    ]
    assert (await page.call("budget", limit=7))["content"] == [{"type": "text", "text": "7 for everybody True"}]
    assert (await page.call("refresh"))["isError"] is False
    assert (await page.call("budget"))["isError"] is True
    assert await page.ask("ping") == {}
    assert page.shop.calls == ["budget 7", "refresh"]


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("resources/read", {"uri": "ui://budget/secret.html"}, "No tool of 'shop' names this resource."),
        ("resources/read", {}, "An app cannot send 'resources/read' with these params."),
        ("tools/call", {"name": "report"}, "Apps of 'shop' have no tool named 'report'."),
        ("tools/call", {"name": "nope"}, "Apps of 'shop' have no tool named 'nope'."),
        ("tools/call", {"name": "budget", "arguments": 5}, "params.arguments must be an object."),
        ("tools/call", {"name": "sign_in"}, "sign_in asks a person, which it cannot do in a call of an app."),
        ("tools/list", {}, "An app cannot send 'tools/list' with these params."),
        (
            "tools/call",
            {"name": "refresh", "arguments": {"size": MAX_RESULT_BYTES}},
            "The result has more than 2,000,000 bytes, so the app cannot get it.",
        ),
    ],
)
async def test_an_app_is_told_what_it_cannot_have(method: str, params: Json, error: str, page: Page) -> None:
    assert await page.ask(method, params) == {"error": error}


async def test_a_server_that_is_not_configured_is_unknown(page: Page) -> None:
    assert await page.ask("ping", server="other") == {"error": "Unknown server: other"}
    async with server(Settings.model_validate({})) as client:
        alone = Page(client, page.shop, page.settings)
        assert await alone.ask("ping") == {"error": "Unknown server: shop"}


async def test_a_request_of_an_app_is_no_turn() -> None:
    """It works while a question or a run is open, and nothing of it is stored."""
    async with opened(tool_policy=ASK) as page:
        (question,) = interrupts(await page.thread.say(BUDGET))
        lists: list[Json] = [{"command": {"type": "runs.list"}}, {"command": {"type": "threads.list"}}]
        before = [await page.thread.client.command(each) for each in lists]
        assert (await page.call("refresh"))["isError"] is False
        assert [await page.thread.client.command(each) for each in lists] == before
        running = await page.thread.client.start(ask("other", text="call shop_wait {}"))
        await page.shop.began.wait()
        assert await page.ask("ping", threadId="other") == {}
        await running.leave()
        assert results(await page.thread.resume(answer(question, approved=True))) == ["5 for everybody True"]


@pytest.mark.parametrize("on_busy", ["reject", "interrupt"])
async def test_a_request_waits_for_the_run_that_streams_on_its_websocket(on_busy: str) -> None:
    async with opened(on_busy=on_busy) as page, serving(app := build_app(page.settings)) as url:
        client = OverWs(app.state.service, FakeClock(), url)
        socket = await client.socket()
        await socket.send(page.thread.body("call shop_wait {}"))
        await page.shop.began.wait()
        await socket.send(page.body("ping"))
        page.shop.may_end.set()
        found: list[Json] = []
        while len(found) < 4:
            event = await socket.event()
            found += [event] if event["type"].startswith("RUN_") else []
        assert [event["type"] for event in found] == ["RUN_STARTED", "RUN_FINISHED"] * 2
        assert [(event["outcome"]["type"], event.get("result")) for event in found[1::2]] == [
            ("success", None),
            ("success", {}),
        ]
        await client.close()


async def test_an_open_request_counts_for_its_caller_and_ends_at_a_shutdown() -> None:
    async with opened(caller_limits='{"runs": 1}') as page:
        service = page.thread.client.service
        client = InProcess(service, FakeClock(), {SESSION_HEADER: "s"}, by_session=False, limits_by_session=True)
        stream = await client.start(page.body("tools/call", {"name": "wait"}))
        await page.shop.began.wait()
        assert service.health.is_busy
        with pytest.raises(Refused, match="RATE_LIMIT_EXCEEDED"):
            await client.start(page.body("ping"))
        await service.drain(0)
        assert outcome(await stream.rest()) == "SHUTTING_DOWN"
        with pytest.raises(Refused, match="SHUTTING_DOWN"):
            await client.start(page.body("ping"))


@pytest.mark.parametrize(
    ("payload", "calls", "result"),
    [
        ({"approved": True}, ["budget 5"], None),
        ({"approved": True, "editedArgs": {"limit": 3}}, ["budget 3"], None),
        ({"approved": False, "reason": "too dear"}, [], {"error": "the user denied this call: too dear"}),
        (None, [], {"error": "the user did not want this call."}),
    ],
)
async def test_a_guarded_tool_asks_the_person_in_the_run_of_the_app_and_an_answer_counts_once(
    payload: Json | None, calls: list[str], result: Json | None
) -> None:
    async with opened(tool_policy=ASK) as page:
        params: Json = {"name": "budget", "arguments": {"limit": 5}}
        assert "does not know the thread" in (await page.ask("tools/call", params))["error"]
        await page.thread.say("hello")
        (question,) = interrupts(await page.send("tools/call", params))
        assert question["metadata"]["toolName"] == "shop_budget"
        assert page.shop.calls == []
        given = cancelled_answer(question) if payload is None else answer(question, **payload)
        both = await asyncio.gather(*(page.ask("tools/call", params, resume=[given]) for _ in range(2)))
        both.append(await page.ask("tools/call", params, resume=[given]))
        used = {"error": "the answer about this call was used before."}
        (answered,) = [each for each in both if each != used]
        assert page.shop.calls == calls
        assert result is None or answered == result
        other: Json = {"name": "budget", "arguments": {"limit": 900}}
        assert interrupts(await page.send("tools/call", other, resume=[given]))
        (again,) = interrupts(await page.send("tools/call", params))
        assert again["id"] != question["id"]
        assert not interrupts(await page.thread.say("hello"))


async def test_a_rule_and_a_demand_of_the_caller_hold_for_apps() -> None:
    async with opened(tool_policy=json.dumps([{"tool_pattern": "*_budget", "policy": "deny", "reason": "no"}])) as page:
        assert await page.call("budget", limit=5) == {"error": "this tool is not allowed: no"}
        await page.thread.say("hello")
        asks = {"approvals": {"ask": "all"}}
        assert interrupts(await page.send("tools/call", {"name": "refresh"}, forwardedProps=asks))
        assert page.shop.calls == []
