"""The inspector: events, trace, state, tokens, capabilities and replay."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from tests.web.console.browser.conftest import Visit, over_both
from tests.web.console.driver import User, curl, serve_page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]

OTHER_TRANSPORTS = {"sse": ("WebSocket", "websocket", "/ws"), "websocket": ("SSE", "request", "/invocations")}
"""The label of the transport that is not chosen, the browser's event when a run begins there, and the path."""


@over_both
async def test_events_are_listed_filtered_and_shown_raw(visit: Visit, assistant: str, wire: str) -> None:
    user = await visit(assistant)
    await user.inspect("Events")
    await user.finishes("what time is it")
    rows = user.page.get_by_role("list", name="Events").get_by_role("button")
    filter_ = user.page.get_by_label("Filter events")
    await expect(rows.first).to_have_text("0.000RUN_INPUTwhat time is it")
    await filter_.fill("CONTENT")
    await expect(rows).to_have_count(1)
    await filter_.fill("TOOL -ARGS -INPUT -CUSTOM")
    await expect(rows.locator(".event-type")).to_have_text(["TOOL_CALL_START", "TOOL_CALL_END", "TOOL_CALL_RESULT"])
    await expect(rows.first.locator(".event-time")).to_have_text(re.compile(r"^\d+\.\d{3}$"))
    await filter_.fill("RESULT toolCallId")
    await expect(rows).to_have_count(0)
    await user.page.get_by_label("Raw").check()
    await expect(rows).to_have_count(1)
    await filter_.fill("TOOL_CALL_START")
    await rows.first.click()
    raw = await user.page.get_by_role("group", name="Frame").inner_text()
    assert json.loads(raw)["toolCallName"] == "current_time"
    await filter_.fill("")
    await user.page.get_by_label("Raw").uncheck()
    await user.say("wait 60")
    await user.reads("Waiting 60 s.")
    await user.press("Stop")
    await user.is_done()
    answer = "result" if wire == "websocket" else "command.result"
    await expect(rows.get_by_text(answer, exact=True).last).to_be_visible()


async def downloaded(user: User, folder: Path) -> list[dict[str, Any]]:
    async with user.page.expect_download() as download:
        await user.press("Download as JSONL")
    saved = folder / "events.jsonl"
    await (await download.value).save_as(saved)
    return [json.loads(line) for line in saved.read_text().splitlines()]


async def test_a_run_is_copied_as_curl_and_downloaded_as_jsonl(visit: Visit, assistant: str, tmp_path: Path) -> None:
    user = await visit(assistant)
    await user.inspect("Events")
    copy = user.page.get_by_role("button", name="Copy as curl")
    await expect(copy).to_be_disabled()
    await user.finishes("what's the time?")
    command = await user.copies("Copy as curl")
    assert '"content":"what' in command
    assert (await curl(command))[-1] == "RUN_FINISHED"
    lines = await downloaded(user, tmp_path)
    await expect(user.page.get_by_text(f"{len(lines)} of {len(lines)} frames")).to_be_visible()
    assert [line["direction"] for line in lines[:2]] == ["out", "in"]
    assert lines[0]["frame"]["messages"][0]["content"] == "what's the time?"
    assert (lines[1]["frame"]["type"], lines[-1]["frame"]["type"]) == ("RUN_STARTED", "RUN_FINISHED")
    assert datetime.fromisoformat(lines[0]["at"]) <= datetime.fromisoformat(lines[-1]["at"])
    await user.page.get_by_label("Filter events").fill("TEXT_MESSAGE")
    await expect(user.page.get_by_role("list", name="Events").get_by_role("button")).to_have_count(3)
    found = await downloaded(user, tmp_path)
    assert found == [line for line in lines if "TEXT_MESSAGE" in line["frame"].get("type", "")]
    await user.page.get_by_label("Filter events").fill("")
    await user.press("New chat")
    await expect(copy).to_be_disabled()
    await user.say("calculate 6*7")
    await user.press("Allow")
    await user.reads("The result of calculate is 42.")
    await user.is_done()
    command = await user.copies("Copy as curl")
    assert '"content":"calculate 6*7"' in command
    assert "TOOL_CALL_START" in await curl(command)


async def test_a_stored_run_is_played_again_and_another_thread_closes_the_replay(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    run, bar = user.page.get_by_label("Runs").get_by_role("button"), user.page.get_by_role("group", name="Replay")
    await user.finishes("what time is it")
    await user.inspect("Replay")
    await expect(run).to_contain_text("what time is it")
    await user.page.reload()
    await user.page.get_by_role("tab", name="Replay").click()
    await run.click()
    await expect(bar.get_by_role("button", name="Play")).to_be_visible()
    await expect(user.call("current_time")).to_contain_text("ms")
    await bar.get_by_label("Event").fill("2")
    await expect(user.call("current_time")).to_contain_text("Writing arguments")
    rows = user.page.get_by_role("list", name="Events").get_by_role("button")
    marked = user.page.locator(".event-row[aria-pressed='true']")
    await expect(marked).to_have_text(re.compile("^2TOOL_CALL_START"))
    await rows.get_by_text("TOOL_CALL_RESULT").click()
    await expect(marked).to_contain_text("TOOL_CALL_RESULT")
    await bar.get_by_role("button", name="Close replay").click()
    await expect(user.composer).to_be_visible()
    await expect(user.messages).to_have_count(1)
    await run.click()
    await expect(bar).to_be_visible()
    await user.press("New chat")
    await expect(user.page.get_by_label("Suggestions")).to_be_visible()
    await expect(bar).to_have_count(0)


async def test_tokens_their_cost_and_the_context_window_are_shown(visit: Visit) -> None:
    dollar_for_a_token = json.dumps({"offline": {"input": 1_000_000, "output": 0}})
    with serve_page(AGUI_MODEL_PRICES=dollar_for_a_token, AGUI_CONTEXT_TOKENS="4000") as server:
        user = await visit(server.url)
        await user.finishes("stream 1")
        await expect(user.page.get_by_label("of 4,000 tokens")).to_be_visible()
        await user.inspect("Run")
        panel = user.page.get_by_role("tabpanel")
        await expect(panel).to_contain_text("of 4,000 tokens")
        await expect(panel).to_contain_text("Without room for more, the oldest messages are summarised or left out.")
        facts = panel.locator("dl > div")
        tokens = await facts.filter(has_text="Input").locator("dd").inner_text()
        await expect(facts.filter(has_text="Cost")).to_have_text(f"Cost${tokens}.00")
        await user.page.get_by_role("tab", name="Trace").click()
        await expect(user.page.get_by_role("list", name="Trace")).to_contain_text(f"{tokens} tokens in")
        await expect(user.page.get_by_role("list", name="Trace")).to_contain_text(f"${tokens}.00")
        await user.page.close()


@over_both
async def test_the_server_says_what_it_can_do_and_the_transport_is_chosen(
    visit: Visit, assistant: str, wire: str
) -> None:
    user = await visit(assistant)
    await user.inspect("Server")
    await expect(user.page.get_by_role("tabpanel")).to_contain_text("calculate, current_time, delegate")
    other, message, path = OTHER_TRANSPORTS[wire]
    await user.page.get_by_label(other).check(force=True)
    async with user.page.expect_event(message, lambda sent: path in sent.url):
        await user.say("stream 1")
    await user.reads("hello world,")
