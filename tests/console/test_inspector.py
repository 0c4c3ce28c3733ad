"""The inspector: events, state, goals, tokens, capabilities and replay."""

import asyncio
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Route, expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import WAIT_MS, User, curl, release, serve_page

pytestmark = [pytest.mark.asyncio(loop_scope="package"), over_both]

OTHER_TRANSPORTS = {"sse": ("WebSocket", "websocket", "/ws"), "websocket": ("SSE", "request", "/invocations")}
"""The label of the transport that is not chosen, the browser's event when a run begins there, and the path."""


async def test_events_are_listed_filtered_and_shown_raw(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.inspect("Events")
    await user.say("what time is it")
    await user.is_done()
    rows = user.page.get_by_role("list", name="Events").get_by_role("button")
    await expect(rows.first).to_have_text("0.000RUN_INPUTwhat time is it")
    await expect(rows.first).to_have_css("font-weight", "600")
    await expect(rows.nth(1)).to_have_css("font-weight", "400")
    colours = {
        await rows.get_by_text(type_, exact=True).evaluate("(text) => getComputedStyle(text).color")
        for type_ in ("RUN_STARTED", "TOOL_CALL_START", "TEXT_MESSAGE_START")
    }
    assert len(colours) == 3
    await user.page.get_by_label("Filter events").fill("TOOL -ARGS -INPUT -CUSTOM")
    types = rows.locator(".event-type")
    await expect(types).to_have_text(["TOOL_CALL_START", "TOOL_CALL_END", "TOOL_CALL_RESULT"])
    await expect(rows.first.locator(".event-time")).to_have_text(re.compile(r"^\d+\.\d{3}$"))
    await user.page.get_by_label("Filter events").fill("RESULT toolCallId")
    await expect(rows).to_have_count(0)
    await user.page.get_by_label("Raw").check()
    await expect(rows).to_have_count(1)
    await user.page.get_by_label("Filter events").fill("TOOL_CALL_START")
    await rows.first.click()
    raw = await user.page.get_by_role("group", name="Frame").inner_text()
    assert json.loads(raw)["toolCallName"] == "current_time"


async def test_a_run_is_copied_as_curl_and_downloaded_as_jsonl(visit: Visit, assistant: str, tmp_path: Path) -> None:
    user = await visit(assistant)
    await user.inspect("Events")
    await user.say("what's the time?")
    await user.is_done()
    command = await user.copies("Copy as curl")
    assert '"content":"what' in command
    items = user.page.get_by_role("navigation", name="Threads").get_by_role("listitem")
    assert (await curl(command))[-1] == "RUN_FINISHED"
    await user.page.evaluate("window.dispatchEvent(new Event('focus'))")
    await expect(items).to_have_count(2)
    lines = await downloaded(user, tmp_path)
    await expect(user.page.get_by_text(f"{len(lines)} of {len(lines)} frames")).to_be_visible()
    assert [line["direction"] for line in lines[:2]] == ["out", "in"]
    assert lines[0]["frame"]["messages"][0]["content"] == "what's the time?"
    assert (lines[1]["frame"]["type"], lines[-1]["frame"]["type"]) == ("RUN_STARTED", "RUN_FINISHED")
    assert datetime.fromisoformat(lines[0]["at"]) <= datetime.fromisoformat(lines[-1]["at"])
    await user.page.get_by_label("Filter events").fill("TEXT_MESSAGE")
    await expect(user.page.get_by_role("list", name="Events").get_by_role("button")).to_have_count(3)
    found = await downloaded(user, tmp_path)
    await expect(user.page.get_by_text(f"{len(found)} of {len(lines)} frames")).to_be_visible()
    assert found == [line for line in lines if "TEXT_MESSAGE" in line["frame"].get("type", "")]


async def test_the_run_of_an_approved_call_is_copied_as_curl_with_the_message_before_it(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.inspect("Events")
    await user.say("calculate 6*7")
    await user.press("Allow")
    await user.reads("The result of calculate is 42.")
    await user.is_done()
    command = await user.copies("Copy as curl")
    assert '"content":"calculate 6*7"' in command
    assert "TOOL_CALL_START" in await curl(command)


async def downloaded(user: User, folder: Path) -> list[dict[str, Any]]:
    """The lines that "Download as JSONL" saves."""
    async with user.page.expect_download() as download:
        await user.press("Download as JSONL")
    saved = folder / "events.jsonl"
    await (await download.value).save_as(saved)
    return [json.loads(line) for line in saved.read_text().splitlines()]


async def test_a_stored_run_is_played_again(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("what time is it")
    await user.is_done()
    await user.inspect("Replay")
    run = user.page.get_by_label("Runs").get_by_role("button")
    await expect(run).to_contain_text("what time is it")
    await user.page.reload()
    await user.page.get_by_role("tab", name="Replay").click()
    await expect(run).to_contain_text("what time is it")
    await run.click()
    bar = user.page.get_by_role("group", name="Replay")
    await expect(bar.get_by_role("button", name="Play")).to_be_visible()
    await expect(user.call("current_time")).to_contain_text("ms")
    await bar.get_by_label("Event").fill("2")
    await expect(user.call("current_time")).to_contain_text("Writing arguments")
    rows = user.page.get_by_role("list", name="Events").get_by_role("button")
    marked = user.page.locator(".event-row[aria-pressed='true']")
    await expect(marked).to_have_text(re.compile("^2TOOL_CALL_START"))
    await rows.get_by_text("TOOL_CALL_RESULT").click()
    await expect(marked).to_contain_text("TOOL_CALL_RESULT")
    await expect(user.call("current_time")).to_contain_text("ms")
    await bar.get_by_role("button", name="Close replay").click()
    await expect(user.composer).to_be_visible()
    await expect(user.messages).to_have_count(1)


async def test_the_replay_of_a_run_after_a_decision_has_the_question_and_the_call(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await user.press("Allow")
    await user.reads("The result of calculate is 42.")
    await user.is_done()
    await user.inspect("Replay")
    runs = user.page.get_by_label("Runs").get_by_role("button")
    await expect(runs).to_have_count(2)
    await runs.first.click()
    await user.reads("The result of calculate is 42.")
    bar = user.page.get_by_role("group", name="Replay")
    await bar.get_by_label("Event").fill("0")
    await expect(user.messages).to_have_text(["calculate 6*7"])
    await expect(user.call("calculate")).to_be_visible()
    await expect(user.conversation).not_to_contain_text("The result of calculate is 42.")


async def test_another_thread_and_a_new_chat_close_a_replay(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()
    await user.press("New chat")
    await user.say("think about rain")
    await user.is_done()
    await user.inspect("Replay")
    runs = user.page.get_by_label("Runs").get_by_role("button")
    bar = user.page.get_by_role("group", name="Replay")
    await runs.click()
    await expect(bar).to_be_visible()
    await user.page.get_by_role("button", name="stream 1", exact=True).click()
    await expect(user.composer).to_be_visible()
    await user.reads("hello world,")
    await runs.click()
    await expect(bar).to_be_visible()
    await user.press("New chat")
    await expect(user.composer).to_be_visible()
    await expect(user.page.get_by_label("Suggestions")).to_be_visible()


async def test_a_trace_has_the_model_calls_the_tools_and_the_waits_of_a_turn(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await user.press("Allow")
    await user.is_done()
    await user.inspect("Trace")
    names = user.page.get_by_role("list", name="Trace").locator(".span-name")
    await expect(names).to_have_text(["run", "model", "waits for you", "run", "calculate", "model"])
    await expect(user.page.get_by_role("list", name="Trace")).to_contain_text("interrupt ·")
    await user.say("stream 1")
    await user.is_done()
    await expect(names).to_have_text(["run", "model"])
    await user.page.get_by_label("Turn").select_option(label="1. calculate 6*7")
    await expect(names).to_have_count(6)


async def test_a_trace_of_runs_that_the_page_has_not_received_comes_from_the_server(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await user.press("Allow")
    await user.is_done()
    await user.say("stream 1")
    await user.is_done()
    other = await user.open_tab(user.page.url)
    await other.inspect("Trace")
    spans = other.page.get_by_role("list", name="Trace").get_by_role("listitem")
    await expect(spans.locator(".span-name")).to_have_text(["run", "model"])
    await other.page.get_by_label("Turn").select_option(label="1. calculate 6*7")
    await expect(spans.locator(".span-name")).to_have_text(
        ["run", "model", "waits for you", "run", "calculate", "model"]
    )
    await expect(spans.filter(has_text="calculate")).to_contain_text("ms")
    await expect(spans.filter(has_text="model").locator(".span-time")).to_have_count(0)
    await expect(spans.first).to_contain_text("interrupt ·")
    await other.say("what time is it")
    await other.is_done()
    turns = other.page.get_by_label("Turn").locator("option")
    await expect(turns).to_have_text(["1. calculate 6*7", "2. stream 1", "3. what time is it"])


async def test_deltas_are_one_row_and_raw_rows_are_not_folded(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.inspect("Events")
    await user.say("slowly")
    await user.reads("word3 ")
    await release(scripted)
    await user.is_done()
    await user.page.get_by_label("Filter events").fill("CONTENT")
    rows = user.page.get_by_role("list", name="Events").get_by_role("button")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("deltas, ")
    await user.page.get_by_label("Raw").check()
    await expect(rows.nth(1)).to_be_visible()


async def test_answers_to_commands_are_in_the_event_log(visit: Visit, assistant: str, wire: str) -> None:
    user = await visit(assistant)
    await user.inspect("Events")
    await user.say("wait 60")
    await user.reads("Waiting 60 s.")
    await user.press("Stop")
    await user.is_done()
    answer = "result" if wire == "websocket" else "command.result"
    await expect(user.page.get_by_role("list", name="Events").get_by_text(answer, exact=True)).to_be_visible()


async def test_runs_that_are_found_late_are_not_listed_in_another_thread(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()
    is_asked, is_left = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        is_asked.set()
        await is_left.wait()
        await route.continue_()

    await user.page.route("**/runs", hold, times=1)
    await user.inspect("Replay")
    async with asyncio.timeout(WAIT_MS / 1000):
        await is_asked.wait()
    async with user.page.expect_response("**/runs"):
        await user.press("New chat")
    async with user.page.expect_response("**/runs"):
        is_left.set()
    await expect(user.page.get_by_text("The server has no runs of this thread.")).to_be_visible()
    await expect(user.page.get_by_label("Runs").get_by_role("button")).to_have_count(0)


async def test_a_replay_offers_nothing_that_starts_a_run(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("fail")
    failure = user.page.get_by_role("alert")
    again = user.page.get_by_role("button", name="Try again")
    await expect(again).to_be_visible()
    await user.inspect("Replay")
    runs = user.page.get_by_label("Runs").get_by_role("button")
    bar = user.page.get_by_role("group", name="Replay")
    await runs.click()
    await expect(bar.get_by_role("button", name="Play")).to_be_visible()
    await expect(failure).to_contain_text("MODEL_ERROR")
    await expect(again).to_have_count(0)
    await bar.get_by_role("button", name="Close replay").click()
    await expect(again).to_be_visible()
    await user.page.reload()
    await user.page.get_by_role("tab", name="Replay").click()
    await runs.click()
    await bar.get_by_label("Event").fill("0")
    await expect(failure).to_have_count(0)
    await expect(user.page.get_by_label("Suggestions")).to_have_count(0)


async def test_state_is_a_tree_with_changes_marked(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.inspect("State")
    await user.say("state")
    await user.is_done()
    tree = user.page.get_by_label("State", exact=True).first
    changed = tree.locator(".is-changed")
    await expect(changed).to_have_count(2)
    await expect(changed.first).to_contain_text("milk")
    await expect(changed.last).to_contain_text("size4")


async def test_goals_are_shown(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.inspect("Run")
    await user.say("goals")
    await user.is_done()
    goals = user.page.get_by_label("Goals").get_by_role("listitem")
    await expect(goals.first).to_contain_text("achieved")
    await expect(goals.last).to_contain_text("failed: given up")


async def test_tokens_and_the_context_window_are_shown(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 5")
    await user.is_done()
    await expect(user.page.get_by_label("of 4,000 tokens")).to_be_visible()
    await user.inspect("Run")
    panel = user.page.get_by_role("tabpanel")
    await expect(panel).to_contain_text("Input")
    await expect(panel).to_contain_text("of 4,000 tokens")
    await expect(panel).to_contain_text("Without room for more, the oldest messages are summarised or left out.")


async def test_the_cost_is_shown_where_models_have_prices(visit: Visit) -> None:
    dollar_for_a_token = json.dumps({"offline": {"input": 1_000_000, "output": 0}})
    with serve_page(AGUI_MODEL_PRICES=dollar_for_a_token) as server:
        user = await visit(server.url)
        await user.inspect("Run")
        await user.say("stream 1")
        await user.is_done()
        facts = user.page.get_by_role("tabpanel").locator("dl > div")
        tokens = await facts.filter(has_text="Input").locator("dd").inner_text()
        await expect(facts.filter(has_text="Cost")).to_have_text(f"Cost${tokens}.00")
        await user.page.get_by_role("tab", name="Trace").click()
        await expect(user.page.get_by_role("list", name="Trace")).to_contain_text(f"{tokens} tokens in")
        await expect(user.page.get_by_role("list", name="Trace")).to_contain_text(f"${tokens}.00")
        await user.page.close()


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


async def test_a_request_is_copied_on_its_own_thread_only(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.inspect("Events")
    copy = user.page.get_by_role("button", name="Copy as curl")
    await expect(copy).to_be_disabled()
    await user.say("hi")
    await user.is_done()
    await expect(copy).to_be_enabled()
    await user.press("New chat")
    await expect(copy).to_be_disabled()


async def test_a_long_frame_is_cut_and_copied_whole(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    text = "x" * 120_000
    await user.say(text)
    await user.is_done()
    await user.inspect("Events")
    await user.page.get_by_label("Filter events").fill("RUN_INPUT")
    await user.page.get_by_role("list", name="Events").get_by_role("button").first.click()
    await expect(user.page.get_by_text("more characters")).to_be_visible()
    await expect(user.page.get_by_role("group", name="Frame")).not_to_be_empty()
    copied = await user.copies("Copy the whole frame")
    assert text in copied
