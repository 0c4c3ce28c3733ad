"""Each front end of ``examples/`` chats, shows tool calls, asks for approval, stops runs, and survives a reload."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from playwright.async_api import Browser, expect

from tests.console.driver import PageServer, serve_page
from tests.front_ends.conftest import Visit
from tests.front_ends.driver import Visitor, previewed

pytestmark = pytest.mark.asyncio(loop_scope="package")
in_each = pytest.mark.parametrize("app", ["copilotkit-direct", "copilotkit-runtime", "assistant-ui"])

SECONDS = 120.0
Json = dict[str, object]


def get(server: PageServer, path: str) -> bytes:
    """Return the body of the response when it is complete."""
    with urlopen(server.url + path, timeout=SECONDS) as response:  # noqa: S310 - this machine
        content: bytes = response.read()
        return content


def last_run(server: PageServer, thread_id: str) -> Json:
    """The newest run of a thread, as ``GET /runs`` lists it."""
    runs: list[Json] = json.loads(get(server, "runs"))["runs"]
    return next(run for run in runs if run["threadId"] == thread_id)


async def status_at_end(server: PageServer, thread_id: str) -> object:
    """Wait for the end of the newest run of a thread, and return its status."""
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
async def test_answers_stream_into_the_page_and_the_server_keeps_one_of_each(
    visit: Visit, server: PageServer, app: str
) -> None:
    visitor = await visit(app)
    await visitor.say("stream 20")
    await visitor.reads(("hello world, " * 20).strip())
    await visitor.say("think about rain")
    await visitor.reads("I have thought about rain.")
    thread: dict[str, list[Json]] = json.loads(get(server, f"threads/{visitor.thread_id}"))
    questions = [message["content"] for message in thread["messages"] if message["role"] == "user"]
    assert questions == ["stream 20", "think about rain"]


@in_each
async def test_a_card_shows_a_call_and_its_result(visit: Visit, app: str) -> None:
    visitor = await visit(app)
    await visitor.say('call current_time {"timezone": "UTC"}')
    await expect(visitor.tool("current_time")).to_contain_text("timezone")
    await expect(visitor.tool("current_time")).to_contain_text("+00:00")
    await expect(visitor.chat.get_by_text("The result of current_time is")).to_have_count(1)


@in_each
async def test_a_tool_of_the_page_runs_in_the_page_and_has_a_card_of_its_own(visit: Visit, app: str) -> None:
    visitor = await visit(app)
    page = visitor.page.locator("html")
    await expect(page).not_to_have_class("dark")
    await visitor.say('call set_theme {"theme": "dark"}')
    await visitor.reads("The result of set_theme is dark.")
    await expect(visitor.tool("set_theme")).to_contain_text("This page has set it.")
    await expect(page).to_have_class("dark")
    await expect(page).to_have_css("background-color", "rgb(20, 23, 31)")


@in_each
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("Approve", "The result of calculate is 42."),
        ("Deny", "The call of calculate failed: the user denied this call."),
    ],
)
async def test_a_call_waits_for_approval(visit: Visit, app: str, answer: str, outcome: str) -> None:
    visitor = await visit(app)
    await visitor.say("calculate 6*7")
    await expect(visitor.tool("calculate")).to_contain_text("6*7")
    await visitor.press(answer)
    await visitor.reads(outcome)
    await expect(visitor.approval).to_have_count(0)


@in_each
async def test_an_approval_still_waits_after_a_reload(visit: Visit, app: str) -> None:
    visitor = await visit(app)
    await visitor.say("calculate 6*7")
    await expect(visitor.approval).to_be_visible()
    await visitor.page.reload()
    await visitor.press("Approve")
    await visitor.reads("The result of calculate is 42.")


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
@pytest.mark.parametrize("reloads", [0, 1])
async def test_stop_ends_the_run_at_the_server_also_behind_a_reload(
    visit: Visit, server: PageServer, app: str, reloads: int
) -> None:
    visitor = await visit(app)
    await visitor.say("wait 60")
    await visitor.reads("Waiting 60 s.")
    for _ in range(reloads):
        await visitor.page.reload()
        await visitor.reads("Waiting 60 s.")
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


@pytest.fixture(scope="module", params=["http", "stream"])
def refusing(request: pytest.FixtureRequest) -> Iterator[PageServer]:
    """The built-in assistant with each ``AGUI_ERROR_STATUS``."""
    with serve_page(AGUI_ERROR_STATUS=request.param) as server:
        yield server


@in_each
async def test_a_busy_thread_is_shown_in_words(browser: Browser, refusing: PageServer, app: str) -> None:
    with previewed(app, refusing.url) as url:
        visitor = Visitor(await browser.new_page())
        await visitor.open(app, url)
        await visitor.say("think about rain")
        await visitor.reads("I have thought about rain.")
        with busy(refusing, visitor.thread_id):
            await visitor.say("think about tea")
            await expect(visitor.page.get_by_text("Another run is active on this thread.").first).to_be_visible()
        await visitor.page.close()
        assert visitor.complaints == []
