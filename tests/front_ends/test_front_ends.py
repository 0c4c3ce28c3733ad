"""Each front end of ``examples/`` chats, shows tool calls, asks for approval, stops runs, and survives a reload."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.auth.issuer import issuer_process
from tests.front_ends.conftest import Visit
from tests.front_ends.driver import NEXTJS, Visitor, previewed
from tests.ports import free_port
from tests.server.sockets.process import ServerProcess, program_on
from tests.web.console.driver import CALL_BUDGET, CALL_DEBUG, PageServer, serve_page

pytestmark = [pytest.mark.browser, pytest.mark.other_language, pytest.mark.asyncio(loop_scope="package")]
in_each = pytest.mark.parametrize("app", ["copilotkit-direct", "copilotkit-runtime", "assistant-ui"])

SECONDS = 120.0
Json = dict[str, object]


def get(server: PageServer, path: str) -> bytes:
    with urlopen(server.url + path, timeout=SECONDS) as response:  # noqa: S310 - this machine
        content: bytes = response.read()
        return content


def last_run(server: PageServer, thread_id: str) -> Json:
    """The newest run of a thread, as ``GET /runs`` lists it."""
    runs: list[Json] = json.loads(get(server, "runs"))["runs"]
    return next(run for run in runs if run["threadId"] == thread_id)


async def status_at_end(server: PageServer, thread_id: str) -> object:
    run = last_run(server, thread_id)
    await asyncio.to_thread(get, server, f"runs/{run['runId']}/events?threadId={thread_id}")
    return last_run(server, thread_id)["status"]


@contextmanager
def busy(server: PageServer, thread_id: str) -> Iterator[None]:
    """A run of another client on a thread, until the end of the block."""
    message = {"id": str(uuid4()), "role": "user", "content": "wait 60"}
    body = {"threadId": thread_id, "runId": str(uuid4()), "messages": [message]}
    request = Request(server.url + "invocations", json.dumps(body).encode())  # noqa: S310 - this machine
    with urlopen(request, timeout=SECONDS) as response:  # noqa: S310 - this machine
        while b"Waiting" not in response.readline():
            pass
        yield


@in_each
async def test_answers_and_calls_are_shown_and_the_server_keeps_one_of_each(
    visit: Visit, server: PageServer, app: str
) -> None:
    visitor = await visit(app)
    page = visitor.page.locator("html")
    await visitor.say("stream 20")
    await visitor.reads(("hello world, " * 20).strip())
    await visitor.say('call current_time {"timezone": "UTC"}')
    await expect(visitor.tool("current_time")).to_contain_text("timezone")
    await expect(visitor.tool("current_time")).to_contain_text("+00:00")
    await expect(visitor.chat.get_by_text("The result of current_time is")).to_have_count(1)
    await expect(page).not_to_have_class("dark")
    await visitor.say('call set_theme {"theme": "dark"}')  # a tool of the page
    await visitor.reads("The result of set_theme is dark.")
    await expect(visitor.tool("set_theme")).to_contain_text("This page has set it.")
    await expect(page).to_have_class("dark")
    thread: dict[str, list[Json]] = json.loads(get(server, f"threads/{visitor.thread_id}"))
    questions = [message["content"] for message in thread["messages"] if message["role"] == "user"]
    assert questions == ["stream 20", 'call current_time {"timezone": "UTC"}', 'call set_theme {"theme": "dark"}']


@in_each
async def test_a_call_waits_for_approval_also_after_a_reload(visit: Visit, app: str) -> None:
    visitor = await visit(app)
    await visitor.say("calculate 6*7")
    await expect(visitor.tool("calculate")).to_contain_text("6*7")
    await visitor.press("Deny")
    await visitor.reads("The call of calculate failed: the user denied this call.")
    await expect(visitor.approval).to_have_count(0)
    await visitor.say("calculate 6*8")
    await expect(visitor.approval).to_be_visible()
    await visitor.page.reload()
    await visitor.press("Approve")
    await visitor.reads("The result of calculate is 48.")


@pytest.mark.parametrize("app", ["copilotkit-direct", "copilotkit-runtime"])
async def test_a_question_of_an_mcp_server_is_a_form(visit: Visit, app: str) -> None:
    visitor = await visit(app)
    form = visitor.page.get_by_role("form", name="Which size?")
    for button, read in (("Send", "3"), ("Decline", "decline"), ("Not now", "cancel")):
        await visitor.say("call shop_ask")
        await form.get_by_label("size").fill("3")
        await form.get_by_role("button", name=button).click()
        await visitor.reads(f"The result of shop_ask is {read}.")


@pytest.mark.parametrize("app", ["copilotkit-direct", "copilotkit-runtime"])
async def test_published_mcp_apps_are_shown_and_clicks_reach_their_servers(visit: Visit, app: str) -> None:
    visitor = await visit(app)
    frames = visitor.page.frame_locator("[data-testid='mcp-app-iframe']")
    budget, debug = (frames.nth(at).frame_locator("iframe") for at in range(2))
    await visitor.say(CALL_BUDGET)
    await expect(budget.locator("body")).to_contain_text("Allocated: $100,000 / $100,000")
    await visitor.say(CALL_DEBUG)
    await debug.get_by_role("button", name="Call debug-refresh").click()
    await expect(debug.locator("body")).to_contain_text("server-tool-result")
    await visitor.page.reload()
    await expect(budget.locator("body")).to_contain_text("Allocated: $100,000 / $100,000")
    await expect(debug.locator("body")).to_contain_text("ontoolresult")


@in_each
async def test_a_run_goes_on_through_a_reload_without_lost_or_doubled_text(
    visit: Visit, server: PageServer, app: str
) -> None:
    visitor = await visit(app)
    await visitor.say("wait 3")
    await expect(visitor.chat.get_by_text("Waiting 3 s.")).to_be_visible()
    await visitor.page.reload()
    await visitor.reads("Waiting 3 s. Done.")
    await visitor.reads("wait 3")
    assert await status_at_end(server, visitor.thread_id) == "finished"


@in_each
async def test_stop_ends_the_run_at_the_server_also_behind_a_reload(visit: Visit, server: PageServer, app: str) -> None:
    visitor = await visit(app)
    for seconds in (60, 70):
        await visitor.say(f"wait {seconds}")
        await visitor.reads(f"Waiting {seconds} s.")
        if seconds == 70:
            await visitor.page.reload()
            await visitor.reads(f"Waiting {seconds} s.")
        await visitor.stop()
        assert await status_at_end(server, visitor.thread_id) == "cancelled"
    await visitor.say("think about rain")
    await visitor.reads("I have thought about rain.")


async def test_assistant_ui_lists_the_threads_of_the_server_and_leaves_their_runs_alone(
    visit: Visit, server: PageServer
) -> None:
    visitor = await visit("assistant-ui")
    await visitor.say("wait 2")
    await expect(visitor.chat.get_by_text("Waiting 2 s.")).to_be_visible()
    left = visitor.thread_id
    await visitor.press("New chat")
    await expect(visitor.chat.get_by_text("Waiting 2 s.")).to_have_count(0)
    assert await status_at_end(server, left) == "finished"
    await visitor.say("think about rain")  # when a run ends, the list is loaded again
    await visitor.press("wait 2")
    await visitor.reads("Waiting 2 s. Done.")
    assert visitor.thread_id == left
    await visitor.page.get_by_role("button", name="Delete wait 2", exact=True).click()
    await expect(visitor.chat.get_by_text("Waiting 2 s.")).to_have_count(0)
    threads: list[Json] = json.loads(get(server, "threads"))["threads"]
    assert left not in [thread["threadId"] for thread in threads]


async def test_assistant_ui_sends_feedback_to_the_server_and_shows_it_again(visit: Visit, server: PageServer) -> None:
    visitor = await visit("assistant-ui")
    await visitor.say("think about tea")
    await visitor.reads("I have thought about tea.")
    rating = visitor.page.get_by_role("button", name="Good answer").last
    async with visitor.page.expect_response("**/feedback"):
        await rating.click()
    thread: dict[str, list[Json]] = json.loads(get(server, f"threads/{visitor.thread_id}"))
    assert [feedback["sentiment"] for feedback in thread["feedback"]] == ["positive"]
    await visitor.page.reload()
    await expect(rating).to_have_attribute("data-submitted", "true")


@in_each
@pytest.mark.parametrize("error_status", ["http", "stream"])
async def test_a_busy_thread_is_shown_in_words(browser: Browser, app: str, error_status: str) -> None:
    with serve_page(AGUI_ERROR_STATUS=error_status) as refusing, previewed(app, refusing.url) as url:
        visitor = Visitor(await browser.new_page())
        await visitor.open(app, url)
        await visitor.say("think about rain")
        await visitor.reads("I have thought about rain.")
        with busy(refusing, visitor.thread_id):
            await visitor.say("think about tea")
            await expect(visitor.page.get_by_text("Another run is active on this thread.").first).to_be_visible()
        await visitor.page.close()
        assert visitor.complaints == []


async def test_nextjs_passes_the_token_of_the_user_on_and_streams(browser: Browser) -> None:
    port = free_port()
    url, start = f"http://localhost:{port}/", f"{NEXTJS.text.splitlines()[1]} -- --port {port}".split()
    with issuer_process() as issuer:
        discovery = f"{issuer}/.well-known/openid-configuration"
        auth = {"AGUI_AUTH": "jwt", "AGUI_AUTH_DISCOVERY_URL": discovery, "AGUI_AUTH_ALLOWED_AUDIENCE": "my-agent"}
        with (
            ServerProcess(AGUI_AGENT="assistant", AGUI_ON_DISCONNECT="cancel", **auth) as server,
            program_on(url, *start, AGENT_URL=server.invocations, ISSUER_URL=issuer, NEXT_TELEMETRY_DISABLED="1"),
        ):
            refused = await asyncio.to_thread(httpx.post, f"{url}api/agent", json={}, timeout=SECONDS)
            assert refused.status_code == 401
            visitor = Visitor(await browser.new_page())
            await visitor.open("nextjs", url)
            await visitor.page.get_by_role("link", name="Sign in").click()
            await visitor.say("wait 60")
            await visitor.reads("Waiting 60 s.")  # while the run is open
            await visitor.page.close()
            ended = await asyncio.to_thread(server.wait_for, lambda line: "run finished" in line)
    assert "outcome=cancelled" in ended
    assert visitor.complaints == []
