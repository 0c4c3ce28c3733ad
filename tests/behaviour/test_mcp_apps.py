"""MCP Apps: the activity that shows an app, and the requests that a page passes on for it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.server.apps import Apps, client_supports_apps
from mcp.server.mcpserver import Context, MCPServer

from agui_container.settings import Settings
from agui_container.tools.mcp.apps import MAX_RESULT_BYTES
from tests.behaviour.conversations import ClientThread, answer, cancelled_answer, interrupts, results
from tests.behaviour.fake_models import FakeOffline
from tests.behaviour.test_restart import server
from tests.engine.doubles import Json
from tests.tools.mcp_demo import serve_app

pytestmark = pytest.mark.wire

PAGE, HTML = "ui://budget/app.html", "<p>budget</p>"
BUDGET = 'call shop_budget {"limit": 5}'


class Shop:
    """A server with an app. ``calls`` are the calls of its tools."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        apps = Apps()
        apps.add_html_resource(PAGE, HTML)
        apps.tool(resource_uri=PAGE)(self.budget)
        apps.tool(resource_uri=PAGE, visibility=["app"])(self.refresh)
        apps.tool(resource_uri=PAGE, visibility=["model"])(self.report)
        self.server = MCPServer("shop", log_level="CRITICAL", extensions=[apps])
        self.server.resource("ui://budget/secret.html", name="secret")(lambda: "secret")

    async def budget(self, limit: int, ctx: Context) -> str:
        self.calls.append(f"budget {limit}")
        return f"{limit} {client_supports_apps(ctx)}"

    async def refresh(self, size: int = 0) -> str:
        self.calls.append("refresh")
        return "x" * size

    async def report(self) -> str:
        return "reported"


class Page:
    """A thread and what its page does for the app."""

    def __init__(self, thread: ClientThread, shop: Shop) -> None:
        self.thread = thread
        self.shop = shop

    async def send(self, method: str, params: Json | None = None, *, server: str = "shop", **fields: Any) -> list[Json]:  # noqa: ANN401
        request = {"serverHash": server, "serverId": server, "method": method, "params": params}
        props = {"__proxiedMCPRequest": request, **fields.pop("forwardedProps", {})}
        return await self.thread.client.run(self.thread.body(forwardedProps=props, **fields))

    async def ask(self, method: str, params: Json | None = None, **fields: Any) -> Any:  # noqa: ANN401
        started, finished = await self.send(method, params, **fields)
        assert (started["type"], finished["type"]) == ("RUN_STARTED", "RUN_FINISHED")
        return finished["result"]

    async def call(self, tool: str, **arguments: object) -> Any:  # noqa: ANN401
        return await self.ask("tools/call", {"name": tool, "arguments": arguments})


@asynccontextmanager
async def opened(**settings: object) -> AsyncIterator[Page]:
    shop = Shop()
    async with serve_app(shop.server.streamable_http_app()) as port:
        servers = json.dumps([{"name": "shop", "url": f"http://127.0.0.1:{port}/mcp"}])
        async with server(Settings.model_validate({"mcp_servers": servers, **settings})) as client:
            yield Page(ClientThread(client, FakeOffline()), shop)


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
    assert content["result"]["content"] == [{"type": "text", "text": "5 True"}]
    assert content["result"]["structuredContent"] == {"result": "5 True"}
    assert {name: content[name] for name in content if name != "result"} == {
        "resourceUri": PAGE,
        "serverHash": "shop",
        "serverId": "shop",
        "toolInput": {"limit": 5},
    }
    assert results(events) == ["5 True"]
    assert "TEXT_MESSAGE_CONTENT" in [event["type"] for event in events]


async def test_an_app_stays_in_its_place_in_the_thread_and_in_its_forks(tmp_path: Path) -> None:
    async with opened(store=f"sqlite:///{tmp_path}/store.db") as page:
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


async def test_an_app_reads_its_page_and_calls_its_tools(page: Page) -> None:
    read = await page.ask("resources/read", {"uri": PAGE})
    assert [(each["uri"], each["mimeType"], each["text"]) for each in read["contents"]] == [
        (PAGE, "text/html;profile=mcp-app", HTML)
    ]
    assert (await page.call("budget", limit=7))["content"] == [{"type": "text", "text": "7 True"}]
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
        alone = Page(ClientThread(client, FakeOffline()), page.shop)
        assert await alone.ask("ping") == {"error": "Unknown server: shop"}


async def test_a_request_of_an_app_is_no_turn() -> None:
    """It works while a question is open, and nothing of it is stored."""
    async with opened(tool_policy=ASK) as page:
        (question,) = interrupts(await page.thread.say(BUDGET))
        lists: list[Json] = [{"command": {"type": "runs.list"}}, {"command": {"type": "threads.list"}}]
        before = [await page.thread.client.command(each) for each in lists]
        assert (await page.call("refresh"))["isError"] is False
        assert [await page.thread.client.command(each) for each in lists] == before
        assert results(await page.thread.resume(answer(question, approved=True))) == ["5 True"]


@pytest.mark.parametrize(
    ("payload", "calls", "result"),
    [
        ({"approved": True}, ["budget 5"], None),
        ({"approved": True, "editedArgs": {"limit": 3}}, ["budget 3"], None),
        ({"approved": False, "reason": "too dear"}, [], {"error": "the user denied this call: too dear"}),
        (None, [], {"error": "the user denied this call."}),
    ],
)
async def test_a_guarded_tool_asks_the_person_in_the_run_of_the_app(
    payload: Json | None, calls: list[str], result: Json | None
) -> None:
    async with opened(tool_policy=ASK) as page:
        params: Json = {"name": "budget", "arguments": {"limit": 5}}
        (question,) = interrupts(await page.send("tools/call", params))
        assert question["metadata"]["toolName"] == "shop_budget"
        assert page.shop.calls == []
        given = cancelled_answer(question) if payload is None else answer(question, **payload)
        answered = await page.ask("tools/call", params, resume=[given])
        assert page.shop.calls == calls
        assert result is None or answered == result
        other: Json = {"name": "budget", "arguments": {"limit": 900}}
        assert interrupts(await page.send("tools/call", other, resume=[answer(question, approved=True)]))


async def test_a_rule_and_a_demand_of_the_caller_hold_for_apps() -> None:
    async with opened(tool_policy=json.dumps([{"tool_pattern": "*_budget", "policy": "deny", "reason": "no"}])) as page:
        assert await page.call("budget", limit=5) == {"error": "this tool is not allowed: no"}
        asks = {"approvals": {"ask": "all"}}
        assert interrupts(await page.send("tools/call", {"name": "refresh"}, forwardedProps=asks))
        assert page.shop.calls == []
